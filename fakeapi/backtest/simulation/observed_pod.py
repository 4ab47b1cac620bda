"""Pods as an observer decodes them: what their work and its end can be read from."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from extender.kube.decoders.object_meta import parse_time

_SECOND_NS: Final = 10**9


class _Moment(Struct, rename="camel"):
    started_at: str = ""
    finished_at: str = ""


class _ContainerState(Struct):
    running: _Moment | None = None
    terminated: _Moment | None = None


class _ContainerStatus(Struct):
    state: _ContainerState = msgspec.field(default_factory=_ContainerState)


class _Condition(Struct):
    type: str = ""
    status: str = ""


class _PodStatus(Struct, rename="camel"):
    phase: str = ""
    conditions: list[_Condition] = []
    container_statuses: list[_ContainerStatus] = []


class _PodSpec(Struct, rename="camel"):
    node_name: str = ""


class _PodMeta(Struct):
    name: str
    namespace: str
    uid: str
    labels: dict[str, str] = {}


class ObservedPod(Struct):
    """A pod: its identity, its node, and its status."""

    metadata: _PodMeta
    spec: _PodSpec
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)

    @property
    def is_disrupted(self) -> bool:
        """Whether it has the condition DisruptionTarget."""
        conditions = self.status.conditions
        return any(each.type == "DisruptionTarget" and each.status == "True" for each in conditions)

    @property
    def started_ns(self) -> int:
        """When its first container started, in nanoseconds since the epoch; 0 if none has."""
        for container in self.status.container_statuses:
            moment = container.state.running or container.state.terminated
            if moment is not None and moment.started_at:
                return parse_time(moment.started_at)
        return 0

    def ran_ns(self, now_ns: int) -> int:
        """Return how long its first container has run, in whole seconds."""
        started_ns = self.started_ns
        if not started_ns:
            return 0
        states = (container.state for container in self.status.container_statuses)
        ended = [state.terminated for state in states if state.terminated is not None]
        until_ns = parse_time(ended[0].finished_at) if ended else now_ns
        return max(0, until_ns - started_ns) // _SECOND_NS * _SECOND_NS


decode_observed_pod: Final = msgspec.json.Decoder(ObservedPod).decode
"""Decode a pod from JSON. Raises msgspec.ValidationError."""
