"""The store: versions, history, compaction and older states."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapi.apiserver.kinds.builtin import NODES, PODS
from fakeapi.apiserver.store.object_store import Entry, Store, StoreEvent
from fakeapi.apiserver.store.store_errors import (
    AlreadyExistsError,
    ConflictError,
    ExpiredError,
    NotFoundError,
)


def document(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}", "labels": labels}}


def shown(events: Any) -> list[tuple[int, str, str]]:
    return [(event.version, event.type, event.entry.key) for event in events]


def test_every_write_of_any_resource_takes_the_next_version() -> None:
    store = Store()
    node = store.create(NODES, "n", document("n"))
    pod = store.create(PODS, "x/p", document("p"))
    changed = store.update(NODES, "n", document("n", a="b"), node.version)
    gone = store.delete(PODS, "x/p", document("p"), pod.version)
    assert [node.version, pod.version, changed.version, gone.version] == [1, 2, 3, 4]
    assert gone.document()["metadata"]["resourceVersion"] == "4"


def test_a_name_can_be_created_once() -> None:
    store = Store()
    store.create(NODES, "n", document("n"))
    with pytest.raises(AlreadyExistsError):
        store.create(NODES, "n", document("n"))
    assert store.version == 1


def test_a_write_based_on_an_older_version_is_refused() -> None:
    store = Store()
    first = store.create(NODES, "n", document("n"))
    store.update(NODES, "n", document("n", a="b"), first.version)
    with pytest.raises(ConflictError):
        store.update(NODES, "n", document("n"), first.version)
    with pytest.raises(ConflictError):
        store.delete(NODES, "n", document("n"), first.version)
    with pytest.raises(NotFoundError):
        store.delete(NODES, "m", document("m"), 1)


def test_keys_are_in_etcds_order() -> None:
    store = Store()
    for key in ("b/x", "a/y", "a-b/x", "a/x"):
        store.create(PODS, key, document(key.partition("/")[2]))
    assert [entry.key for entry in store.entries(PODS)] == ["a-b/x", "a/x", "a/y", "b/x"]
    assert [entry.key for entry in store.entries(PODS, "a")] == ["a/x", "a/y"]
    assert [entry.key for entry in store.entries(PODS, "a", "a/x\0")] == ["a/y"]
    assert [entry.key for entry in store.entries(PODS, "a", "z")] == []


def test_an_older_state_is_the_present_one_with_later_events_undone() -> None:
    store = Store()
    a = store.create(NODES, "a", document("a"))
    b = store.create(NODES, "b", document("b"))
    store.update(NODES, "a", document("a", v="2"), a.version)
    store.delete(NODES, "b", document("b"), b.version)
    store.create(NODES, "c", document("c"))
    assert list(store.entries_at(NODES, 2)) == [a, b]
    assert [entry.key for entry in store.entries_at(NODES, 4)] == ["a"]


def test_history_keeps_at_least_the_configured_number_of_events() -> None:
    store = Store(history=10)
    for index in range(100):
        store.create(NODES, f"n{index}", document(f"n{index}"))
    assert len(store.since(NODES, 90)) == 10
    with pytest.raises(ExpiredError) as expired:
        store.since(NODES, 1)
    assert str(expired.value).startswith("too old resource version: 1 (")


def test_compaction_forgets_the_events_of_every_resource_up_to_a_version() -> None:
    store = Store()
    store.create(NODES, "a", document("a"))
    store.create(PODS, "x/a", document("a"))
    store.create(NODES, "b", document("b"))
    store.compact(2)
    assert shown(store.since(NODES, 2)) == [(3, "ADDED", "b")]
    for kind in (NODES, PODS):
        with pytest.raises(ExpiredError):
            store.since(kind, 1)
    store.compact(1_000)
    assert shown(store.since(NODES, 3)) == []


def test_after_clearing_versions_go_on_and_all_history_is_gone() -> None:
    store = Store()
    store.create(NODES, "a", document("a"))
    store.clear()
    assert store.entries(NODES) == []
    with pytest.raises(ExpiredError):
        store.since(NODES, 1)
    assert store.create(NODES, "a", document("a")).version == 3


def test_listeners_are_called_for_their_resource_until_they_stop() -> None:
    store, versions = Store(), []
    stop = store.listen(NODES, lambda: versions.append(store.version))
    store.create(NODES, "a", document("a"))
    store.create(PODS, "x/a", document("a"))
    stop()
    store.create(NODES, "b", document("b"))
    assert versions == [1]


def test_selectable_fields_are_read_at_each_write() -> None:
    pod = document("p") | {"spec": {"nodeName": "n1", "hostNetwork": True}}
    entry = Store().create(PODS, "x/p", pod)
    fields = dict(zip((f.label for f in PODS.fields), entry.fields, strict=True))
    assert fields["spec.nodeName"] == "n1"
    assert fields["spec.hostNetwork"] == "true"
    assert fields["status.phase"] == ""


Write = tuple[str, str]
writes = st.lists(
    st.tuples(st.sampled_from("cud"), st.sampled_from(("a", "b", "c/d"))), max_size=40
)


def perform(store: Store, script: list[Write]) -> list[list[Entry]]:
    """Run the writes that the state allows; return the state at each version, from version 0."""
    states: list[list[Entry]] = [[]]
    for verb, name in script:
        present = store.get(NODES, name)
        if verb == "c" and present is None:
            store.create(NODES, name, document(name))
        elif verb == "u" and present is not None:
            store.update(NODES, name, document(name), present.version)
        elif verb == "d" and present is not None:
            store.delete(NODES, name, document(name), present.version)
        else:
            continue
        states.append(list(store.entries(NODES)))
    return states


def replay(state: list[Entry], events: list[StoreEvent]) -> list[Entry]:
    objects = {entry.key: entry for entry in state}
    for event in events:
        if event.type == "DELETED":
            del objects[event.entry.key]
        else:
            assert (event.type == "ADDED") is (event.entry.key not in objects)
            objects[event.entry.key] = event.entry
    return [objects[key] for key in sorted(objects)]


@given(writes)
def test_versions_strictly_grow_by_one_per_write(script: list[Write]) -> None:
    store = Store()
    states = perform(store, script)
    assert [event.version for event in store.history()] == list(range(1, len(states)))


@given(writes)
def test_any_older_state_can_be_listed(script: list[Write]) -> None:
    store = Store()
    states = perform(store, script)
    for version, state in enumerate(states):
        assert list(store.entries_at(NODES, version)) == state


@given(writes, writes)
def test_a_state_that_was_listed_is_the_same_after_more_writes(
    script: list[Write], more: list[Write]
) -> None:
    store = Store()
    states = perform(store, script)
    for version in range(len(states)):
        store.entries_at(NODES, version)
    perform(store, more)
    for version, state in enumerate(states):
        assert list(store.entries_at(NODES, version)) == state


def test_a_compaction_discards_the_states_that_were_listed() -> None:
    store = Store()
    for name in "abc":
        store.create(NODES, name, document(name))
    assert len(store.entries_at(NODES, 1)) == 1
    store.compact(2)
    store.expire_reads(2)
    with pytest.raises(ExpiredError):
        store.entries_at(NODES, 1)


@given(writes, st.integers(1, 5))
def test_a_retained_version_and_the_events_since_give_the_present_state(
    script: list[Write], history: int
) -> None:
    store = Store(history)
    states = perform(store, script)
    for version, state in enumerate(states):
        try:
            events = list(store.since(NODES, version))
        except ExpiredError:
            assert len(states) - 1 - version > history
            continue
        assert [event.version for event in events] == list(range(version + 1, len(states)))
        assert replay(state, events) == states[-1]


@given(writes, writes)
def test_a_restored_store_equals_the_saved_one_and_its_versions_go_on(
    before: list[Write], after: list[Write]
) -> None:
    store = Store()
    perform(store, before)
    saved, state = store.fork(), list(store.entries(NODES))
    perform(store, after)
    version = store.version
    store.restore(saved)
    assert list(store.entries(NODES)) == list(saved.entries(NODES)) == state
    assert store.version == version + 1
    with pytest.raises(ExpiredError):
        store.since(NODES, version)
    assert store.since(NODES, store.version) == []


@given(writes, writes, writes)
def test_a_fork_and_its_origin_share_the_past_only(
    before: list[Write], here: list[Write], there: list[Write]
) -> None:
    origin, alone = Store(), Store()
    perform(origin, before)
    fork, shared = origin.fork(), list(origin.history())
    perform(origin, here)
    perform(fork, there)
    perform(alone, before + there)
    assert list(fork.history())[: len(shared)] == shared
    assert list(fork.history()) == list(alone.history())
    assert list(fork.entries(NODES)) == list(alone.entries(NODES))


def test_a_saved_store_can_be_restored_again_and_again() -> None:
    store = Store()
    store.create(NODES, "a", document("a"))
    saved = store.fork()
    for _ in range(3):
        entry = store.get(NODES, "a")
        assert entry is not None
        store.delete(NODES, "a", document("a"), entry.version)
        store.create(PODS, "x/p", document("p"))
        store.restore(saved)
        assert [entry.key for entry in store.entries(NODES)] == ["a"]
        assert store.entries(PODS) == []


def test_listeners_are_called_after_a_restore() -> None:
    store, versions = Store(), []
    saved = store.fork()
    store.listen(NODES, lambda: versions.append(store.version))
    store.restore(saved)
    assert versions == [1]
