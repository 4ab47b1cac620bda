"""The inventory: which pods are on which nodes, whatever the informers tell."""

from __future__ import annotations

from extender.advising.inventory import Hosts, Inventory, Occupants
from extender.kube.occupants import Host, Occupant
from tests.evictions import evictable


def on(node: str, name: str, *, active: bool = True) -> Occupant:
    return Occupant(f"default/{name}", node, evictable(name), active=active)


def names(occupants: list[Occupant]) -> list[str]:
    return [each.key.removeprefix("default/") for each in occupants]


def test_pods_are_found_by_their_nodes() -> None:
    kept = Occupants()
    kept.replace([on("a", "x"), on("b", "y"), on("a", "z")])
    assert (names(kept.on("a")), names(kept.on("b")), kept.on("c")) == (["x", "z"], ["y"], [])
    kept.upsert(on("b", "x"))  # made anew elsewhere
    kept.remove(on("b", "y"))
    kept.remove(on("b", "unknown"))
    assert (names(kept.on("a")), names(kept.on("b"))) == (["z"], ["x"])
    kept.replace([on("c", "w")])
    assert (kept.on("a"), names(kept.on("c"))) == ([], ["w"])


def test_nodes_come_and_go() -> None:
    hosts = Hosts()
    hosts.replace([Host("a"), Host("b")])
    hosts.upsert(Host("b", closed=True))
    hosts.remove(Host("a"))
    hosts.remove(Host("unknown"))
    assert hosts.by_name == {"b": Host("b", closed=True)}


def test_pods_that_have_ended_are_not_there() -> None:
    occupants = Occupants()
    occupants.replace([on("a", "x"), on("a", "y", active=False)])
    assert names(Inventory(Hosts(), occupants).on("a")) == ["x"]
