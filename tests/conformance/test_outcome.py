"""The comparison of outcomes ignores random differences only."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from fakeapi.apiserver.testing.request_log import RequestRecord
from tests.conformance.clusters.world import AGENT
from tests.conformance.outcome import Normaliser, Step, outcome
from tests.conformance.scenario_runner import differences

UID = "b4862b21-fb97-4435-8856-1712e8e5216a"
SETS = "/apis/apps/v1/namespaces/shop/replicasets"
PODS = "/api/v1/namespaces/shop/pods"
MARKER_EVENTS = "/api/v1/namespaces/markers/events"
JSON = "application/json"
NORMALISER = Normaliser({UID: "ReplicaSet web"}, {"web-47lz7": "web-"})
WEB: dict[str, Any] = {"kind": "ReplicaSet", "metadata": {"name": "web", "uid": UID}}


@pytest.mark.parametrize(
    ("text", "normalised"),
    [
        (UID, "<uid of ReplicaSet web>"),
        (UID.replace("b", "c"), "<uid of no object>"),
        ("Created pod: web-47lz7", "Created pod: web-<suffix>"),
        ("Deleted pod: web-cheap", "Deleted pod: web-cheap"),
        ("/pods/web-zzzzz", "/pods/web-zzzzz"),
        ("web.18ea216a00a605b3", "web.<stamp>"),
        ('"2026-11-21T18:22:45Z"', '"<time>"'),
        ('{"resourceVersion":"17"}', '{"resourceVersion":"<version>"}'),
        ("used: pods=3", "used: pods=3"),
    ],
)
def test_random_parts_are_normalised(text: str, normalised: str) -> None:
    assert NORMALISER.text(text) == normalised


def wrote(method: str, path: str, body: Any = None, status: int = 200) -> RequestRecord:
    sent = (JSON, orjson.dumps(body)) if body is not None else ("", b"")
    return RequestRecord(method, path, "", "controller", status, "", *sent)


def marker(step: int, number: int = 1) -> RequestRecord:
    about = {"involvedObject": {"name": f"marker-{number}-of-{step}"}}
    return wrote("POST", MARKER_EVENTS, about, 201)


def status(**fields: Any) -> RequestRecord:
    return wrote("PUT", f"{SETS}/web/status", {**WEB, "status": fields})


def steps(*records: RequestRecord, moments: int = 1) -> list[Step]:
    return outcome(records, [[WEB]] * moments, NORMALISER)


def test_a_step_ends_with_its_last_marker() -> None:
    made, gone = wrote("POST", PODS, {"kind": "Pod"}, 201), wrote("DELETE", f"{PODS}/a")
    first, second = steps(made, marker(0), made, marker(0, 2), gone, marker(1), moments=2)
    assert list(first.writes.values()) == [2]
    assert list(second.writes) == [f"DELETE {PODS}/a → 200"]


def test_only_writes_of_the_controller_to_the_scenarios_world_count() -> None:
    [step] = steps(
        RequestRecord("POST", PODS, "", AGENT, 201),
        wrote("GET", PODS),
        wrote("POST", "/api/v1/namespaces/markers/pods", {}, 201),
        marker(0),
    )
    assert not step.writes


def test_changes_of_conditions_and_the_last_status_are_compared() -> None:
    failing = [{"type": "ReplicaFailure"}]
    written = [
        *(status(observedGeneration=1, replicas=n, conditions=failing) for n in (0, 1)),
        *(status(observedGeneration=1, replicas=n) for n in (2, 3)),
    ]
    [step] = steps(*written, marker(0))
    [*changes, last] = step.statuses["<uid of ReplicaSet web>"]
    assert [orjson.loads(each)["conditions"] for each in changes] == [failing, None]
    assert orjson.loads(last)["status"]["replicas"] == 3


def test_a_status_that_was_refused_does_not_count() -> None:
    refused = wrote("PUT", f"{SETS}/web/status", {**WEB, "status": {}}, 409)
    assert steps(refused, marker(0))[0].statuses == {}


def test_empty_fields_that_go_always_writes_are_not_compared() -> None:
    sent = {"kind": "DeleteOptions", "apiVersion": "v1"}
    theirs = steps(wrote("DELETE", f"{PODS}/a", sent), marker(0))
    ours = steps(wrote("DELETE", f"{PODS}/a", {}), marker(0))
    assert differences(theirs, ours) == []


@pytest.mark.parametrize(
    "other",
    [
        [wrote("POST", PODS, {"kind": "Pod"}, 201)] * 2,
        [wrote("POST", PODS, {"kind": "Pod"}, 403)],
        [wrote("POST", PODS, {"kind": "Pod", "spec": {}}, 201)],
        [wrote("PUT", PODS, {"kind": "Pod"}, 201)],
        [],
        [wrote("POST", PODS, {"kind": "Pod"}, 201), status(replicas=1)],
    ],
    ids=["once more", "another answer", "another body", "another verb", "not at all", "a status"],
)
def test_differences_are_reported(other: list[RequestRecord]) -> None:
    theirs = steps(wrote("POST", PODS, {"kind": "Pod"}, 201), marker(0))
    assert differences(theirs, steps(*other, marker(0)))


def test_differing_objects_are_reported() -> None:
    theirs = outcome([marker(0)], [[WEB]], NORMALISER)
    managed = {**WEB, "metadata": {**WEB["metadata"], "managedFields": []}}
    assert not differences(theirs, outcome([marker(0)], [[managed]], NORMALISER))
    assert differences(theirs, outcome([marker(0)], [[{**WEB, "status": {}}]], NORMALISER))
    assert differences(theirs, outcome([marker(0)], [[]], NORMALISER))
