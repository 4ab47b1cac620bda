"""Up and down."""

from __future__ import annotations

from collections.abc import Sequence

from tests.builders import Document
from tests.conformance.clusters.world import World
from tests.conformance.objects import ago, condition, replica_set, stored_pod, with_metadata
from tests.conformance.scenario_runner import Scenario


async def through_six_hundred(world: World) -> None:
    """More pods than are made or deleted at once (500), down to one, and none."""
    await world.create(replica_set("web", 0))
    await world.wait_settled()
    for replicas in (1, 10, 600, 10, 1, 0):
        await world.scale("web", replicas)
        await world.wait_settled()


def _bound_pods() -> Sequence[Document]:
    return [stored_pod(f"bound-{letter}", "web", node="n", ready_hours=1) for letter in "abc"]


async def pods_that_take_their_time(world: World) -> None:
    """Pods on a node go when their kubelet confirms it; until then they count as terminating."""
    await world.create(replica_set("web", 3))
    await world.wait_settled()
    await world.scale("web", 0)
    await world.wait_settled()
    for each in world.pods_of("web"):
        await world.delete("Pod", each["metadata"]["name"], gracePeriodSeconds=0)
        await world.wait_settled()


async def a_template_with_everything(world: World) -> None:
    """Of the template's metadata labels, annotations and finalizers are copied, and no name."""
    metadata = {
        "name": "never",
        "labels": {"app": "web", "tier": "front"},
        "annotations": {"example.com/why": "because"},
        "finalizers": ["example.com/hold"],
    }
    spec = {
        "containers": [{"name": "c", "image": "i:1", "env": [{"name": "A", "value": "é<>&"}]}],
        "initContainers": [{"name": "s", "image": "i:1", "restartPolicy": "Always"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "nodeSelector": {"disk": "fast"},
        "terminationGracePeriodSeconds": 0,
    }
    await world.create(replica_set("web", 2, template={"metadata": metadata, "spec": spec}))
    await world.wait_settled()
    await world.patch(
        "ReplicaSet", "web", {"spec": {"template": {"metadata": {"labels": {"tier": "back"}}}}}
    )
    await world.wait_settled()
    await world.scale("web", 3)
    await world.wait_settled()
    await world.scale("web", 0)
    await world.wait_settled()


async def the_longest_name(world: World) -> None:
    """A name of 253 characters leaves no room for a dash."""
    await world.create(with_metadata(replica_set("web", 1), name="a" * 253))
    await world.wait_settled()


async def several_at_a_time(world: World) -> None:
    """Twenty ReplicaSets, each with its own pods."""
    for number in range(20):
        await world.create(replica_set(f"web{number}", number % 4))
    await world.wait_settled()
    for number in range(20):
        await world.scale(f"web{number}", 3 - number % 4)
    await world.wait_settled()


async def available_after_a_time(world: World) -> None:
    """A pod is available three seconds after it became ready, without any further event."""
    await world.create(replica_set("web", 2, minReadySeconds=3))
    await world.wait_settled()
    first, second = (each["metadata"]["name"] for each in world.pods_of("web"))
    await world.report(first, phase="Running", conditions=[condition(ago(1))])
    await world.wait_settled(lambda: world.status("web").get("availableReplicas") == 1)
    await world.report(second, phase="Running", conditions=[condition(ago(0))])
    await world.until(lambda: _counts(world) == (2, 1))
    await world.wait_settled(lambda: _counts(world) == (2, 2))


def _counts(world: World) -> tuple[int, int]:
    status = world.status("web")
    return status.get("readyReplicas", 0), status.get("availableReplicas", 0)


SCENARIOS = (
    Scenario(through_six_hundred),
    Scenario(pods_that_take_their_time, _bound_pods),
    Scenario(a_template_with_everything),
    Scenario(the_longest_name),
    Scenario(several_at_a_time),
    Scenario(available_after_a_time),
)
