"""Scenes with a real kube-scheduler: which pods go, where the pod lands, what is written."""

from __future__ import annotations

from typing import Final

from tests.conformance.scheduling.pods import admitted, budget, host, newcomer, resident
from tests.conformance.scheduling.stage import Scene, Stage


async def a_pod_that_fits(stage: Stage) -> None:
    """It is bound where there is room, and nothing else is written."""
    await stage.load(host("full"), host("free"), resident("there", "full"))
    await stage.world.create(newcomer("new"))
    assert await stage.placed("new") == {"new": "free"}
    assert stage.written() == ["POST new/binding"]


async def the_least_important_goes(stage: Stage) -> None:
    """One victim gets its condition and is deleted; when it has gone, the pod takes its place."""
    await stage.load(*(host(f"node-{n}") for n in range(3)))
    await stage.load(
        *(resident(f"pod-{n}", f"node-{n}", priority=p) for n, p in enumerate((10, 1, 5)))
    )
    await stage.world.create(newcomer("new"))
    assert await stage.nominated("new") == {"new": "node-1"}
    assert await stage.told_to_go(1) == ["pod-1"]
    told = stage.world.get("Pod", "pod-1")
    assert told is not None
    [condition] = told["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "PreemptionByScheduler")
    await stage.let_go()
    assert await stage.placed("new") == {"new": "node-1"}
    assert sorted(set(stage.written())) == [
        "DELETE pod-1",
        "PATCH new/status",
        "PATCH pod-1/status",
        "POST new/binding",
    ]


async def a_budget_spares(stage: Stage) -> None:
    """Rather than break a budget, a more important pod goes."""
    await stage.load(host("node-1"), host("node-2"), budget("held", 0, {"app": "db"}))
    await stage.load(resident("cheap", "node-1", priority=1, labels={"app": "db"}))
    await stage.load(resident("dear", "node-2", priority=10, labels={"app": "web"}))
    await stage.world.create(newcomer("new"))
    assert await stage.nominated("new") == {"new": "node-2"}
    await stage.told_to_go(1)
    await stage.let_go()
    await stage.placed("new")
    assert stage.removed() == ["dear"]


async def a_budget_gives_way(stage: Stage) -> None:
    """If there is no other way a budget is violated, as little as possible.

    It pays for the first of four pods. Those that it does not pay for are put back first.
    """
    await stage.load(host("node-1", cpu="4"), budget("one", 1, {"app": "db"}))
    for n, priority in enumerate((1, 5, 10, 10)):
        await stage.load(
            resident(f"pod-{n}", "node-1", "1", priority, labels={"app": "db"}, started=n)
        )
    await stage.world.create(newcomer("new"))
    await stage.told_to_go(2)
    await stage.let_go()
    await stage.placed("new")
    assert stage.removed() == ["pod-0", "pod-2"]
    [call] = stage.relay.preempt_calls("new")
    answered = call.answered["NodeNameToMetaVictims"]["node-1"]
    assert answered["NumPDBViolations"] == 1


async def a_promised_node_is_kept(stage: Stage) -> None:
    """Room that was made for one pod is not another's, as long as that one is no less important."""
    await stage.load(host("node-1"), host("node-2"))
    await stage.load(
        resident("cheap", "node-1", priority=1), resident("dear", "node-2", priority=5)
    )
    await stage.world.create(newcomer("first", priority=100))
    assert await stage.nominated("first") == {"first": "node-1"}
    await stage.told_to_go(1)
    await stage.world.create(newcomer("second", priority=50))
    assert await stage.nominated("second") == {"second": "node-2"}
    await stage.told_to_go(2)
    await stage.let_go()
    assert await stage.placed("first", "second") == {"first": "node-1", "second": "node-2"}
    assert stage.removed() == ["cheap", "dear"]


async def a_promise_is_taken_back(stage: Stage) -> None:
    """A more important pod takes the room that was made, and the other one has to look again.

    Release 1.30 deletes a terminating pod once more.
    """
    await stage.load(host("node-1"), resident("cheap", "node-1", priority=1))
    await stage.world.create(newcomer("first", priority=50))
    await stage.nominated("first")
    await stage.told_to_go(1)
    await stage.world.create(newcomer("second", priority=100))
    await stage.refused("second")
    await stage.let_go()
    assert await stage.placed("second") == {"second": "node-1"}
    assert stage.node_of("first") == ""
    assert set(stage.removed()) == {"cheap"}


async def two_at_once(stage: Stage) -> None:
    """Each gets a node of its own, and no pod is evicted in vain."""
    await stage.load(*(host(f"node-{n}") for n in range(4)))
    await stage.load(*(resident(f"pod-{n}", f"node-{n}", priority=n) for n in range(4)))
    await stage.load(*map(admitted, (newcomer("new-0"), newcomer("new-1"))))
    nominated = await stage.nominated("new-0", "new-1")
    assert sorted(nominated.values()) == ["node-0", "node-1"]
    await stage.told_to_go(2)
    await stage.let_go()
    assert await stage.placed("new-0", "new-1") == nominated
    assert stage.removed() == ["pod-0", "pod-1"]


SCENES: Final = [
    Scene(a_pod_that_fits),
    Scene(the_least_important_goes),
    Scene(a_budget_spares),
    Scene(a_budget_gives_way),
    Scene(a_promised_node_is_kept),
    Scene(a_promise_is_taken_back),
    Scene(two_at_once),
]
