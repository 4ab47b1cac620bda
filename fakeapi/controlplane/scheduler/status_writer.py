"""The scheduler's writes of pod status: unschedulable, nominated, and victim conditions.

A condition keeps its transition time as long as its status is unchanged, and an unchanged condition
is not written. Every write states the pod's UID; upstream's do not.

Source: updatePod in pkg/scheduler/schedule_one.go, util.PatchPodStatus.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
import orjson

from extender.kube.controller_runtime.event_recorder import ObjectReference
from extender.kube.decoders.object_meta import format_time
from extender.kube.rest.client import Client, PatchType
from extender.kube.rest.clock import Clock
from extender.kube.rest.resources import POD_GROUPS, PODS, ObjectPath
from fakeapi.controlplane.controllers.types import decode_pod
from fakeapi.controlplane.scheduler.cache import CachedPod
from policies.kubernetes.pod_groups import PodGroup

NOTE_LENGTH_LIMIT: Final = 1024

SCHEDULED: Final = "Scheduled"
"""The reason of the condition of a pod group that is scheduled."""

_SUFFIX: Final = " ..."
_POD_GROUPS: Final = replace(POD_GROUPS, version="v1beta1")
_GROUP_CONDITION: Final = "PodGroupInitiallyScheduled"


class _GroupMeta(msgspec.Struct):
    generation: int = 0


class _GroupStatus(msgspec.Struct):
    conditions: list[dict[str, Any]] | None = None


class _GroupObject(msgspec.Struct):
    metadata: _GroupMeta
    status: _GroupStatus | None = None


_pod_groups = msgspec.json.Decoder(_GroupObject)


class _NominationStatus(msgspec.Struct, rename="camel"):
    nominated_node_name: str | None = None


class _Nominated(msgspec.Struct):
    status: _NominationStatus | None = None


_nominated = msgspec.json.Decoder(_Nominated)


@dataclass(frozen=True, slots=True)
class Nomination:
    """The node that a pod is to be nominated to; None clears the nomination."""

    node: str | None


class SchedulerStatusWriter:
    """Writes pod statuses, with the clock's timestamps."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def set_condition(
        self, pod: CachedPod, condition: Mapping[str, str], nomination: Nomination | None = None
    ) -> None:
        """Write a condition, and optionally a nomination. Raises ApiError, TransportError."""
        status: dict[str, Any] = {}
        stamped = self._with_times(pod, condition)
        if stamped is not None:
            status["conditions"] = [stamped]
        if nomination is not None and nomination.node != _nominated_node(pod):
            status["nominatedNodeName"] = nomination.node
        await self._patch(pod, status)

    async def set_group_condition(self, group: PodGroup, reason: str, message: str) -> None:
        """Write the condition of a pod group; True, once written, stays.

        Raises ApiError, MalformedError, TransportError. Source: updatePodGroupCondition.
        """
        path = _POD_GROUPS.object(group.name, group.namespace)
        found = await self._client.find(path, _pod_groups.decode)
        if found is None:
            return
        conditions = (found.status and found.status.conditions) or []
        old = next((each for each in conditions if each["type"] == _GROUP_CONDITION), {})
        generation = found.metadata.generation
        status = "True" if reason == SCHEDULED else "False"
        if old.get("status") == "True" != status:
            return
        changed = old.get("status") != status
        new = {
            "type": _GROUP_CONDITION,
            "status": status,
            "reason": reason,
            "message": message,
            **({"observedGeneration": generation} if generation else {}),
            "lastTransitionTime": (
                format_time(self._clock.now_ns()) if changed else old["lastTransitionTime"]
            ),
        }
        if new != old:
            others = [each for each in conditions if each is not old]
            body = orjson.dumps({"status": {"conditions": [*others, new]}})
            await self._client.patch(path.subresource("status"), PatchType.MERGE, body, bytes)

    async def clear_nomination(self, pod: CachedPod) -> None:
        """Clear a pod's nomination. Raises ApiError, TransportError."""
        if _nominated_node(pod) is not None:
            await self._patch(pod, {"nominatedNodeName": None})

    def _with_times(self, pod: CachedPod, condition: Mapping[str, str]) -> dict[str, Any] | None:
        """Return the condition with timestamps, or None if it is unchanged."""
        old = decode_pod(msgspec.Raw(pod.raw)).condition(condition["type"])
        if old and all(getattr(old, name, "") == value for name, value in condition.items()):
            return None
        same = old is not None and old.status == condition["status"]
        kept = old.last_transition_time if old and same else None
        now = format_time(self._clock.now_ns())
        return {"lastProbeTime": None, **condition, "lastTransitionTime": kept or now}

    async def _patch(self, pod: CachedPod, status: Mapping[str, Any]) -> None:
        if not status:
            return
        body = orjson.dumps({"metadata": {"uid": pod.uid}, "status": status})
        path = path_of(pod).subresource("status")
        await self._client.patch(path, PatchType.STRATEGIC, body, bytes)


def path_of(pod: CachedPod) -> ObjectPath:
    """Return the path of a pod."""
    return PODS.object(pod.name, pod.namespace)


def reference(pod: CachedPod) -> ObjectReference:
    """Return the object reference of Events about a pod."""
    return ObjectReference("v1", "Pod", pod.namespace, pod.name, pod.uid)


def truncate_note(message: str) -> str:
    """Truncate a message to the length limit of an Event's note."""
    if len(message) <= NOTE_LENGTH_LIMIT:
        return message
    return message[: NOTE_LENGTH_LIMIT - len(_SUFFIX)] + _SUFFIX


def _nominated_node(pod: CachedPod) -> str | None:
    status = _nominated.decode(pod.raw).status
    return (status.nominated_node_name or None) if status else None
