"""The cache: objects by key and by index, and handlers that receive every difference."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from extender.kube.decoders.object_meta import ObjectMeta, PartialObject
from extender.kube.informers.indexer import Indexer


def item(name: str, version: int = 1, uid: str = "", team: str = "red") -> PartialObject:
    labels = {"team": team}
    meta = ObjectMeta(name, "ns", uid or name, str(version), labels=labels)
    return PartialObject(meta)


def team_of(one: PartialObject) -> Sequence[str]:
    return [(one.metadata.labels or {})["team"]]


class Heard:
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


class HeardApart(Heard):
    """One that also distinguishes observed deletions from those found by a list."""

    def removed_tombstone(self, item: PartialObject) -> None:
        self.all.append(f"?{item.metadata.name}{item.metadata.resource_version}")


def listening() -> tuple[Indexer[PartialObject], Heard]:
    indexer: Indexer[PartialObject] = Indexer()
    heard = Heard()
    indexer.add_handler(heard)
    return indexer, heard


def test_handlers_hear_of_every_change() -> None:
    indexer, heard = listening()
    indexer.upsert(item("a"))
    indexer.upsert(item("a", 2))
    indexer.remove(item("a", 3))
    assert heard.all == ["+a", "a:1>2", "-a"]
    assert (len(indexer), indexer.get("ns/a")) == (0, None)


def test_a_list_is_delivered_as_its_differences() -> None:
    indexer, heard = listening()
    indexer.replace([item("a"), item("b"), item("c")])
    heard.all.clear()
    indexer.replace([item("b"), item("c", 2), item("d")])
    assert heard.all == ["-a", "c:1>2", "+d"]


def test_one_made_anew_is_another_one() -> None:
    indexer, heard = listening()
    indexer.upsert(item("a", 1, "first"))
    indexer.upsert(item("a", 5, "second"))
    assert heard.all == ["+a", "-a", "+a"]
    indexer.remove(item("a", 4, "first"))
    assert indexer.get("ns/a") is not None


def test_a_deletion_that_was_missed_leaves_a_tombstone_with_the_last_known_state() -> None:
    indexer, heard = listening()
    apart = HeardApart()
    indexer.add_handler(apart)
    indexer.replace([item("seen"), item("missed"), item("stays"), item("anew", 1, "first")])
    indexer.upsert(item("missed", 3))
    indexer.remove(item("seen", 4))
    for listener in (heard, apart):
        listener.all.clear()
    indexer.replace([item("stays"), item("anew", 9, "second")])
    assert apart.all == ["?missed3", "?anew1", "+anew"]
    assert heard.all == ["-missed", "-anew", "+anew"]


def test_a_deletion_event_has_the_last_state_of_the_object() -> None:
    indexer: Indexer[PartialObject] = Indexer()
    apart = HeardApart()
    indexer.add_handler(apart)
    indexer.upsert(item("a", 1))
    indexer.remove(item("a", 2))
    assert apart.all == ["+a", "-a"]


def test_a_late_handler_receives_all_existing_objects() -> None:
    indexer, _ = listening()
    indexer.replace([item("a"), item("b")])
    late = Heard()
    indexer.add_handler(late)
    assert late.all == ["+a", "+b"]


def test_objects_are_found_by_what_they_have_now() -> None:
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
def test_whatever_comes_the_index_is_a_scan(
    events: list[PartialObject | list[PartialObject]],
) -> None:
    indexer, heard = listening()
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
    present = [said[1:] for said in heard.all if said[0] == "+"]
    for said in heard.all:
        if said[0] == "-":
            present.remove(said[1:])
    assert sorted(present) == sorted(i.metadata.name for i in indexer.values())
