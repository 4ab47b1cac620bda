"""Objects are found by namespace, node and label, as they are now."""

from __future__ import annotations

from dataclasses import dataclass, field

from extender.kube.decoders.object_meta import ObjectMeta
from extender.kube.informers.indexer import (
    BY_NAMESPACE,
    BY_NODE,
    Indexer,
    namespace_of,
    node_of,
)


@dataclass
class Spec:
    """Return the node of a pod."""

    node_name: str = ""


@dataclass
class Pod:
    """No more of a pod than indexes read."""

    metadata: ObjectMeta
    spec: Spec = field(default_factory=Spec)


BY_APP = "app"


def app_of(pod: Pod) -> tuple[str, ...]:
    value = (pod.metadata.labels or {}).get("app")
    return () if value is None else (value,)


def pod(name: str, version: int = 1, *, node: str = "", **labels: str) -> Pod:
    return Pod(ObjectMeta(name, "shop", name, str(version), labels=labels), Spec(node))


def indexed() -> Indexer[Pod]:
    objects: Indexer[Pod] = Indexer()
    objects.add_index(BY_NAMESPACE, namespace_of)
    objects.add_index(BY_NODE, node_of)
    objects.add_index(BY_APP, app_of)
    return objects


def found(objects: Indexer[Pod], index: str, value: str) -> list[str]:
    return [item.metadata.name for item in objects.by(index, value)]


def test_each_index_finds_what_has_its_value() -> None:
    objects = indexed()
    objects.replace([pod("a", node="n1", app="web"), pod("b", node="n1"), pod("c")])
    assert found(objects, BY_NAMESPACE, "shop") == ["a", "b", "c"]
    assert found(objects, BY_NODE, "n1") == ["a", "b"]
    assert found(objects, BY_APP, "web") == ["a"]


def test_an_object_without_a_value_is_in_no_index() -> None:
    objects = indexed()
    objects.upsert(Pod(ObjectMeta("node-like", "", "u", "1")))
    for index in (BY_NAMESPACE, BY_NODE, BY_APP):
        assert found(objects, index, "") == []


def test_an_empty_label_is_a_value() -> None:
    objects = indexed()
    objects.upsert(pod("a", app=""))
    assert found(objects, BY_APP, "") == ["a"]


def test_a_pod_that_is_bound_or_changes_hands_is_found_where_it_is() -> None:
    objects = indexed()
    objects.upsert(pod("a", 1, app="web"))
    objects.upsert(pod("a", 2, node="n1", app="db"))
    assert found(objects, BY_APP, "web") == []
    assert found(objects, BY_APP, "db") == found(objects, BY_NODE, "n1") == ["a"]
