"""The eviction manager of a hollow node, whose rules are in :mod:`policies.eviction`.

A round observes the node first. Only if it is under pressure, or if pods write to its disks, the
round observes the pods one by one, so that other nodes cost little. Rounds do not run periodically:
they run ten seconds apart, from a change of usage until usage is constant and no condition is left
to be cleared.
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
    """Run a round without the pods; return None if the pods have to be observed."""
    writes = any(
        container.run.volumes or any(name in container.run.steps for name in _WRITTEN)
        for guest in host.guests.values()
        for container in guest.life.containers
    )
    sync = synchronize(host.script.plan, host.eviction, _sample(now, (), node_summary(host, now)))
    return None if writes or sync.outcome not in _CALM else sync


def play(host: Host, pods: Sequence[EvictablePod], now: int) -> Sync:
    """Run a round with the active pods of the node, and reclaim node-level resources if needed."""
    sample = _sample(now, pods, summary(host, now))
    sync = synchronize(host.script.plan, host.eviction, sample)
    if not sync.reclaim:
        return sync
    for reclaim in sync.reclaim:
        host.clean_up(reclaim, now)
    return settle(sync, _measured(node_summary(host, now)))


def rests(host: Host, now: int) -> bool:
    """Return whether no further round can have another result."""
    state = host.eviction
    return now >= host.restless_until and not (state.pressures or state.met_since)


def under_pressure(raw: bytes, pressures: Sequence[str]) -> Rejection | None:
    """Return the rejection of a pod by a node under pressure; None if it is admitted."""
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
