"""The order of pods: priorities, gates, scheduler names, backoff, and events that wake pods."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from extender.kube.rest.resources import NODES, PODS
from tests.builders import Document, manifest
from tests.fakeapi.controlplane.scheduler.stages import (
    SchedulerStage,
    SetScheduler,
    X,
    configured,
    node,
    passing,
    pod,
)


async def test_pods_are_scheduled_by_priority_and_then_by_age(schedule: SetScheduler) -> None:
    stage = await schedule(extenders={X: passing})
    stage.cluster.control_plane["scheduler"].pause()
    stage.load(node("a", "9"))
    for name, priority in (("low", 1), ("first", 5), ("high", 9), ("second", 5)):
        stage.load(pod(name, "100m", priority=priority))
        await stage.passes(0.1)
    switch = stage.cluster.control_plane["scheduler"]
    assert switch.pending == 4
    assert await switch.step() == "default/high"
    switch.resume()
    await stage.passes(1)
    assert stage.asked() == ["high", "first", "second", "low"]


async def test_a_gated_pod_waits_for_its_gates(schedule: SetScheduler) -> None:
    stage = await schedule(node("a"))
    await stage.run(pod("p", spec={"schedulingGates": [{"name": "quota"}]}), seconds=400)
    assert await stage.places() == {"p": ""}
    assert (await stage.refusal("p"))[0] == "SchedulingGated"
    await stage.patch(PODS, "p", {"spec": {"schedulingGates": None}})
    assert await stage.places(after=0.1) == {"p": "a"}


async def test_pods_of_other_schedulers_stay_pending(schedule: SetScheduler) -> None:
    profiles = [{"schedulerName": "gold"}, {"schedulerName": "silver"}]
    stage = await schedule(node("a", "9"), scheduler={"profiles": profiles})
    for name in ("gold", "silver", "bronze", "default-scheduler"):
        stage.load(pod(name, spec={"schedulerName": name}))
    await stage.passes(1)
    places = {"gold": "a", "silver": "a", "bronze": "", "default-scheduler": ""}
    assert await stage.places() == places
    assert await stage.sources("Scheduled") == {"gold": "gold", "silver": "silver"}


async def test_profiles_filter_by_their_own_rules(schedule: SetScheduler) -> None:
    off = {"filter": {"disabled": [{"name": "TaintToleration"}]}}
    profiles = [{"schedulerName": "bold", "plugins": off}, {"schedulerName": "shy"}]
    stage = await schedule(scheduler={"profiles": profiles})
    stage.load(node("a", "9", taints=["k=v:NoSchedule"]))
    stage.load(*(pod(name, spec={"schedulerName": name}) for name in ("bold", "shy")))
    assert await stage.places(after=1) == {"bold": "a", "shy": ""}


async def test_a_pod_without_nodes_is_unschedulable_until_one_joins(schedule: SetScheduler) -> None:
    stage = await schedule()
    await stage.run(pod("p"), seconds=1)
    assert await stage.refusal("p") == ("Unschedulable", "no nodes available to schedule pods")
    await stage.run(node("a"), seconds=10)
    assert await stage.places() == {"p": "a"}


async def tried_at(stage: SchedulerStage, seconds: float) -> list[float]:
    """Return when the pod p is marked unschedulable, in seconds from now."""
    begun = stage.cluster.clock.now_ns()
    before = {each["metadata"]["name"] for each in await stage.events_about("p")}
    tried: list[float] = []
    for _ in range(round(seconds * 2)):
        await stage.passes(0.5)
        counts = [each["count"] for each in await stage.events_about("p")]
        tried += [(stage.cluster.clock.now_ns() - begun) / 1e9] * (sum(counts) - len(tried))
    assert before == set()
    return tried


async def test_an_unschedulable_pod_is_retried_after_five_minutes(schedule: SetScheduler) -> None:
    stage = await schedule(node("a"), pod("p", "8"))
    assert await tried_at(stage, 302) == [0.5, 300]


async def fits_once(stage: SchedulerStage, change: Any) -> None:
    """Check that p is pending until a change."""
    assert (await stage.places(after=5))["p"] == ""
    await change
    assert (await stage.places(after=0.5))["p"] == "a"


PENDING = pod("p")
OLD = pod("old", "2", on="a")
TERM = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}
AFFINITY = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}
GROWN = {"status": {"allocatable": {"cpu": "4"}}}
TOLERANT = {"spec": {"tolerations": [{"operator": "Exists"}]}}
Change = Callable[[SchedulerStage], Coroutine[Any, Any, None]]

WAKING: dict[str, tuple[Sequence[Document], Change]] = {
    "a node grows": ([node("a"), pod("p", "4")], lambda stage: stage.patch(NODES, "a", GROWN)),
    "a pod is deleted": ([node("a"), OLD, PENDING], lambda stage: stage.end("old")),
    "a pod terminates": (
        [node("a"), OLD, PENDING],
        lambda stage: stage.patch(PODS, "old", {"status": {"phase": "Succeeded"}}),
    ),
    "a pod for its affinity": (
        [node("a", labels={"zone": "1"}), pod("p", spec={"affinity": AFFINITY})],
        lambda stage: stage.run(pod("db", "100m", labels={"app": "db"})),
    ),
    "the pod changes": (
        [node("a", taints=["k=v:NoSchedule"]), PENDING],
        lambda stage: stage.patch(PODS, "p", TOLERANT),
    ),
}


@pytest.mark.parametrize("name", WAKING)
async def test_a_change_that_may_help_wakes_a_pod(schedule: SetScheduler, name: str) -> None:
    objects, change = WAKING[name]
    stage = await schedule(*objects)
    await fits_once(stage, change(stage))


async def test_a_bound_claim_wakes_a_pod(schedule: SetScheduler) -> None:
    stage = await schedule()
    common = {"accessModes": ["ReadWriteOnce"], "storageClassName": "s"}
    size, reference = {"storage": "1Gi"}, {"name": "data", "namespace": "default"}
    bound = {**common, "volumeName": "v", "resources": {"requests": size}}
    claim = manifest("PersistentVolumeClaim", "data", spec=bound, status={"phase": "Bound"})
    spec = {**common, "capacity": size, "hostPath": {"path": "/v"}, "claimRef": reference}
    volume = manifest("PersistentVolume", "v", spec=spec)
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    stage.load(node("a"), pod("p", spec={"volumes": volumes}))

    async def bind() -> None:
        claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        stage.load(volume, claim)

    await fits_once(stage, bind())


async def test_a_pod_that_is_being_deleted_is_not_placed(schedule: SetScheduler) -> None:
    stage = await schedule()
    terminating = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.example/b"]}
    stage.load(pod("p", metadata=terminating), node("a"))
    assert await stage.places(after=1) == {"p": ""}
    skipped = [("p", "skip schedule deleting pod: default/p")]
    assert await stage.messages("FailedScheduling") == skipped


async def test_a_restarted_scheduler_continues(schedule: SetScheduler) -> None:
    stage = await schedule()
    switch = stage.cluster.control_plane["scheduler"]
    stage.load(node("a"))
    await switch.stop()
    await stage.run(pod("p"), seconds=5)
    assert await stage.places() == {"p": ""}
    switch.start()
    assert await stage.places(after=0.5) == {"p": "a"}


async def test_a_configured_extender_is_called_once(schedule: SetScheduler) -> None:
    stage = await schedule(extenders={f"{X}/": passing}, scheduler=configured({}))
    stage.load(node("a"), pod("p"))
    await stage.passes(0.5)
    assert len(stage.trace) == 1


async def test_forks_have_a_trace_of_their_own(schedule: SetScheduler) -> None:
    stage = await schedule(node("a"), extenders={X: passing})
    async with stage.cluster.fork() as fork:
        fork.load([pod("p")])
        await fork.clock.advance(0.5)
        assert [each.pod for each in fork.scheduler.trace] == ["default/p"]
    assert len(stage.trace) == 0
