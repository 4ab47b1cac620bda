"""Lists: versions and pages."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapi.apiserver.endpoints.request_router import Api
from fakeapi.apiserver.store.object_store import Store
from tests.builders import pod_request
from tests.fakeapi.api_requests import NODES, PODS, Ask, fixed_sources, send


def names(answer: Any) -> list[str]:
    return [item["metadata"]["name"] for item in answer["items"]]


def create_nodes(ask: Ask, *names_of_nodes: str) -> None:
    for name in names_of_nodes:
        assert ask("POST", NODES, {"metadata": {"name": name}})[0] == 201


def test_a_list_has_its_kind_once_and_the_version_of_the_store(ask: Ask) -> None:
    create_nodes(ask, "b", "a")
    status, answer = ask("GET", NODES)
    assert (status, list(answer)) == (200, ["kind", "apiVersion", "metadata", "items"])
    assert (answer["kind"], answer["apiVersion"]) == ("NodeList", "v1")
    assert answer["metadata"] == {"resourceVersion": "8"}  # after four namespaces and two classes
    assert names(answer) == ["a", "b"]
    assert "kind" not in answer["items"][0]


def test_a_namespace_is_listed_alone_or_with_all_others(ask: Ask) -> None:
    for namespace in ("default", "kube-system"):
        path = f"/api/v1/namespaces/{namespace}/pods"
        ask("POST", path, pod_request(f"in-{namespace}"))
    assert names(ask("GET", PODS)[1]) == ["in-default"]
    assert names(ask("GET", "/api/v1/pods")[1]) == ["in-default", "in-kube-system"]


def test_pages_show_the_state_of_the_first_despite_writes_between(ask: Ask) -> None:
    create_nodes(ask, "a", "b", "c", "d")
    _, first = ask("GET", NODES, limit="2")
    assert first["metadata"]["remainingItemCount"] == 2
    create_nodes(ask, "bb", "e")
    ask("DELETE", f"{NODES}/c")
    _, second = ask("GET", NODES, limit="2", **{"continue": first["metadata"]["continue"]})
    assert names(first) + names(second) == ["a", "b", "c", "d"]
    assert second["metadata"] == {"resourceVersion": first["metadata"]["resourceVersion"]}


def test_pages_of_a_selection_do_not_count_remaining_items(ask: Ask) -> None:
    create_nodes(ask, "a", "b", "c")
    selector = "metadata.name!=b"
    _, first = ask("GET", NODES, limit="1", fieldSelector=selector)
    assert set(first["metadata"]) == {"resourceVersion", "continue"}
    token = first["metadata"]["continue"]
    _, second = ask("GET", NODES, limit="1", fieldSelector=selector, **{"continue": token})
    assert names(first) + names(second) == ["a", "c"]
    assert "continue" not in second["metadata"]


def test_an_expired_token_is_gone_with_a_new_token(api: Api, ask: Ask) -> None:
    create_nodes(ask, "a", "b", "c")
    _, first = ask("GET", NODES, limit="1")
    create_nodes(ask, "d")
    api.store.compact(api.store.version)
    status, gone = ask("GET", NODES, limit="1", **{"continue": first["metadata"]["continue"]})
    assert (status, gone["reason"], gone["code"]) == (410, "Expired", 410)
    _, rest = ask("GET", NODES, **{"continue": gone["metadata"]["continue"]})
    assert names(rest) == ["b", "c", "d"]


@pytest.mark.parametrize("token", ["nonsense", "e30", "!!", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ", "é"])
def test_a_broken_token_is_refused(ask: Ask, token: str) -> None:
    status, answer = ask("GET", NODES, **{"continue": token})
    assert (status, answer["reason"]) == (400, "BadRequest")
    assert answer["message"].startswith("continue key is not valid")


def test_version_0_lists_the_present_state_and_ignores_the_limit(ask: Ask) -> None:
    create_nodes(ask, "a", "b", "c")
    assert names(ask("GET", NODES, resourceVersion="0", limit="1")[1]) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["a", "b"]),
        ({"resourceVersionMatch": "NotOlderThan"}, ["a", "b"]),
        ({"resourceVersionMatch": "Exact"}, ["a"]),
        ({"limit": "5"}, ["a"]),
        ({"limit": "5", "resourceVersionMatch": "NotOlderThan"}, ["a", "b"]),
    ],
)
def test_a_version_is_a_lower_bound_or_an_exact_state(
    ask: Ask, query: dict[str, str], expected: list[str]
) -> None:
    create_nodes(ask, "a")
    version = ask("GET", NODES)[1]["metadata"]["resourceVersion"]
    create_nodes(ask, "b")
    assert names(ask("GET", NODES, resourceVersion=version, **query)[1]) == expected


def test_an_exact_version_older_than_the_history_is_gone(api: Api, ask: Ask) -> None:
    create_nodes(ask, "a", "b")
    api.store.compact(api.store.version)
    query = {"resourceVersion": "1", "resourceVersionMatch": "Exact"}
    status, answer = ask("GET", NODES, **query)
    assert (status, answer["reason"]) == (410, "Expired")
    assert answer["message"] == "The resourceVersion for the provided list is too old."


@pytest.mark.parametrize("path", [NODES, f"{NODES}/a"])
def test_a_version_from_the_future_is_a_timeout_with_its_cause(ask: Ask, path: str) -> None:
    create_nodes(ask, "a")
    status, answer = ask("GET", path, resourceVersion="1000")
    assert (status, answer["reason"]) == (504, "Timeout")
    assert answer["message"] == "Timeout: Too large resource version: 1000, current: 7"
    assert answer["details"] == {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"limit": "many"}, 400),
        ({"resourceVersion": "abc"}, 400),
        ({"resourceVersion": "-1"}, 400),
        ({"resourceVersion": "1", "continue": "x"}, 400),
        ({"resourceVersionMatch": "Exact"}, 422),
        ({"resourceVersionMatch": "Exact", "resourceVersion": "0"}, 422),
        ({"resourceVersionMatch": "Newest", "resourceVersion": "1"}, 422),
        ({"resourceVersionMatch": "Exact", "resourceVersion": "1", "continue": "x"}, 422),
        ({"sendInitialEvents": "true"}, 422),
        ({"watch": "1", "resourceVersionMatch": "NotOlderThan"}, 422),
        ({"watch": "1", "sendInitialEvents": "true"}, 422),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    ask: Ask, query: dict[str, str], status: int
) -> None:
    assert ask("GET", NODES, **query)[0] == status


_NEEDED = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
_ONLY = (
    "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
)
_EXACT = 'Unsupported value: "Exact": supported values: "NotOlderThan"'
_CONTINUED = "Forbidden: resourceVersionMatch is forbidden when continue is provided"


@pytest.mark.parametrize(
    ("query", "messages"),
    [
        ({"sendInitialEvents": "true"}, [_NEEDED]),
        ({"sendInitialEvents": "false"}, [_NEEDED]),
        ({"sendInitialEvents": "true", "resourceVersionMatch": "Exact"}, [_NEEDED, _EXACT]),
        ({"resourceVersionMatch": "NotOlderThan"}, [_ONLY]),
        ({"resourceVersionMatch": "Exact", "continue": "x"}, [_ONLY, _EXACT, _CONTINUED]),
    ],
)
def test_all_contradicting_watch_options_are_reported(
    ask: Ask, query: dict[str, str], messages: list[str]
) -> None:
    status, answer = ask("GET", NODES, watch="1", **query)
    assert (status, [cause["message"] for cause in answer["details"]["causes"]]) == (422, messages)


@given(
    st.sets(st.integers(0, 30), max_size=20),
    st.integers(1, 7),
    st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=20),
)
def test_paging_under_concurrent_writes_gives_a_consistent_snapshot(
    first: set[int], limit: int, writes: list[tuple[bool, int]]
) -> None:
    api = Api(Store(), fixed_sources())

    def ask(method: str, path: str, body: bytes = b"", **query: str) -> Any:
        return orjson.loads(send(api, method, path, body, query=query).body)

    def write(number: int, *, create: bool) -> None:
        if create:
            ask("POST", NODES, b'{"metadata":{"name":"n%02d"}}' % number)
        else:
            ask("DELETE", f"{NODES}/n{number:02}")

    for number in first:
        write(number, create=True)
    expected = names(ask("GET", NODES))
    page = ask("GET", NODES, limit=str(limit))
    seen = names(page)
    script = iter(writes)
    while "continue" in page["metadata"]:
        for create, number in [next(script, (True, 31)), next(script, (False, 31))]:
            write(number, create=create)
        page = ask("GET", NODES, limit=str(limit), **{"continue": page["metadata"]["continue"]})
        seen += names(page)
    assert seen == expected
