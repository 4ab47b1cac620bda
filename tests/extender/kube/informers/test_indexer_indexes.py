"""Objects are found by namespace, controller, node and label, as they are now."""

from __future__ import annotations

from dataclasses import dataclass, field

from extender.kube.decoders.object_meta import ObjectMeta, OwnerReference
from extender.kube.informers.indexer import (
    BY_CONTROLLER,
    BY_NAMESPACE,
    BY_NODE,
    Indexer,
    by_label,
    controller_of,
    namespace_of,
    node_of,
)


@dataclass
class Spec:
    """Where a pod runs."""

    node_name: str = ""


@dataclass
class Pod:
    """No more of a pod than indexes read."""

    metadata: ObjectMeta
    spec: Spec = field(default_factory=Spec)


def pod(name: str, version: int = 1, *, node: str = "", owner: str = "", **labels: str) -> Pod:
    owners = [OwnerReference("v1", "Thing", "t", "not-the-controller")]
    if owner:
        owners.append(OwnerReference("apps/v1", "ReplicaSet", "web", owner, controller=True))
    meta = ObjectMeta(name, "shop", name, str(version), labels=labels, owner_references=owners)
    return Pod(meta, Spec(node))


def indexed() -> Indexer[Pod]:
    objects: Indexer[Pod] = Indexer()
    objects.add_index(BY_NAMESPACE, namespace_of)
    objects.add_index(BY_CONTROLLER, controller_of)
    objects.add_index(BY_NODE, node_of)
    objects.add_index(*by_label("app"))
    return objects


def found(objects: Indexer[Pod], index: str, value: str) -> list[str]:
    return [item.metadata.name for item in objects.by(index, value)]


def test_each_index_finds_what_has_its_value() -> None:
    objects = indexed()
    objects.replace([pod("a", node="n1", owner="u1", app="web"), pod("b", node="n1"), pod("c")])
    assert found(objects, BY_NAMESPACE, "shop") == ["a", "b", "c"]
    assert found(objects, BY_CONTROLLER, "u1") == ["a"]
    assert found(objects, BY_CONTROLLER, "not-the-controller") == []
    assert found(objects, BY_NODE, "n1") == ["a", "b"]
    assert found(objects, "label:app", "web") == ["a"]


def test_what_has_no_value_is_found_by_none() -> None:
    objects = indexed()
    objects.upsert(Pod(ObjectMeta("node-like", "", "u", "1")))
    for index in (BY_NAMESPACE, BY_CONTROLLER, BY_NODE, "label:app"):
        assert found(objects, index, "") == []


def test_an_empty_label_is_a_value() -> None:
    objects = indexed()
    objects.upsert(pod("a", app=""))
    assert found(objects, "label:app", "") == ["a"]


def test_a_pod_that_is_bound_or_changes_hands_is_found_where_it_is() -> None:
    objects = indexed()
    objects.upsert(pod("a", 1, owner="u1", app="web"))
    objects.upsert(pod("a", 2, owner="u2", node="n1", app="db"))
    assert found(objects, BY_CONTROLLER, "u1") == found(objects, "label:app", "web") == []
    assert found(objects, BY_CONTROLLER, "u2") == found(objects, BY_NODE, "n1") == ["a"]
