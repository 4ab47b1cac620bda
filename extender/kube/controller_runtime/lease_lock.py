"""A Lease as the lock of leader election (resourcelock.LeaseLock): its holder and their times.

Writes are optimistic: an update is rejected (409) if the Lease has changed since it was last read
or written here, so that at most one of two candidates succeeds. Everything in the Lease but its
spec is left unchanged.

The times of the spec are informational: no candidate compares its clock with them.

Source: client-go's tools/leaderelection/resourcelock/leaselock.go.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec import Struct

from extender.kube.controller_runtime.event_recorder import EventRecorder, ObjectReference
from extender.kube.rest.client import Client, response_decoder
from extender.kube.rest.resources import LEASES

_API_VERSION: Final = "coordination.k8s.io/v1"


class LeaseSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """coordination.k8s.io/v1 LeaseSpec; times as they are written (RFC 3339, microseconds)."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None

    @property
    def holder(self) -> str:
        """The holder of the Lease, "" for none."""
        return self.holder_identity or ""

    @property
    def seconds(self) -> int:
        """The duration of the Lease after a renewal."""
        return self.lease_duration_seconds or 0

    @property
    def transitions(self) -> int:
        """The number of changes of the holder."""
        return self.lease_transitions or 0


class _Lease(Struct):
    metadata: msgspec.Raw
    spec: LeaseSpec = LeaseSpec()


class _LeaseIdentity(Struct, rename="camel"):
    uid: str = ""
    resource_version: str = ""


_decode = response_decoder("a Lease", msgspec.json.Decoder(_Lease).decode)
_identities = msgspec.json.Decoder(_LeaseIdentity)


class LeaseLock:
    """One Lease, read and written by a candidate; ``recorder`` records Events about it.

    The methods that read or write raise ApiError, MalformedError, TransportError.
    """

    def __init__(
        self, client: Client, namespace: str, name: str, recorder: EventRecorder | None = None
    ) -> None:
        self.namespace = namespace
        self.name = name
        self._client = client
        self._recorder = recorder
        self._metadata = b"{}"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def record_event(self, message: str) -> None:
        """Record an Event about the Lease as it was last read or written."""
        if self._recorder is not None:
            known = _identities.decode(self._metadata)
            identity = (self.namespace, self.name, known.uid, known.resource_version)
            lease = ObjectReference(_API_VERSION, "Lease", *identity)
            self._recorder.normal(lease, "LeaderElection", message)

    async def read(self) -> LeaseSpec | None:
        """Return the current spec; None if there is no such Lease."""
        lease = await self._client.find(LEASES.object(self.name, self.namespace), _decode)
        return None if lease is None else self._remember_metadata(lease)

    async def create(self, spec: LeaseSpec) -> None:
        """Create the Lease; a 409 means that another candidate has created it."""
        metadata = msgspec.json.encode({"name": self.name, "namespace": self.namespace})
        path = LEASES.collection(self.namespace)
        self._remember_metadata(await self._client.create(path, _encode(metadata, spec), _decode))

    async def update(self, spec: LeaseSpec) -> None:
        """Replace the spec that was last read or written; a 409 means that it has changed."""
        path, body = LEASES.object(self.name, self.namespace), _encode(self._metadata, spec)
        self._remember_metadata(await self._client.update(path, body, _decode))

    def _remember_metadata(self, lease: _Lease) -> LeaseSpec:
        self._metadata = bytes(lease.metadata)
        return lease.spec


def format_micro_time(epoch_ns: int) -> str:
    """Format a time as metav1.MicroTime."""
    seconds, rest = divmod(epoch_ns, 10**9)
    whole = datetime.fromtimestamp(seconds, UTC)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{rest // 1000:06d}Z"


def _encode(metadata: bytes, spec: LeaseSpec) -> bytes:
    head = f'{{"apiVersion":"{_API_VERSION}","kind":"Lease","metadata":'.encode()
    return b"".join((head, metadata, b',"spec":', msgspec.json.encode(spec), b"}"))
