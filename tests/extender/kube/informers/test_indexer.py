"""The cache: objects by key and by index, and handlers that receive every difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from extender.kube.decoders.object_meta import ObjectMeta, PartialObject
from extender.kube.informers.indexer import BY_NAMESPACE, BY_NODE, Indexer, namespace_of, node_of


def item(name: str, version: int = 1, uid: str = "", team: str = "red") -> PartialObject:
    labels = {"team": team}
    meta = ObjectMeta(name, "ns", uid or name, str(version), labels=labels)
    return PartialObject(meta)


def team_of(one: PartialObject) -> Sequence[str]:
    return [(one.metadata.labels or {})["team"]]


class RecordingHandler:
    """A handler that records its events."""

    def __init__(self) -> None:
        self.all: list[str] = []

    def added(self, item: PartialObject) -> None:
        self.all.append(f"+{item.metadata.name}")

    def updated(self, old: PartialObject, new: PartialObject) -> None:
        versions = (each.metadata.resource_version for each in (old, new))
        self.all.append(f"{new.metadata.name}:{'>'.join(versions)}")

    def removed(self, item: PartialObject) -> None:
        self.all.append(f"-{item.metadata.name}")


class TombstoneHandler(RecordingHandler):
    """A handler that distinguishes observed deletions from those found by a list."""

    def removed_tombstone(self, item: PartialObject) -> None:
        self.all.append(f"?{item.metadata.name}{item.metadata.resource_version}")


def listening() -> tuple[Indexer[PartialObject], RecordingHandler]:
    indexer: Indexer[PartialObject] = Indexer()
    handler = RecordingHandler()
    indexer.add_handler(handler)
    return indexer, handler


def test_handlers_receive_every_change() -> None:
    indexer, handler = listening()
    indexer.upsert(item("a"))
    indexer.upsert(item("a", 2))
    indexer.remove(item("a", 3))
    assert handler.all == ["+a", "a:1>2", "-a"]
    assert (len(indexer), indexer.get("ns/a")) == (0, None)


def test_a_list_is_delivered_as_its_differences() -> None:
    indexer, handler = listening()
    indexer.replace([item("a"), item("b"), item("c")])
    handler.all.clear()
    indexer.replace([item("b"), item("c", 2), item("d")])
    assert handler.all == ["-a", "c:1>2", "+d"]


def test_a_recreated_object_is_another_one() -> None:
    indexer, handler = listening()
    indexer.upsert(item("a", 1, "first"))
    indexer.upsert(item("a", 5, "second"))
    assert handler.all == ["+a", "-a", "+a"]
    indexer.remove(item("a", 4, "first"))
    assert indexer.get("ns/a") is not None


def test_a_deletion_that_was_missed_leaves_a_tombstone_with_the_last_known_state() -> None:
    indexer, handler = listening()
    apart = TombstoneHandler()
    indexer.add_handler(apart)
    indexer.replace([item("seen"), item("missed"), item("stays"), item("anew", 1, "first")])
    indexer.upsert(item("missed", 3))
    indexer.remove(item("seen", 4))
    for listener in (handler, apart):
        listener.all.clear()
    indexer.replace([item("stays"), item("anew", 9, "second")])
    assert apart.all == ["?missed3", "?anew1", "+anew"]
    assert handler.all == ["-missed", "-anew", "+anew"]


def test_a_deletion_event_has_the_last_state_of_the_object() -> None:
    indexer: Indexer[PartialObject] = Indexer()
    apart = TombstoneHandler()
    indexer.add_handler(apart)
    indexer.upsert(item("a", 1))
    indexer.remove(item("a", 2))
    assert apart.all == ["+a", "-a"]


def test_a_late_handler_receives_all_existing_objects() -> None:
    indexer, _ = listening()
    indexer.replace([item("a"), item("b")])
    late = RecordingHandler()
    indexer.add_handler(late)
    assert late.all == ["+a", "+b"]


def test_objects_are_found_by_their_current_values() -> None:
    indexer, _ = listening()
    indexer.upsert(item("a"))
    indexer.add_index("team", team_of)
    indexer.upsert(item("b"))
    indexer.upsert(item("a", 2, team="blue"))
    assert [i.metadata.name for i in indexer.by("team", "red")] == ["b"]
    assert [i.metadata.name for i in indexer.by("team", "blue")] == ["a"]
    assert list(indexer.by("team", "green")) == []


_items = st.builds(
    item,
    st.sampled_from("abc"),
    st.integers(1, 3),
    st.sampled_from(["", "x"]),
    st.sampled_from(["red", "blue"]),
)


@given(st.lists(st.one_of(_items, st.lists(_items, unique_by=lambda i: i.metadata.name))))
def test_the_index_equals_a_scan_after_any_events(
    events: list[PartialObject | list[PartialObject]],
) -> None:
    indexer, handler = listening()
    indexer.add_index("team", team_of)
    for index, event in enumerate(events):
        if isinstance(event, list):
            indexer.replace(event)
        elif index % 3:
            indexer.upsert(event)
        else:
            indexer.remove(event)
    for team in ("red", "blue"):
        found = {i.metadata.name for i in indexer.by("team", team)}
        assert found == {i.metadata.name for i in indexer.values() if team_of(i) == [team]}
    present = [change[1:] for change in handler.all if change[0] == "+"]
    for change in handler.all:
        if change[0] == "-":
            present.remove(change[1:])
    assert sorted(present) == sorted(i.metadata.name for i in indexer.values())


@dataclass
class Spec:
    """The node of a pod."""

    node_name: str = ""


@dataclass
class Pod:
    """The fields of a pod that indexes read."""

    metadata: ObjectMeta
    spec: Spec = field(default_factory=Spec)


BY_APP = "app"


def app_of(pod: Pod) -> tuple[str, ...]:
    value = (pod.metadata.labels or {}).get("app")
    return () if value is None else (value,)


def indexed_pod(name: str, version: int = 1, *, node: str = "", **labels: str) -> Pod:
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
    objects.replace(
        [indexed_pod("a", node="n1", app="web"), indexed_pod("b", node="n1"), indexed_pod("c")]
    )
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
    objects.upsert(indexed_pod("a", app=""))
    assert found(objects, BY_APP, "") == ["a"]


def test_a_changed_pod_is_found_by_its_new_values() -> None:
    objects = indexed()
    objects.upsert(indexed_pod("a", 1, app="web"))
    objects.upsert(indexed_pod("a", 2, node="n1", app="db"))
    assert found(objects, BY_APP, "web") == []
    assert found(objects, BY_APP, "db") == found(objects, BY_NODE, "n1") == ["a"]
