"""The advisor of the local node: memory from files, pods from a cluster, notifications."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from extender.eviction.advise.run import (
    LocalNodeOptions,
    ObservationOptions,
    RunContext,
    advise_local,
)
from extender.eviction.advise.tables import round_lines
from extender.eviction.kubelet_flags import KubeletFlags
from extender.eviction.memory.cgroups import ROOT_CGROUP, MemoryReadError
from extender.kube.rest.resources import NODES
from extender.kube.rest.transport import Transport
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from tests.builders.eviction import SECOND
from tests.extender.eviction.advise.clusters import Recorder, leaking, using, watching
from tests.extender.eviction.memory.kernel_files import (
    MIB,
    TOTAL,
    USAGE,
    bare,
    hybrid,
    put,
    unified,
)
from tests.fakeapi.controlplane.kubelet.stages import KubeletStage

HARD = KubeletFlags(eviction_hard=["memory.available<2Gi"])
IDLE = 100 * MIB


class LocalAdvisor:
    """An advisor of the local node that runs in the background."""

    def __init__(
        self,
        proc: Path,
        options: ObservationOptions,
        clock: VirtualClock,
        transport: Transport | None = None,
        group: str = ROOT_CGROUP,
    ) -> None:
        self.recorder = Recorder()
        local = LocalNodeOptions(group, HARD, proc)
        around = RunContext(clock, Random(1), self.recorder)
        self.task = asyncio.create_task(advise_local(transport, local, options, around))

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.wait((self.task,))


@pytest.fixture
async def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def advisor(tmp_path: Path, clock: VirtualClock) -> AsyncIterator[LocalAdvisor]:
    """Return an advisor of a node whose memory is in a cgroup of version 1."""
    made = LocalAdvisor(hybrid(tmp_path), watching("me"), clock)
    yield made
    await made.end()


def use(tmp_path: Path, usage: int, group: str = "cgroup/memory") -> None:
    put(tmp_path, {f"{group}/memory.usage_in_bytes": f"{usage}\n"})


async def test_the_trend_is_that_of_the_local_node(
    advisor: LocalAdvisor, clock: VirtualClock, tmp_path: Path
) -> None:
    await clock.advance(1)
    for more in (1, 2):
        use(tmp_path, USAGE + more * 2**30)
        await clock.advance(15)
    [forecast] = advisor.recorder.rounds[2].forecasts[0].forecasts
    left = TOTAL - (USAGE + 2 * 2**30 - IDLE)
    assert (forecast.observation.capacity, forecast.observation.available) == (TOTAL, left)
    assert forecast.met_in_ns == pytest.approx((left - 2 * 2**30) * 15 * SECOND / 2**30)


async def test_a_kernel_notification_starts_a_round_at_once(
    advisor: LocalAdvisor, clock: VirtualClock, tmp_path: Path
) -> None:
    await clock.advance(1)
    group = tmp_path / "cgroup/memory"
    counter, _, level = (group / "cgroup.event_control").read_text().split()
    assert int(level) == TOTAL - 2 * 2**30 + IDLE
    use(tmp_path, int(level) + 1)
    advisor.recorder.over.clear()
    os.eventfd_write(int(counter), 1)
    await advisor.recorder.over.wait()
    seen = advisor.recorder.rounds[-1]
    message = f"{group}/memory.usage_in_bytes: has crossed {level} bytes"
    assert (list(seen.notifications), len(advisor.recorder.rounds)) == ([message], 2)
    [forecast] = seen.forecasts[0].forecasts
    assert forecast.met_ns == 0
    assert message in next(iter(round_lines(seen, 1)))


async def test_allocatable_memory_is_measured_if_pods_have_a_cgroup(
    tmp_path: Path, clock: VirtualClock
) -> None:
    made = LocalAdvisor(unified(tmp_path), watching("me", samples=1), clock)
    assert await made.task == 0
    [forecast] = made.recorder.rounds[0].forecasts
    left = {str(each.threshold): each.observation.available for each in forecast.forecasts}
    assert left == {
        "memory.available<2Gi": TOTAL - (4096 - 500) * MIB,
        "allocatableMemory.available<2Gi": TOTAL - (2 * 2**30 - 147483648),
    }


async def test_missing_kernel_notifiers_are_logged(tmp_path: Path, clock: VirtualClock) -> None:
    proc = bare(tmp_path)
    made = LocalAdvisor(proc, watching("me", samples=1), clock)
    assert await made.task == 0
    notes = made.recorder.rounds[0].notes["me"]
    assert notes == [f"{proc}/pressure/memory: cannot be polled: Operation not permitted"]


async def test_a_cgroup_can_be_given_for_the_node(tmp_path: Path, clock: VirtualClock) -> None:
    made = LocalAdvisor(hybrid(tmp_path), watching("me", samples=1), clock, group="self")
    assert await made.task == 0
    [forecast] = made.recorder.rounds[0].forecasts[0].forecasts
    assert forecast.observation.capacity == 512 * MIB


async def test_a_node_that_cannot_be_measured_is_refused(
    tmp_path: Path, clock: VirtualClock
) -> None:
    proc = hybrid(tmp_path)
    (proc / "meminfo").unlink()
    made = LocalAdvisor(proc, watching("me", samples=1), clock)
    with pytest.raises(MemoryReadError, match="meminfo: cannot be read"):
        await made.task


async def test_a_cluster_provides_pods_and_thresholds(stage: KubeletStage, tmp_path: Path) -> None:
    await stage.run(leaking("greedy"), using("calm"))
    await stage.passes(10)
    cluster = stage.cluster
    options = watching("n", samples=1)
    made = LocalAdvisor(hybrid(tmp_path), options, cluster.clock, cluster.local_transport())
    await stage.passes(1)
    assert await made.task == 0
    [forecast] = made.recorder.rounds[0].forecasts
    assert {each.pod.name for each in forecast.ranking} == {"greedy", "calm"}
    left = {str(each.threshold): each.observation.capacity for each in forecast.forecasts}
    assert left["memory.available<100Mi"] == TOTAL
    assert left["nodefs.available<10%"] == 20 * 2**30


async def test_without_its_kubelet_memory_is_measured(stage: KubeletStage, tmp_path: Path) -> None:
    await stage.say(NODES, "n", "{stages: [{silent: true}]}")
    await stage.passes(1)
    cluster = stage.cluster
    options = watching("n", samples=1)
    made = LocalAdvisor(hybrid(tmp_path), options, cluster.clock, cluster.local_transport())
    assert await made.task == 0
    [seen] = made.recorder.rounds
    assert seen.notes["n"][0].endswith("connection refused; only memory is reported")
    assert [str(each.threshold) for each in seen.forecasts[0].forecasts] == ["memory.available<2Gi"]
