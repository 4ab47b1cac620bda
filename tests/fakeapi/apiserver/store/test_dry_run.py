"""Dry runs change nothing, and are answered as the write itself."""

from __future__ import annotations

from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakeapi.apiserver.endpoints import Api
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from fakeapi.simulation.world import create_api
from tests.builders import pod_request
from tests.fakeapi.api_requests import MAPS, PODS, send
from tests.properties.sampling import examples

WRITES: list[tuple[str, str, Any]] = [
    ("POST", MAPS, {"metadata": {"name": "b"}}),
    ("POST", MAPS, {"metadata": {"generateName": "g-"}}),
    ("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}, "data": {"x": "2"}}),
    ("PATCH", f"{MAPS}/a", {"data": {"x": "2"}}),
    ("DELETE", f"{MAPS}/a", None),
    ("DELETE", MAPS, None),
    ("DELETE", f"{PODS}/p", None),
    ("DELETE", "/api/v1/namespaces/default2", None),
    ("POST", f"{PODS}/q/binding", {"metadata": {"name": "q"}, "target": {"name": "n"}}),
    ("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}}),
    ("PATCH", f"{PODS}/p/status", {"status": {"phase": "Running"}}),
]


def ask(api: Api, method: str, path: str, body: Any = None, **query: str) -> tuple[int, Any]:
    answer = send(api, method, path, body, query=query)
    return answer.status, orjson.loads(answer.body)


def new_api() -> Api:
    api = create_api(VirtualClock(), Random(7))
    ask(api, "POST", MAPS, {"metadata": {"name": "a"}, "data": {"x": "1"}})
    ask(api, "POST", PODS, pod_request(nodeName="n"))
    ask(api, "POST", PODS, pod_request("q"))
    ask(api, "POST", "/api/v1/namespaces", {"metadata": {"name": "default2"}})
    return api


@given(st.lists(st.sampled_from(WRITES), max_size=6))
@settings(max_examples=examples(60), deadline=None)
def test_no_sequence_of_dry_runs_leaves_a_trace(writes: list[tuple[str, str, Any]]) -> None:
    api = new_api()
    before, events = api.store.version, api.store.history()
    for write in writes:
        status, _ = ask(api, *write, dryRun="All")
        assert status in (200, 201)
    assert (api.store.version, api.store.history()) == (before, events)


@pytest.mark.parametrize("write", WRITES, ids=lambda write: f"{write[0]} {write[1]}")
def test_a_dry_run_is_answered_as_a_write_except_for_the_version(
    write: tuple[str, str, Any],
) -> None:
    dry, real = ask(new_api(), *write, dryRun="All"), ask(new_api(), *write)
    for _, answer in (dry, real):
        answer.get("metadata", {}).pop("resourceVersion", None)
        for item in answer.get("items", []):
            item["metadata"].pop("resourceVersion")
    assert dry == real


def test_a_dry_run_has_the_version_of_an_existing_object_only() -> None:
    api = new_api()
    _, new = ask(api, "POST", MAPS, {"metadata": {"name": "b"}}, dryRun="All")
    assert "resourceVersion" not in new["metadata"]
    _, present = ask(api, "GET", f"{MAPS}/a")
    _, patched = ask(api, "PATCH", f"{MAPS}/a", {"data": {"x": "2"}}, dryRun="All")
    assert patched["metadata"]["resourceVersion"] == present["metadata"]["resourceVersion"]
    assert patched["data"] == {"x": "2"}


def test_a_dry_run_conflicts_as_a_real_write() -> None:
    api = new_api()
    assert ask(api, "POST", MAPS, {"metadata": {"name": "a"}}, dryRun="All")[0] == 409
    stale = {"metadata": {"resourceVersion": "1"}}
    assert ask(api, "PATCH", f"{MAPS}/a", stale, dryRun="All")[0] == 409
