"""The inventory: which pods are on which nodes, for any events of the informers."""

from __future__ import annotations

from extender.eviction.advise.node_inventory import AdvisedNodeStore, AdvisedPodStore, NodeInventory
from extender.kube.decoders.node_hosts import AdvisedNode, AdvisedPod
from tests.builders.eviction import evictable


def on(node: str, name: str, *, active: bool = True) -> AdvisedPod:
    return AdvisedPod(f"default/{name}", node, evictable(name), active=active)


def names(occupants: list[AdvisedPod]) -> list[str]:
    return [each.key.removeprefix("default/") for each in occupants]


def test_pods_are_found_by_their_nodes() -> None:
    kept = AdvisedPodStore()
    kept.replace([on("a", "x"), on("b", "y"), on("a", "z")])
    assert (names(kept.pods_on("a")), names(kept.pods_on("b")), kept.pods_on("c")) == (
        ["x", "z"],
        ["y"],
        [],
    )
    kept.upsert(on("b", "x"))  # made anew elsewhere
    kept.remove(on("b", "y"))
    kept.remove(on("b", "unknown"))
    assert (names(kept.pods_on("a")), names(kept.pods_on("b"))) == (["z"], ["x"])
    kept.replace([on("c", "w")])
    assert (kept.pods_on("a"), names(kept.pods_on("c"))) == ([], ["w"])


def test_nodes_are_added_and_deleted() -> None:
    hosts = AdvisedNodeStore()
    hosts.replace([AdvisedNode("a"), AdvisedNode("b")])
    hosts.upsert(AdvisedNode("b", unschedulable=True))
    hosts.remove(AdvisedNode("a"))
    hosts.remove(AdvisedNode("unknown"))
    assert hosts.by_name == {"b": AdvisedNode("b", unschedulable=True)}


def test_finished_pods_are_left_out() -> None:
    occupants = AdvisedPodStore()
    occupants.replace([on("a", "x"), on("a", "y", active=False)])
    assert names(NodeInventory(AdvisedNodeStore(), occupants).pods_on("a")) == ["x"]
