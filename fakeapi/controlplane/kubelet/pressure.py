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
from extender.kube.evictable import decode_evictable_pod
from extender.kube.stats import SummaryV1Alpha1, summary_of
from fakeapi.controlplane.kubelet.admission import Rejection
from fakeapi.controlplane.kubelet.hosts import HollowNode
from fakeapi.controlplane.kubelet.summaries import Document, node_and_pods_summary, node_summary
from policies.eviction.conditions import admit
from policies.eviction.deciding import (
    SyncInput,
    SyncOutcome,
    SyncResult,
    finish_after_reclaim,
    synchronize,
)
from policies.eviction.pods import EvictablePod
from policies.eviction.releases import NEWEST_EVICTION
from policies.eviction.signals import Pressure
from policies.eviction.stats import Summary

_WRITTEN = ("disk", "logs")
_CALM = (SyncOutcome.CALM, SyncOutcome.UNWATCHED, SyncOutcome.REFUSED)


def observe(host: HollowNode, now: int) -> SyncResult | None:
    """Run a round without the pods; return None if the pods have to be observed."""
    writes = any(
        container.run.volumes or any(name in container.run.steps for name in _WRITTEN)
        for guest in host.pods.values()
        for container in guest.lifecycle.containers
    )
    sync = synchronize(host.script.plan, host.eviction, _sample(now, (), node_summary(host, now)))
    return None if writes or sync.outcome not in _CALM else sync


def run_round(host: HollowNode, pods: Sequence[EvictablePod], now: int) -> SyncResult:
    """Run a round with the active pods of the node, and reclaim node-level resources if needed."""
    sample = _sample(now, pods, node_and_pods_summary(host, now))
    sync = synchronize(host.script.plan, host.eviction, sample)
    if not sync.reclaim:
        return sync
    for reclaim in sync.reclaim:
        host.reclaim(reclaim, now)
    return finish_after_reclaim(sync, _measured(node_summary(host, now)))


def is_at_rest(host: HollowNode, now: int) -> bool:
    """Return whether no further round can have another result."""
    state = host.eviction
    return now >= host.usage_changes_until and not (state.pressures or state.first_observed_at)


def pressure_rejection(raw: bytes, pressures: Sequence[str]) -> Rejection | None:
    """Return the rejection of a pod by a node under pressure; None if it is admitted."""
    if not pressures:
        return None
    try:
        pod = decode_evictable_pod(raw, NEWEST_EVICTION)
    except ObjectError as error:
        return Rejection("UnexpectedAdmissionError", str(error))
    admission = admit(pod, [Pressure(each) for each in pressures])
    return None if admission.admitted else Rejection(admission.reason, admission.message)


def _sample(now: int, pods: Sequence[EvictablePod], measured: Document) -> SyncInput:
    return SyncInput(now, pods, _measured(measured))


def _measured(document: Document) -> Summary:
    return summary_of(msgspec.convert(document, SummaryV1Alpha1))
