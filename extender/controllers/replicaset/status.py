"""The status of a ReplicaSet, calculated from its pods, and its update.

    replicas               the active pods
    fullyLabeledReplicas   those with all labels of the template
    readyReplicas          those that are ready
    availableReplicas      those that have been ready for minReadySeconds
    terminatingReplicas    the terminating pods

With minReadySeconds 10, a pod that became ready at 12:00:00 is available from 12:00:10 on,
inclusive.

Source: replica_set_utils.go (calculateStatus, conditions, updateReplicaSetStatus),
controller_utils.go (FindMinNextPodAvailabilityCheck), pkg/api/v1/pod (IsPodAvailable).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from extender.controllers.replicaset.pod_control import SYNC_ERRORS
from extender.controllers.replicaset.types import (
    API_VERSION,
    KIND,
    OwnedPod,
    ReplicaSet,
    ReplicaSetCondition,
    ReplicaSetStatus,
    decode_replica_set,
)
from extender.kube.decoders.object_meta import NS_PER_SECOND
from extender.kube.rest.client import Client, response_decoder
from extender.kube.rest.resources import REPLICA_SETS

REPLICA_FAILURE: Final = "ReplicaFailure"

Conditions = tuple[ReplicaSetCondition, ...]


def calculate_status(
    replica_set: ReplicaSet,
    active: Sequence[OwnedPod],
    terminating: Sequence[OwnedPod] | None,
    failure: str | None,
    now_ns: int,
    now: str,
) -> ReplicaSetStatus:
    """Return the status of a ReplicaSet with these pods; ``now`` is ``now_ns`` as a timestamp.

    ``terminating`` None leaves terminatingReplicas unset. ``failure`` is the error of scaling.
    """
    ready = [pod for pod in active if pod.ready]
    labels = replica_set.template_labels.items()
    return ReplicaSetStatus(
        replicas=len(active),
        fully_labeled_replicas=sum(labels <= pod.labels.items() for pod in active),
        ready_replicas=len(ready),
        available_replicas=sum(
            is_available(pod, replica_set.min_ready_seconds, now_ns) for pod in ready
        ),
        terminating_replicas=None if terminating is None else len(terminating),
        observed_generation=replica_set.status.observed_generation,
        conditions=_conditions(replica_set, len(active), failure, now),
    )


def status_differs(replica_set: ReplicaSet, status: ReplicaSetStatus) -> bool:
    """Return whether a status must be written: it changed, or the spec's generation is newer."""
    old = replica_set.status
    same = replace(status, observed_generation=old.observed_generation, conditions=None)
    if same != replace(old, conditions=None) or (status.conditions or ()) != (old.conditions or ()):
        return True
    return replica_set.metadata.generation != old.observed_generation


def status_document(status: ReplicaSetStatus) -> dict[str, Any]:
    """Return a status as JSON; as upstream, zero values except ``replicas`` are omitted."""
    fields = {
        "replicas": status.replicas,
        "fullyLabeledReplicas": status.fully_labeled_replicas or None,
        "readyReplicas": status.ready_replicas or None,
        "availableReplicas": status.available_replicas or None,
        "terminatingReplicas": status.terminating_replicas,
        "observedGeneration": status.observed_generation or None,
        "conditions": status.conditions or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def is_available(pod: OwnedPod, min_ready_seconds: int, now_ns: int) -> bool:
    """Return whether a pod has been ready for ``min_ready_seconds``."""
    if not pod.ready:
        return False
    if min_ready_seconds == 0:
        return True
    since = pod.ready_since_ns
    return since is not None and since + min_ready_seconds * NS_PER_SECOND <= now_ns


def next_availability_check(
    pods: Iterable[OwnedPod], min_ready_seconds: int, status_ns: int, now_ns: int
) -> float | None:
    """Return the seconds until the next pod becomes available; None if none is pending.

    The pods that are not available yet are determined at ``status_ns``, the time of the status; the
    delay is measured from ``now_ns``. A pod that has become available in between gives a delay of
    0.
    """
    wait_ns = min_ready_seconds * NS_PER_SECOND
    moments = (
        pod.ready_since_ns + wait_ns
        for pod in pods
        if pod.ready and pod.ready_since_ns is not None and wait_ns > 0
    )
    first = min((moment for moment in moments if moment > status_ns), default=None)
    return None if first is None else max(0, first - now_ns) / NS_PER_SECOND


def get_condition(
    conditions: Iterable[ReplicaSetCondition], type_: str
) -> ReplicaSetCondition | None:
    """Return the condition of a type, or None."""
    return next((each for each in conditions if each.type == type_), None)


def with_condition(conditions: Conditions, condition: ReplicaSetCondition) -> Conditions:
    """Return the conditions with one set; one of equal status and reason is left unchanged."""
    old = get_condition(conditions, condition.type)
    if old and (old.status, old.reason) == (condition.status, condition.reason):
        return conditions
    return (*without_condition(conditions, condition.type), condition)


def without_condition(conditions: Conditions, type_: str) -> Conditions:
    """Return the conditions without those of a type."""
    return tuple(each for each in conditions if each.type != type_)


def _conditions(
    replica_set: ReplicaSet, active: int, failure: str | None, now: str
) -> Conditions | None:
    before = replica_set.status.conditions or ()
    if failure is None:
        return without_condition(before, REPLICA_FAILURE)
    if get_condition(before, REPLICA_FAILURE) is not None:
        return before
    difference = active - replica_set.replicas
    reason = "FailedCreate" if difference < 0 else "FailedDelete" if difference > 0 else ""
    return with_condition(
        before, ReplicaSetCondition(REPLICA_FAILURE, "True", now, reason, failure)
    )


class _UnchangedFields(Struct):
    """The fields that are sent back unchanged; list items do not state their kind."""

    metadata: msgspec.Raw
    spec: msgspec.Raw = msgspec.Raw(b"{}")


_unchanged_fields = msgspec.json.Decoder(_UnchangedFields)
_decode = response_decoder(f"a {KIND}", decode_replica_set)


async def write_status(
    client: Client, replica_set: ReplicaSet, status: ReplicaSetStatus
) -> ReplicaSet:
    """Write a status if it differs, and return the ReplicaSet as stored afterwards.

    observedGeneration is the generation that the status was calculated for, even if the status is
    written onto a newer one. After any error the ReplicaSet is read from the server and the status
    is written once more; a second error, one of ``SYNC_ERRORS``, is raised.
    """
    if not status_differs(replica_set, status):
        return replica_set
    status = replace(status, observed_generation=replica_set.metadata.generation)
    try:
        return await _put(client, replica_set, status)
    except SYNC_ERRORS:
        meta = replica_set.metadata
        path = REPLICA_SETS.object(meta.name, meta.namespace)
        return await _put(client, await client.get(path, _decode), status)


async def _put(client: Client, replica_set: ReplicaSet, status: ReplicaSetStatus) -> ReplicaSet:
    meta, unchanged = replica_set.metadata, _unchanged_fields.decode(replica_set.document)
    body = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": unchanged.metadata,
        "spec": unchanged.spec,
        "status": status_document(status),
    }
    path = REPLICA_SETS.object(meta.name, meta.namespace).subresource("status")
    return await client.update(path, msgspec.json.encode(body), _decode)
