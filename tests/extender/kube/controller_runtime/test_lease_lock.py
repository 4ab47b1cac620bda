"""A Lease is updated only at the version that was read; fields of others stay as they are."""

from __future__ import annotations

import pytest

from extender.kube.controller_runtime.lease_lock import LeaseLock, LeaseSpec, format_micro_time
from extender.kube.rest.api_errors import ApiError, MalformedError
from extender.kube.rest.client import Client
from extender.kube.rest.resources import LEASES
from extender.kube.rest.transport import Response
from fakeapi import VirtualCluster
from tests.builders import manifest
from tests.extender.kube.conftest import ScriptedApi, SteppedClock
from tests.stage import Stage

SPEC = LeaseSpec("a", 15, "2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:02.000000Z", 3)


def a_lock(cluster: VirtualCluster) -> LeaseLock:
    return LeaseLock(cluster.client, "default", "it")


async def test_a_written_lease_is_read(virtual_cluster: VirtualCluster) -> None:
    one, other = a_lock(virtual_cluster), a_lock(virtual_cluster)
    assert await one.read() is None
    await one.create(SPEC)
    assert await other.read() == SPEC
    await other.update(LeaseSpec("b", 20))
    assert await one.read() == LeaseSpec("b", 20)


async def test_one_of_two_writes_at_the_same_version_wins(virtual_cluster: VirtualCluster) -> None:
    one, other = a_lock(virtual_cluster), a_lock(virtual_cluster)
    await one.create(SPEC)
    with pytest.raises(ApiError, match="409 AlreadyExists"):
        await other.create(SPEC)
    await other.read()
    await one.update(SPEC)
    await one.update(LeaseSpec("a", 20))
    with pytest.raises(ApiError, match="409 Conflict"):
        await other.update(LeaseSpec("b", 15))
    assert (await Stage(virtual_cluster).get(LEASES, "it"))["spec"]["holderIdentity"] == "a"


async def test_only_the_spec_changes(virtual_cluster: VirtualCluster) -> None:
    stage = Stage(virtual_cluster)
    metadata = {"labels": {"team": "a"}, "finalizers": ["example.com/hold"]}
    stage.load(manifest("Lease", "it", metadata=metadata))
    lock = a_lock(virtual_cluster)
    assert await lock.read() == LeaseSpec()
    await lock.update(SPEC)
    lease = await stage.get(LEASES, "it")
    assert lease["metadata"]["labels"] == {"team": "a"}
    assert lease["metadata"]["finalizers"] == ["example.com/hold"]
    assert lease["spec"]["leaseTransitions"] == 3


async def test_an_invalid_lease_is_reported() -> None:
    api = ScriptedApi(SteppedClock(), Response(200, b'{"metadata":{},"spec":{"holderIdentity":7}}'))
    with pytest.raises(MalformedError, match="not a Lease"):
        await LeaseLock(Client(api), "default", "it").read()


@pytest.mark.parametrize(
    ("epoch_ns", "written"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (1_767_225_600_123_456_789, "2026-01-01T00:00:00.123456Z"),
        (1_767_225_600_000_000_999, "2026-01-01T00:00:00.000000Z"),
    ],
)
def test_times_are_written_in_microseconds(epoch_ns: int, written: str) -> None:
    assert format_micro_time(epoch_ns) == written
