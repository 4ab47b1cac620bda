"""An extender that is away, slow, or answers 500; and one that sees more than it is offered."""

from __future__ import annotations

from functools import partial
from typing import Final

from tests.conformance.scheduling.kube_scheduler import ONE_NODE, Extender
from tests.conformance.scheduling.pods import host, newcomer, resident
from tests.conformance.scheduling.relay import Manner
from tests.conformance.scheduling.stage import Scene, Setting, Stage

_LICENSE: Final = "example.com/license"
_ROW: Final = 30
_IMPATIENT: Final = partial(Extender, timeout_seconds=0.5, ignorable=True)


async def _set(stage: Stage) -> None:
    """Two full nodes: on the first the cheaper pod; and a tiny one there, to be sent away."""
    await stage.load(host("node-1"), host("node-2"), resident("tiny", "node-1", "100m", 1000))
    await stage.load(
        resident("cheap", "node-1", "1900m", 1), resident("dear", "node-2", priority=5)
    )


async def _give_reason_to_try_again(stage: Stage) -> None:
    await stage.world.delete("Pod", "tiny", gracePeriodSeconds=0)


async def _the_cheap_one_goes(stage: Stage) -> None:
    assert await stage.nominated("new") == {"new": "node-1"}
    await stage.told_to_go(1)
    await stage.let_go()
    assert await stage.placed("new") == {"new": "node-1"}
    assert stage.removed() == ["cheap"]


async def an_extender_that_was_away(stage: Stage) -> None:
    """No pod is evicted while it is away; when it is back and its caches have synced, one is."""
    await _set(stage)
    await stage.extender.stop()
    await stage.world.create(newcomer("new", cpu="1900m"))
    await stage.refused("new")
    await stage.extender.start()
    await _give_reason_to_try_again(stage)
    await _the_cheap_one_goes(stage)
    assert {call.status for call in stage.relay.preempt_calls()} == {200, 502}


async def an_extender_out_of_order(stage: Stage) -> None:
    """A required extender answers 500: no pod is evicted until it recovers."""
    await _set(stage)
    stage.relay.behave(Manner.REFUSED)
    await stage.world.create(newcomer("new", cpu="1900m"))
    await stage.refused("new")
    assert stage.removed() == []
    stage.relay.behave(Manner.PASSED_ON)
    await _give_reason_to_try_again(stage)
    await _the_cheap_one_goes(stage)


async def an_extender_that_may_be_ignored(stage: Stage) -> None:
    """An ignorable extender answers 500: kube-scheduler chooses as it would alone."""
    await _set(stage)
    stage.relay.behave(Manner.REFUSED)
    await stage.world.create(newcomer("new", cpu="1900m"))
    await _the_cheap_one_goes(stage)
    assert 200 not in {call.status for call in stage.relay.preempt_calls()}


async def an_extender_that_is_slow(stage: Stage) -> None:
    """It answers after the timeout: kube-scheduler has chosen, and the pod lands."""
    await _set(stage)
    stage.relay.behave(Manner.HELD)
    await stage.world.create(newcomer("new", cpu="1900m"))
    assert await stage.nominated("new") == {"new": "node-1"}
    stage.relay.behave(Manner.PASSED_ON)
    await _the_cheap_one_goes(stage)


async def a_better_node_than_was_offered(stage: Stage) -> None:
    """Only one node is tried by kube-scheduler; the extender knows them all, and names the best."""
    await stage.load(*(host(f"node-{n}") for n in range(_ROW)))
    await stage.load(*(resident(f"pod-{n}", f"node-{n}", priority=_ROW - n) for n in range(_ROW)))
    for turn in range(1, 6):
        best = f"node-{_ROW - turn}"
        await stage.world.create(newcomer(f"new-{turn}"))
        assert await stage.nominated(f"new-{turn}") == {f"new-{turn}": best}
        await stage.told_to_go(1)
        await stage.let_go()
        assert await stage.placed(f"new-{turn}") == {f"new-{turn}": best}
    calls = stage.relay.preempt_calls()
    assert [len(call.offered) for call in calls] == [1] * 5
    assert any(call.named != call.offered for call in calls)
    assert stage.removed() == sorted(f"pod-{_ROW - turn}" for turn in range(1, 6))


async def a_resource_of_its_own(stage: Stage) -> None:
    """The extender is asked only about pods that want what it manages; others go without it."""
    await stage.load(host("node-1", others={_LICENSE: "1"}), host("node-2"))
    licensed = resident("licensed", "node-1", "1", 10, containers=[_licensed_container()])
    await stage.load(
        licensed, resident("cheap", "node-1", "1", 5), resident("other", "node-2", "2", 1)
    )
    await stage.world.create(newcomer("plain"))
    assert await stage.nominated("plain") == {"plain": "node-2"}
    await stage.told_to_go(1)
    await stage.let_go()
    await stage.placed("plain")
    assert stage.relay.calls == []
    await stage.world.create(newcomer("wants", cpu="1", others={_LICENSE: "1"}))
    assert await stage.nominated("wants") == {"wants": "node-1"}
    await stage.told_to_go(1)
    await stage.let_go()
    await stage.placed("wants")
    assert stage.removed() == ["licensed", "other"]
    assert [call.named for call in stage.relay.preempt_calls()] == [["node-1"]]


async def a_resource_left_to_it(stage: Stage) -> None:
    """A resource that kube-scheduler is to ignore, no node has to have; the cheapest pod goes."""
    await stage.load(host("node-1"), host("node-2"))
    await stage.load(
        resident("cheap", "node-1", priority=1), resident("dear", "node-2", priority=5)
    )
    await stage.world.create(newcomer("wants", others={_LICENSE: "1"}))
    assert await stage.nominated("wants") == {"wants": "node-1"}
    await stage.told_to_go(1)
    await stage.let_go()
    await stage.placed("wants")
    assert stage.removed() == ["cheap"]
    assert [call.named for call in stage.relay.preempt_calls()] == [["node-1"]]


def _licensed_container() -> dict[str, object]:
    resources = {"requests": {"cpu": "1", _LICENSE: "1"}, "limits": {_LICENSE: "1"}}
    return {"name": "main", "image": "pause", "resources": resources}


def _managed(*, ignored: bool) -> Setting:
    managed = [{"name": _LICENSE, "ignoredByScheduler": ignored}]
    return Setting(
        extender=partial(Extender, managed_resources=managed),
        serving={"managedResources": managed},
    )


SCENES: Final = [
    Scene(an_extender_that_was_away),
    Scene(an_extender_out_of_order),
    Scene(an_extender_that_may_be_ignored, Setting(extender=_IMPATIENT)),
    Scene(an_extender_that_is_slow, Setting(extender=_IMPATIENT)),
    Scene(a_better_node_than_was_offered, Setting(ONE_NODE, serving={"search": "cluster"})),
    Scene(a_resource_of_its_own, _managed(ignored=False)),
    Scene(a_resource_left_to_it, _managed(ignored=True)),
]
