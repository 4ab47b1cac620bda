"""Controller references of pods: adopted, released, left alone."""

from __future__ import annotations

from collections.abc import Sequence

from tests.builders import Document
from tests.conformance.clusters.world import World
from tests.conformance.objects import owned, replica_set, stored_pod, with_metadata
from tests.conformance.scenario_runner import Scenario

_SOMEBODY = "5e7c0b54-0000-4000-8000-000000000000"
_OWN = "11111111-1111-4111-8111-111111111111"


def _strays() -> Sequence[Document]:
    return [
        stored_pod("stray", "web", cost="20"),
        stored_pod("finished", "web", phase="Succeeded"),
        stored_pod("another", "database"),
        owned(stored_pod("theirs", "web"), "StatefulSet", "theirs", _SOMEBODY),
    ]


async def strays(world: World) -> None:
    """Orphans that match are adopted; finished and owned pods are not."""
    await world.create(replica_set("web", 2))
    await world.wait_settled()
    await world.create(stored_pod("late", "web", cost="10"))
    await world.wait_settled(lambda: world.owns("web", "late"))


def _two_pods() -> Sequence[Document]:
    return [stored_pod("a", "web", cost="10"), stored_pod("b", "web", cost="20")]


async def label_edits(world: World) -> None:
    """A pod that is relabelled is released and replaced, and adopted when it comes back."""
    await world.create(replica_set("web", 2))
    await world.wait_settled()
    await world.relabel("a", app="elsewhere")
    await world.wait_settled(lambda: not world.owns("web", "a"))
    await world.relabel("a", app="web")
    await world.wait_settled(lambda: world.owns("web", "a"))
    await world.relabel("b", app=None)
    await world.wait_settled(lambda: not world.owns("web", "b"))


def _wanderer() -> Sequence[Document]:
    return [stored_pod("wanderer", "web", cost="10")]


async def from_one_to_another(world: World) -> None:
    """A released pod is adopted by the controller whose selector it matches now."""
    await world.create(replica_set("web", 1))
    await world.create(replica_set("shop", 1))
    await world.wait_settled()
    await world.relabel("wanderer", app="shop")
    await world.wait_settled(lambda: world.owns("shop", "wanderer"))


async def one_of_the_same_name(world: World) -> None:
    """A ReplicaSet that is deleted without its pods, and made anew, takes them over."""
    await world.create(replica_set("web", 2))
    await world.wait_settled()
    await world.delete("ReplicaSet", "web", propagationPolicy="Orphan")
    await world.wait_idle(lambda: world.get("ReplicaSet", "web") is None)
    await world.create(replica_set("web", 3))
    await world.wait_settled()


async def one_on_its_way_out(world: World) -> None:
    """A ReplicaSet that is being deleted keeps counting, and neither makes nor adopts pods."""
    await world.create(with_metadata(replica_set("web", 3), finalizers=["example.com/hold"]))
    await world.wait_settled()
    await world.delete("ReplicaSet", "web")
    await world.wait_settled()
    await world.delete("Pod", world.pods_of("web")[0]["metadata"]["name"])
    await world.create(stored_pod("stray", "web"))
    await world.wait_idle(lambda: len(world.active_pods_of("web")) == 2)


def _as_it_should_be() -> Sequence[Document]:
    """Return a ReplicaSet with its pods and its status, as a controller has left them."""
    made = with_metadata(replica_set("web", 2), uid=_OWN, generation=4)
    status = {"replicas": 2, "fullyLabeledReplicas": 2, "terminatingReplicas": 0}
    pods = [owned(stored_pod(f"web-{letter}", "web"), "ReplicaSet", "web", _OWN) for letter in "ab"]
    return [{**made, "status": {**status, "observedGeneration": 4}}, *pods]


async def as_it_should_be(world: World) -> None:
    """Without anything to do nothing is written, even if labels have been edited."""
    await world.wait_settled()
    await world.patch("ReplicaSet", "web", {"metadata": {"labels": {"seen": "yes"}}})
    await world.wait_settled()


SCENARIOS = (
    Scenario(strays, _strays),
    Scenario(label_edits, _two_pods),
    Scenario(from_one_to_another, _wanderer),
    Scenario(one_of_the_same_name, run="gc"),
    Scenario(one_on_its_way_out),
    Scenario(as_it_should_be, _as_it_should_be),
)
