"""A ReplicaSet's status: counts, conditions, when a pod becomes available, and its update."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import to_builtins

from extender.controllers.replicaset.pod_control import SYNC_ERRORS
from extender.controllers.replicaset.status import (
    calculate_status,
    get_condition,
    is_available,
    next_availability_check,
    status_differs,
    status_document,
    with_condition,
    without_condition,
    write_status,
)
from extender.controllers.replicaset.types import ReplicaSetCondition, ReplicaSetStatus
from extender.kube.decoders.object_meta import NS_PER_SECOND, format_time, parse_time
from extender.kube.rest.client import Client
from extender.kube.rest.transport import Request, Response, TransportError
from tests.builders import Document
from tests.builders.replicas import a_pod, a_replica_set
from tests.extender.controllers.replicaset.upstream_tables import (
    Case,
    cases,
    decoded_set,
    owned_pod,
)
from tests.transports import AnsweringTransport, refusal, success

COUNTS = {"fullyLabeledReplicas": 0, "readyReplicas": 0, "availableReplicas": 0}
NOON = "2026-01-01T12:00:00Z"


def conditions(documents: list[dict[str, str]]) -> tuple[ReplicaSetCondition, ...]:
    return tuple(ReplicaSetCondition(**each) for each in documents)


@cases("calculate_status")
def test_upstreams_table_of_statuses(case: Case) -> None:
    now_ns = parse_time(case["now"])
    leaving = [owned_pod(each) for each in case["terminating_pods"]]
    active = [owned_pod(each) for each in case["active_pods"]]
    status = calculate_status(
        decoded_set(case["replicaset"]),
        active,
        leaving if case["terminating_replicas_enabled"] else None,
        case["manage_error"],
        now_ns,
        format_time(now_ns),
    )
    written = {"terminatingReplicas": None, **COUNTS, **status_document(status)}
    found = written.pop("conditions", ())
    assert written == case["expect_status"]
    expected = case.get("expect_conditions", [])
    assert [to_builtins(each) for each in found] == [
        {**each, "lastTransitionTime": case["now"]} if each.get("message") else each
        for each in expected
    ]


@cases("conditions")
def test_upstreams_table_of_conditions(case: Case) -> None:
    before = conditions(case["conditions"])
    found: Any
    match case["op"]:
        case "get":
            found = get_condition(before, case["arg"]) is not None
        case "set":
            found = list(
                map(to_builtins, with_condition(before, ReplicaSetCondition(**case["arg"])))
            )
        case "remove":
            found = list(map(to_builtins, without_condition(before, case["arg"])))
    assert found == case["expect"]


@cases("next_availability")
def test_upstreams_table_of_availability(case: Case) -> None:
    status_ns = parse_time(case["status_now"])
    pods = [owned_pod(each) for each in case["pods"]]
    wait, now_ns = case["min_ready_seconds"], status_ns + case["clock_delay_seconds"] * 10**9
    assert next_availability_check(pods, wait, status_ns, now_ns) == case["expect_seconds"]


@cases("filters")
def test_upstreams_table_of_active_pods(case: Case) -> None:
    pods = [owned_pod(a_pod(each["name"], phase=each["phase"])) for each in case["pods"]]
    assert [each.metadata.name for each in pods if each.active] == case["expect_active"]
    assert [each.metadata.name for each in pods if each.terminating] == case["expect_terminating"]


@pytest.mark.parametrize(
    ("phase", "deleting", "active", "terminating"),
    [
        ("", False, True, False),
        ("Running", False, True, False),
        ("Running", True, False, True),
        ("Failed", False, False, False),
        ("Failed", True, False, False),
        ("Succeeded", True, False, False),
    ],
)
def test_a_pod_is_active_or_terminating_or_neither(
    *, phase: str, deleting: bool, active: bool, terminating: bool
) -> None:
    found = owned_pod(a_pod("p", phase=phase, deleting=deleting))
    assert (found.active, found.terminating) == (active, terminating)


@pytest.mark.parametrize(("seconds", "available"), [(9, False), (10, True), (11, True)])
def test_a_pod_is_available_once_it_has_been_ready_for_long_enough(
    *, seconds: int, available: bool
) -> None:
    found = owned_pod(a_pod("p", ready_since=NOON))
    assert is_available(found, 10, parse_time(NOON) + seconds * NS_PER_SECOND) == available


def test_a_pod_without_a_ready_time_is_available_only_without_a_wait() -> None:
    found = owned_pod(a_pod("p", ready_since="0001-01-01T00:00:00Z"))
    assert is_available(found, 0, parse_time(NOON))
    assert not is_available(found, 1, parse_time(NOON))
    assert next_availability_check([found], 1, parse_time(NOON), parse_time(NOON)) is None


def test_the_reason_of_a_failure_is_the_direction_of_scaling() -> None:
    def reason(replicas: int) -> str:
        found = decoded_set(a_replica_set(replicas=replicas))
        active = [owned_pod(a_pod("p", "web"))]
        status = calculate_status(found, active, [], "no", parse_time(NOON), NOON)
        return (status.conditions or ())[0].reason

    assert [reason(0), reason(1), reason(2)] == ["FailedDelete", "", "FailedCreate"]


def test_a_changed_condition_replaces_the_old_one_at_the_end() -> None:
    old = conditions([{"type": "A", "status": "True"}, {"type": "B", "status": "True"}])
    found = with_condition(old, ReplicaSetCondition("A", "False"))
    assert [(each.type, each.status) for each in found] == [("B", "True"), ("A", "False")]


@pytest.mark.parametrize(
    ("change", "must_be_written"),
    [
        ({}, False),
        ({"replicas": 1}, True),
        ({"fully_labeled_replicas": 1}, True),
        ({"ready_replicas": 1}, True),
        ({"available_replicas": 1}, True),
        ({"terminating_replicas": 0}, True),
        ({"conditions": ()}, False),
        ({"conditions": (ReplicaSetCondition("A", "True"),)}, True),
        ({"observed_generation": 7}, False),
    ],
)
def test_a_status_is_written_if_it_differs(
    *, change: dict[str, Any], must_be_written: bool
) -> None:
    assert (
        status_differs(decoded_set(a_replica_set()), ReplicaSetStatus(**change)) == must_be_written
    )


def test_a_status_is_written_for_a_newer_spec() -> None:
    document = a_replica_set()
    document["metadata"]["generation"] = 2
    assert status_differs(decoded_set(document), ReplicaSetStatus())
    document["status"] = {"replicas": 0, "observedGeneration": 2}
    assert not status_differs(decoded_set(document), ReplicaSetStatus())


def test_zeros_are_omitted_except_those_that_upstream_writes() -> None:
    assert status_document(ReplicaSetStatus()) == {"replicas": 0}
    assert status_document(ReplicaSetStatus(terminating_replicas=0)) == {
        "replicas": 0,
        "terminatingReplicas": 0,
    }


def stored(version: str, generation: int, status: Document) -> Document:
    document = a_replica_set()
    document["metadata"] |= {"resourceVersion": version, "generation": generation, "x": "kept"}
    return {**document, "status": status}


class StatusServer:
    """AnsweringTransport writes one after another, and reads as long as it may."""

    def __init__(self, writes: list[str], read: str | None, fresh: Document) -> None:
        self._writes = list(writes)
        self._read = read
        self._fresh = fresh
        self.transport = AnsweringTransport(self.answer)

    def answer(self, request: Request) -> Response:
        if request.method == "GET":
            return success(self._fresh) if self._read == "ok" else refusal(500)
        match self._writes.pop(0):
            case "ok":
                return Response(200, request.body or b"")
            case "conflict":
                return refusal(409, "Conflict")
            case "lost":
                raise TransportError("connection reset")
            case _:
                return refusal(500)

    def count(self, method: str) -> int:
        return len(self.transport.bodies(method))


@cases("status_update")
async def test_upstreams_table_of_status_updates(case: Case) -> None:
    status = {"observedGeneration": case["observed_generation"], **case["current_status"]}
    document = stored("1", case["generation"], status)
    server = StatusServer(case["update_results"], case["get_result"], stored("2", 9, {}))
    new = msgspec.convert(case["new_status"], ReplicaSetStatus)
    try:
        await write_status(Client(server.transport), decoded_set(document), new)
    except SYNC_ERRORS:
        assert case["expect_error"]
    else:
        assert not case["expect_error"]
    assert (server.count("PUT"), server.count("GET")) == (
        case["expect_updates"],
        case["expect_gets"],
    )


RETRIES = [
    (["conflict", "ok"], "ok", (2, 1), False),
    (["lost", "ok"], "ok", (2, 1), False),
    (["broken", "conflict"], "ok", (2, 1), True),
    (["conflict"], "broken", (1, 1), True),
    (["ok"], "ok", (1, 0), False),
]


@pytest.mark.parametrize(("writes", "read", "requests", "fails"), RETRIES)
async def test_after_any_error_it_is_retried_once(
    *, writes: list[str], read: str, requests: tuple[int, int], fails: bool
) -> None:
    server = StatusServer(writes, read, stored("2", 9, {}))
    before = decoded_set(stored("1", 3, {}))
    try:
        await write_status(Client(server.transport), before, ReplicaSetStatus(5))
    except SYNC_ERRORS:
        assert fails
    else:
        assert not fails
    assert (server.count("PUT"), server.count("GET")) == requests


async def test_all_other_fields_are_written_back_unchanged() -> None:
    server = StatusServer(["ok"], None, {})
    document = stored("1", 3, {"replicas": 1, "unknown": True})
    after = await write_status(Client(server.transport), decoded_set(document), ReplicaSetStatus(5))
    written = server.transport.bodies("PUT")[0]
    assert written == {**document, "status": {"replicas": 5, "observedGeneration": 3}}
    assert after.status == ReplicaSetStatus(5, observed_generation=3)


async def test_a_retry_updates_the_newer_object_with_the_generation_that_was_synced() -> None:
    server = StatusServer(["conflict", "ok"], "ok", stored("2", 9, {}))
    await write_status(
        Client(server.transport), decoded_set(stored("1", 3, {})), ReplicaSetStatus(5)
    )
    first, second = server.transport.bodies("PUT")
    assert [each["metadata"]["resourceVersion"] for each in (first, second)] == ["1", "2"]
    assert [each["status"]["observedGeneration"] for each in (first, second)] == [3, 3]
