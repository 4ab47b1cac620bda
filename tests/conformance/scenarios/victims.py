"""Which pods are deleted first when there are too many."""

from __future__ import annotations

from collections.abc import Sequence

from tests.builders import Document
from tests.conformance.clusters.world import World
from tests.conformance.objects import YEAR_HOURS, deployment, owned, replica_set, stored_pod
from tests.conformance.scenario_runner import Scenario

_DEPLOYMENT = "dddddddd-dddd-4ddd-8ddd-dddddddddddd"
_SMALLER, _GREATER = (f"{digit * 8}-1111-4111-8111-111111111111" for digit in "29")


def _one_for_each_rule() -> Sequence[Document]:
    year = YEAR_HOURS
    return [
        stored_pod("a-unassigned", "web"),
        stored_pod("b-pending", "web", node="n1"),
        stored_pod("c-unknown", "web", node="n2", phase="Unknown"),
        stored_pod("d-restarted", "web", node="n3", phase="Running", restarts=7),
        stored_pod("e-young", "web", node="n4", phase="Running", hours=1),
        stored_pod("f-not-ready", "web", node="n5", phase="Running"),
        stored_pod("g-cheap", "web", node="n6", ready_hours=year, cost="-5"),
        stored_pod("h-fresh", "web", node="n7", ready_hours=1),
        stored_pod("i-smaller", "web", node="n8", ready_hours=year + 1, uid=_SMALLER),
        stored_pod("j-greater", "web", node="n9", ready_hours=year, uid=_GREATER),
        stored_pod("k-dear", "web", node="n9", ready_hours=1, cost="10"),
    ]


async def one_for_each_rule(world: World) -> None:
    """Pods that differ in one thing each, deleted one by one."""
    pods = len(_one_for_each_rule())
    await world.create(replica_set("web", pods))
    await world.wait_settled()
    for replicas in range(pods - 1, 0, -1):
        await world.scale("web", replicas)
        await world.wait_settled()


_COSTS = ("100", "-100", "+10", "007", "-08", "1.5", "", "2147483647", "2147483648", "7", "-0")


def _pods_with_costs() -> Sequence[Document]:
    """Return pods of which those that cost the same differ in their restarts."""
    return [
        stored_pod(
            f"pod-{n}", "web", node=f"n{n}", ready_hours=1, restarts=len(_COSTS) - n, cost=cost
        )
        for n, cost in enumerate(_COSTS)
    ]


async def deletion_costs(world: World) -> None:
    """Handwritten costs: a value that is no number counts as 0."""
    await world.create(replica_set("web", len(_COSTS)))
    await world.wait_settled()
    for replicas in range(len(_COSTS) - 1, 0, -1):
        await world.scale("web", replicas)
        await world.wait_settled()


def _two_of_one_deployment() -> Sequence[Document]:
    pods = (
        ("old-alone", "n1", 3),
        ("old-crowded", "n2", 1),
        ("old-busy", "n3", 2),
        ("new-a", "n2", 0),
        ("new-b", "n2", 0),
        ("new-c", "n3", 0),
        ("other-a", "n1", 0),
        ("other-b", "n1", 5),
        ("other-c", "n4", 9),
    )
    return [
        deployment("shop", _DEPLOYMENT),
        *(
            stored_pod(
                name, name.partition("-")[0], node=node, ready_hours=YEAR_HOURS, restarts=restarts
            )
            for name, node, restarts in pods
        ),
    ]


async def two_of_one_deployment(world: World) -> None:
    """Pods on a node with many of the same Deployment's go first, whichever ReplicaSet's.

    A ReplicaSet without a Deployment does not look at nodes at all.
    """
    for name in ("old", "new"):
        await world.create(owned(replica_set(name, 3), "Deployment", "shop", _DEPLOYMENT))
    await world.create(replica_set("other", 3))
    await world.wait_settled()
    for name, replicas in (("old", 2), ("old", 1), ("other", 2), ("new", 1)):
        await world.scale(name, replicas)
        await world.wait_settled()


SCENARIOS = (
    Scenario(one_for_each_rule, _one_for_each_rule),
    Scenario(deletion_costs, _pods_with_costs),
    Scenario(two_of_one_deployment, _two_of_one_deployment),
)
