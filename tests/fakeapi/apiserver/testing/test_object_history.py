"""Histories of a kind, and invariants over them."""

from __future__ import annotations

import pytest

from fakeapi.apiserver.endpoints import Api, StatusError
from fakeapi.apiserver.testing.object_history import (
    InvariantError,
    ObjectHistory,
    find_kind,
    read_history,
)
from tests.fakeapi.api_requests import MAPS, Ask


def history(api: Api, word: str = "cm", namespace: str = "", name: str = "") -> ObjectHistory:
    return read_history(api.store, find_kind(api.kinds, word), namespace, name)


def create(ask: Ask, *names: str) -> None:
    for name in names:
        assert ask("POST", MAPS, {"metadata": {"name": name}})[0] == 201


def shown(changes: ObjectHistory) -> list[tuple[str, str]]:
    return [(change.type, change.object["metadata"]["name"]) for change in changes]


def test_a_history_has_all_changes_in_order(api: Api, ask: Ask) -> None:
    create(ask, "a", "b")
    ask("DELETE", f"{MAPS}/a")
    assert shown(history(api)) == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]
    assert shown(history(api, "configmaps", "default", "b")) == [("ADDED", "b")]
    assert shown(history(api, "configmaps", "kube-system")) == []
    assert history(api)[0].object["kind"] == "ConfigMap"


@pytest.mark.parametrize("word", ["pods", "Pod", "pod", "po"])
def test_a_kind_has_the_names_that_kubectl_knows(api: Api, word: str) -> None:
    assert find_kind(api.kinds, word).kind == "Pod"


def test_a_kind_may_be_named_with_its_group(api: Api) -> None:
    assert find_kind(api.kinds, "leases.coordination.k8s.io").kind == "Lease"
    with pytest.raises(StatusError, match="no kind 'gadgets'"):
        find_kind(api.kinds, "gadgets")


def test_a_violated_invariant_is_reported_with_its_version(api: Api, ask: Ask) -> None:
    create(ask, "a", "b")
    ask("DELETE", f"{MAPS}/a")
    history(api).always(lambda present: len(present) <= 2)
    with pytest.raises(InvariantError) as broken:
        history(api).always(lambda present: len(present) <= 1)
    assert str(broken.value).startswith("it did not hold after version ")
    assert str(broken.value).endswith(": ADDED default/b; there was: default/a, default/b")


def test_after_a_compaction_a_history_begins_with_the_objects_of_then(api: Api, ask: Ask) -> None:
    create(ask, "a", "b")
    api.store.compact(api.store.version)
    create(ask, "c")
    changes = history(api)
    assert [thing["metadata"]["name"] for thing in changes.before] == ["a", "b"]
    assert [len(present) for present in changes.states()] == [2, 3]
    with pytest.raises(InvariantError, match="in the beginning"):
        changes.always(lambda present: not present)
