"""Events: what a controller tells people of an object, beside the object.

The same words about the same object become one Event whose count grows, as client-go's recorder
makes them. An Event that cannot be written is dropped: what was done is done, told or not.

Source: client-go's tools/record (event.go, events_cache.go).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

import msgspec

from extender.kube.api_error import ApiError, MalformedError
from extender.kube.client import Client, PatchType
from extender.kube.clock import Clock
from extender.kube.logs import quiet_log
from extender.kube.resources import Resource
from extender.kube.transport import TransportError

EVENTS: Final = Resource("", "v1", "events", namespaced=True)

_DEFAULT_NAMESPACE: Final = "default"
_REMEMBERED: Final = 4096


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """What an event is about; the namespace of a cluster-wide object is "" ."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    def document(self) -> dict[str, str]:
        """Give the reference as JSON has it."""
        fields = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
        }
        return {name: value for name, value in fields.items() if value}


@dataclass(slots=True)
class _Told:
    """An event that has been written: where, and how often it was meant."""

    namespace: str
    name: str
    count: int = 1


class EventRecorder:
    """Writes Events in the name of ``component``."""

    def __init__(self, client: Client, clock: Clock, component: str) -> None:
        self._client = client
        self._clock = clock
        self._component = component
        self._told: dict[tuple[ObjectReference, str, str, str], _Told] = {}
        self._last_ns = 0
        self._log = quiet_log(component=component)

    async def normal(self, about: ObjectReference, reason: str, message: str) -> None:
        """Tell of something that is as it should be."""
        await self._record(about, "Normal", reason, message)

    async def warning(self, about: ObjectReference, reason: str, message: str) -> None:
        """Tell of something that may not be."""
        await self._record(about, "Warning", reason, message)

    async def _record(self, about: ObjectReference, type_: str, reason: str, message: str) -> None:
        said = (about, type_, reason, message)
        try:
            if told := self._told.get(said):
                if await self._repeat(told):
                    return
                del self._told[said]
            self._told[said] = await self._create(about, type_, reason, message)
        except (ApiError, MalformedError, TransportError) as trouble:
            self._log.debug("event_dropped", reason=reason, error=str(trouble))
        while len(self._told) > _REMEMBERED:
            del self._told[next(iter(self._told))]

    async def _repeat(self, told: _Told) -> bool:
        patch = {"count": told.count + 1, "lastTimestamp": self._timestamp()}
        path = EVENTS.object(told.name, told.namespace)
        try:
            await self._client.patch(path, PatchType.STRATEGIC, msgspec.json.encode(patch), bytes)
        except ApiError as error:
            if error.status == 404:  # it has expired
                return False
            raise
        told.count += 1
        return True

    async def _create(self, about: ObjectReference, type_: str, reason: str, message: str) -> _Told:
        self._last_ns = max(self._last_ns + 1, self._clock.now_ns())  # two never share a name
        told = _Told(about.namespace or _DEFAULT_NAMESPACE, f"{about.name}.{self._last_ns:x}")
        now = self._timestamp()
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": told.name, "namespace": told.namespace},
            "involvedObject": about.document(),
            "reason": reason,
            "message": message,
            "source": {"component": self._component},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": type_,
            "reportingComponent": self._component,
        }
        await self._client.create(
            EVENTS.collection(told.namespace), msgspec.json.encode(event), bytes
        )
        return told

    def _timestamp(self) -> str:
        return rfc3339(self._clock.now_ns())


def rfc3339(epoch_ns: int) -> str:
    """Write a moment as Kubernetes writes times, in whole seconds."""
    return _rfc3339(epoch_ns // 10**9)


@lru_cache(maxsize=64)
def _rfc3339(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
