"""Writes of controllers to pods: conditions, the phase Failed, and deletions.

Conditions are merged by type, as strategic merge patches do; a condition keeps its transition time
as long as its status is unchanged. Every write states the pod's UID, so that another pod of the
same name is not affected. A missing pod is no error.

Source: kubernetes/pkg/util/pod (PatchPodStatus), pkg/api/v1/pod (UpdatePodCondition),
pkg/controller/util/node (MarkPodsNotReady).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from extender.kube.decoders.object_meta import format_time
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import Client, PatchType
from extender.kube.rest.clock import Clock
from extender.kube.rest.resources import PODS, ObjectPath
from fakeapi.controlplane.controllers.types import Pod

DISRUPTED: Final[Mapping[str, str]] = {"type": "DisruptionTarget", "status": "True"}


class PodStatusWriter:
    """Writes pod conditions and deletes pods, with the clock's timestamps."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def fail_and_delete(self, pod: Pod, condition: Mapping[str, str] | None = None) -> None:
        """Delete a pod without a grace period, after failing it unless it has finished."""
        try:
            if not pod.finished:
                conditions = [self._with_times(pod, condition)] if condition else []
                await self._patch(pod, {"phase": "Failed", "conditions": conditions})
            await self._client.delete(_path(pod), uid=pod.metadata.uid, grace_period_seconds=0)
        except ApiError as error:
            _raise_unless_gone(error)

    async def disrupt_and_delete(self, pod: Pod, condition: Mapping[str, str]) -> None:
        """Set a condition and delete the pod with its own grace period."""
        try:
            await self.set_condition(pod, condition)
            await self._client.delete(_path(pod), uid=pod.metadata.uid)
        except ApiError as error:
            _raise_unless_gone(error)

    async def set_condition(self, pod: Pod, condition: Mapping[str, str]) -> None:
        """Write a condition, unless it is unchanged. Raises ApiError, TransportError."""
        old = pod.condition(condition["type"])
        if old and all(getattr(old, name, "") == value for name, value in condition.items()):
            return
        await self._patch(pod, {"conditions": [self._with_times(pod, condition)]})

    def _with_times(self, pod: Pod, condition: Mapping[str, str]) -> dict[str, Any]:
        old = pod.condition(condition["type"])
        same = old is not None and old.status == condition["status"]
        kept = old.last_transition_time if old and same else None
        now = format_time(self._clock.now_ns())
        return {"lastProbeTime": None, **condition, "lastTransitionTime": kept or now}

    async def _patch(self, pod: Pod, status: Mapping[str, Any]) -> None:
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": status}
        path = _path(pod).subresource("status")
        await self._client.patch(path, PatchType.STRATEGIC, msgspec.json.encode(patch), bytes)


def _path(pod: Pod) -> ObjectPath:
    return PODS.object(pod.metadata.name, pod.metadata.namespace)


def _raise_unless_gone(error: ApiError) -> None:
    """Raise the error again, unless the pod is gone or was replaced (404, 409)."""
    if error.status not in (404, 409):
        raise error
