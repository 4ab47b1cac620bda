"""The faults of a request: limits, scopes, and independent random draws."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapi.apiserver.kinds import BUILTIN
from fakeapi.apiserver.testing.fault_injection.effects import Latency
from fakeapi.apiserver.testing.fault_injection.injector import (
    PlanProgress,
    decide,
    match_input_of,
    with_created_name,
)
from fakeapi.apiserver.testing.fault_injection.plan import RequestMatchInput
from fakeapi.apiserver.testing.fault_injection.plan_parser import parse_plan
from fakeapi.apiserver.wire.http_messages import Request
from fakeapi.testing.faults import Fault, fault
from tests.fakeapi.api_requests import DEPLOYMENTS, PODS

SECOND = 10**9


def progress(*faults: Fault, seed: int = 0) -> PlanProgress:
    document = {"faults": [each.document() for each in faults]}
    return PlanProgress(parse_plan(document, BUILTIN, seed), 0)


def asked(client: str = "c", verb: str = "create") -> RequestMatchInput:
    return RequestMatchInput(client, verb, PODS, resource="pods", namespace="default")


def met(state: PlanProgress, requests: Iterable[RequestMatchInput], now_ns: int = 0) -> list[str]:
    """Return the fault of each request, as text."""
    found = []
    for match_input in requests:
        state, effects = decide(state, match_input, now_ns)
        found.append(", ".join(map(str, effects)))
    return found


@pytest.mark.parametrize(
    ("rule", "pattern"),
    [
        (fault(500), "xxxxxxxx"),
        (fault(500).once(), "x......."),
        (fault(500).times(3), "xxx....."),
        (fault(500).after(2), "..xxxxxx"),
        (fault(500).every(3), "..x..x.."),
        (fault(500).after(2).every(2), "...x.x.x"),
        (fault(500).after(2).every(2).times(2), "...x.x.."),
    ],
)
def test_limits_count_the_requests_that_match(rule: Fault, pattern: str) -> None:
    others = [asked(verb="get"), asked()]
    found = met(progress(rule.on("create")), others * 8)
    assert "".join("x" if each else "." for each in found[1::2]) == pattern
    assert not any(found[::2])


def test_requests_are_counted_for_each_client() -> None:
    requests = [asked("a"), asked("b"), asked("a"), asked("b")]
    assert met(progress(fault(500).once()), requests) == ["500", "500", "", ""]


def test_a_time_is_counted_from_the_plans_beginning() -> None:
    state = progress(fault(500).between(10, 20))
    seen = [met(state, [asked()], second * SECOND) for second in (9, 10, 19, 20)]
    assert seen == [[""], ["500"], ["500"], [""]]


def test_effects_add_up_until_one_ends_the_request() -> None:
    state = progress(
        fault("latency", seconds=1), fault("compact"), fault(503).once(), fault("drop")
    )
    first, second = met(state, [asked(), asked()])
    assert first == "latency 1.000 s, compact, 503"
    assert second == "latency 1.000 s, compact, drop before"


def test_a_probability_is_approximated() -> None:
    found = met(progress(fault(500).probability(0.25)), [asked()] * 2000)
    assert 400 < sum(map(bool, found)) < 600


def test_latency_is_drawn_from_its_range() -> None:
    state, waits = progress(fault("latency", least=1, most=3)), []
    for _ in range(100):
        state, [effect] = decide(state, asked(), 0)
        assert isinstance(effect, Latency)
        waits.append(effect.most)
    assert 1 <= min(waits) < 1.2
    assert 2.8 < max(waits) < 3


def test_latency_is_independent_of_probability() -> None:
    state, waits = progress(fault("latency", least=0, most=1).probability(0.3)), []
    for _ in range(200):
        state, effects = decide(state, asked(), 0)
        waits += [effect.most for effect in effects if isinstance(effect, Latency)]
    assert min(waits) < 0.2
    assert max(waits) > 0.8


def test_rules_draw_independently() -> None:
    state = progress(fault("latency", seconds=1).probability(0.5), fault(500).probability(0.5))
    assert len(set(met(state, [asked()] * 64))) == 4


def test_another_seed_draws_other_faults() -> None:
    rule = fault(500).probability(0.5)
    one, other = (met(progress(rule, seed=seed), [asked()] * 64) for seed in (1, 2))
    assert one != other


@given(st.lists(st.sampled_from("abc"), max_size=60), st.integers(0, 2**32))
def test_no_client_changes_the_faults_of_another(clients: list[str], seed: int) -> None:
    state = progress(
        fault("latency", least=0, most=1).probability(0.7),
        fault(500).probability(0.3).times(4),
        fault("drop").every(3).probability(0.8),
        seed=seed,
    )
    together = met(state, map(asked, clients))
    for client in "abc":
        alone = met(state, [asked(client)] * clients.count(client))
        own = [each for name, each in zip(clients, together, strict=True) if name == client]
        assert own == alone


SCOPES: dict[str, tuple[Fault, str, bool]] = {
    "an object": (fault(500).on("get", "pods"), f"GET {PODS}/a", True),
    "another verb": (fault(500).on("get", "pods"), f"DELETE {PODS}/a", False),
    "a list": (fault(500).on("list", "pods"), f"GET {PODS}", True),
    "a watch": (fault(500).on("watch", "pods"), f"GET {PODS}?watch=true", True),
    "a collection's end": (fault(500).on("deletecollection"), f"DELETE {PODS}", True),
    "not its subresource": (fault(500).on((), "pods"), f"PUT {PODS}/a/status", False),
    "its subresource": (
        fault(500).on((), "pods", subresources="status"),
        f"PUT {PODS}/a/status",
        True,
    ),
    "not the object": (fault(500).on((), "pods", subresources="*"), f"PUT {PODS}/a", False),
    "anything with subresources": (fault(500), f"PUT {PODS}/a/status", True),
    "a group": (fault(500).on("get", "apps/deployments"), f"GET {DEPLOYMENTS}/a", True),
    "any group": (fault(500).on("get", "deployments"), f"GET {DEPLOYMENTS}/a", True),
    "a namespace": (fault(500).on(namespaces="def*"), f"GET {PODS}", True),
    "another namespace": (fault(500).on(namespaces="kube-*"), f"GET {PODS}", False),
    "no namespace": (fault(500).on(namespaces="*"), "GET /api/v1/nodes", False),
    "a namespace itself": (fault(500).on(namespaces="*"), "GET /api/v1/namespaces/default", False),
    "a name": (fault(500).on(names="web-?"), f"GET {PODS}/web-1", True),
    "another name": (fault(500).on(names="web-?"), f"GET {PODS}/db-1", False),
    "a name in a selector": (
        fault(500).on("list", names="a"),
        f"GET {PODS}?fieldSelector=metadata.name%3Da",
        True,
    ),
    "a name in a body": (fault(500).on("create", names="new"), f"POST {PODS}", True),
    "another name in a body": (fault(500).on("create", names="old"), f"POST {PODS}", False),
    "a client": (fault(500).by("kubectl/*"), f"GET {PODS}", True),
    "another client": (fault(500).by("helm/*"), f"GET {PODS}", False),
    "no discovery": (fault(500), "GET /apis/apps/v1", False),
    "a path": (fault(500).at("/openapi/v3*"), "GET /openapi/v3/apis/apps/v1", True),
    "another path": (fault(500).at("/openapi/v3*"), "GET /version", False),
    "an object's path": (fault(500).at("*/pods/*", "delete"), f"DELETE {PODS}/a", True),
}


@pytest.mark.parametrize("name", SCOPES)
def test_a_scope_selects_requests(name: str) -> None:
    rule, line, expected = SCOPES[name]
    method, _, target = line.partition(" ")
    path, _, text = target.partition("?")
    query: dict[str, Any] = {}
    for pair in filter(None, text.split("&")):
        key, _, value = pair.partition("=")
        query[key] = value.replace("%3D", "=")
    body = b'{"metadata":{"name":"new"}}' if method == "POST" else b""
    request = Request(method, path, query, body, user_agent="kubectl/v1.37.0")
    match_input = with_created_name(match_input_of(request), request)
    assert bool(met(progress(rule), [match_input])[0]) == expected


LAGGING = {
    "any list": ({"resourceVersion": "0"}, True),
    "any list in pages": ({"resourceVersion": "0", "limit": "500"}, True),
    "the newest list": ({}, False),
    "a list from N on": ({"resourceVersion": "5"}, True),
    "a list from N on, said": (
        {"resourceVersion": "5", "resourceVersionMatch": "NotOlderThan", "limit": "5"},
        True,
    ),
    "a page from N on": ({"resourceVersion": "5", "limit": "5"}, False),
    "a list at N": ({"resourceVersion": "5", "resourceVersionMatch": "Exact"}, False),
    "a further page": ({"resourceVersion": "0", "continue": "x"}, False),
    "a broken version": ({"resourceVersion": "x"}, False),
    "a watch from N on": ({"watch": "1", "resourceVersion": "5"}, False),
    "a watch from anywhere": ({"watch": "1", "resourceVersion": "0"}, True),
    "a watch from now on": ({"watch": "1"}, False),
    "a streamed list from N on": (
        {"watch": "1", "resourceVersion": "5", "sendInitialEvents": "true"},
        True,
    ),
    "the newest streamed list": ({"watch": "1", "sendInitialEvents": "true"}, False),
}


@pytest.mark.parametrize("name", LAGGING)
def test_only_requests_that_a_watch_cache_answers_are_stale(name: str) -> None:
    query, expected = LAGGING[name]
    found = met(progress(fault("stale")), [match_input_of(Request("GET", PODS, query))])
    assert bool(found[0]) == expected
