"""Rounds of a kubelet's eviction on a simulated node (:mod:`policies.eviction` thinks).

A round looks at the node first. Only if it finds a pressure, or if pods write onto its disks, the
pods are looked at one by one, so that calm nodes cost little. Nothing is measured by the clock:
rounds are played, ten seconds apart, from when something is used differently until all of it has
come to rest and no pressure is left to be taken back.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from extender.kube.decoding import ObjectError
from extender.kube.evictable import decode_evictable
from extender.kube.stats import SummaryShape, summary_of
from fakeapi.controlplane.kubelet.admission import Rejection
from fakeapi.controlplane.kubelet.hosts import Host
from fakeapi.controlplane.kubelet.summaries import Document, node_summary, summary
from policies.eviction.conditions import admit
from policies.eviction.deciding import Outcome, Sample, Sync, settle, synchronize
from policies.eviction.pods import EvictablePod
from policies.eviction.releases import NEWEST_EVICTION
from policies.eviction.signals import Pressure
from policies.eviction.stats import Summary

_WRITTEN = ("disk", "logs")
_CALM = (Outcome.CALM, Outcome.UNWATCHED, Outcome.REFUSED)


def glance(host: Host, now: int) -> Sync | None:
    """Play a round without the pods; None if they have to be looked at."""
    writes = any(
        container.run.volumes or any(name in container.run.steps for name in _WRITTEN)
        for guest in host.guests.values()
        for container in guest.life.containers
    )
    sync = synchronize(host.script.plan, host.eviction, _sample(now, (), node_summary(host, now)))
    return None if writes or sync.outcome not in _CALM else sync


def play(host: Host, pods: Sequence[EvictablePod], now: int) -> Sync:
    """Play a round with the pods that are active on the node; it cleans up if that may help."""
    sample = _sample(now, pods, summary(host, now))
    sync = synchronize(host.script.plan, host.eviction, sample)
    if not sync.reclaim:
        return sync
    for reclaim in sync.reclaim:
        host.clean_up(reclaim, now)
    return settle(sync, _measured(node_summary(host, now)))


def rests(host: Host, now: int) -> bool:
    """Return whether no further round can find anything new."""
    state = host.eviction
    return now >= host.restless_until and not (state.pressures or state.met_since)


def under_pressure(raw: bytes, pressures: Sequence[str]) -> Rejection | None:
    """Say why a node under pressure does not take a pod; None if it does."""
    if not pressures:
        return None
    try:
        pod = decode_evictable(raw, NEWEST_EVICTION)
    except ObjectError as error:
        return Rejection("UnexpectedAdmissionError", str(error))
    admission = admit(pod, [Pressure(each) for each in pressures])
    return None if admission.admitted else Rejection(admission.reason, admission.message)


def _sample(now: int, pods: Sequence[EvictablePod], measured: Document) -> Sample:
    return Sample(now, pods, _measured(measured))


def _measured(document: Document) -> Summary:
    return summary_of(msgspec.convert(document, SummaryShape))
