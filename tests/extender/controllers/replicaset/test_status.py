"""A ReplicaSet's status: counts, conditions, and when a pod becomes available."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import to_builtins

from extender.controllers.replicaset.status import (
    calculate_status,
    get_condition,
    is_available,
    next_availability_check,
    status_differs,
    status_document,
    with_condition,
    without_condition,
)
from extender.controllers.replicaset.types import ReplicaSetCondition, ReplicaSetStatus
from extender.kube.decoders.object_meta import NS_PER_SECOND, format_time, parse_time
from tests.builders.replicas import a_pod, a_replica_set
from tests.extender.controllers.replicaset.upstream_tables import (
    Case,
    cases,
    pod,
    replica_set,
)

COUNTS = {"fullyLabeledReplicas": 0, "readyReplicas": 0, "availableReplicas": 0}
NOON = "2026-01-01T12:00:00Z"


def conditions(documents: list[dict[str, str]]) -> tuple[ReplicaSetCondition, ...]:
    return tuple(ReplicaSetCondition(**each) for each in documents)


@cases("calculate_status")
def test_upstreams_table_of_statuses(case: Case) -> None:
    now_ns = parse_time(case["now"])
    leaving = [pod(each) for each in case["terminating_pods"]]
    active = [pod(each) for each in case["active_pods"]]
    status = calculate_status(
        replica_set(case["replicaset"]),
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
    given = conditions(case["conditions"])
    found: Any
    match case["op"]:
        case "get":
            found = get_condition(given, case["arg"]) is not None
        case "set":
            found = list(
                map(to_builtins, with_condition(given, ReplicaSetCondition(**case["arg"])))
            )
        case "remove":
            found = list(map(to_builtins, without_condition(given, case["arg"])))
    assert found == case["expect"]


@cases("next_availability")
def test_upstreams_table_of_availability(case: Case) -> None:
    status_ns = parse_time(case["status_now"])
    pods = [pod(each) for each in case["pods"]]
    wait, now_ns = case["min_ready_seconds"], status_ns + case["clock_delay_seconds"] * 10**9
    assert next_availability_check(pods, wait, status_ns, now_ns) == case["expect_seconds"]


@cases("filters")
def test_upstreams_table_of_active_pods(case: Case) -> None:
    pods = [pod(a_pod(each["name"], phase=each["phase"])) for each in case["pods"]]
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
def test_a_pod_counts_or_is_on_its_way_out_or_neither(
    *, phase: str, deleting: bool, active: bool, terminating: bool
) -> None:
    found = pod(a_pod("p", phase=phase, deleting=deleting))
    assert (found.active, found.terminating) == (active, terminating)


@pytest.mark.parametrize(("seconds", "available"), [(9, False), (10, True), (11, True)])
def test_a_pod_is_available_once_it_has_been_ready_for_long_enough(
    *, seconds: int, available: bool
) -> None:
    found = pod(a_pod("p", ready_since=NOON))
    assert is_available(found, 10, parse_time(NOON) + seconds * NS_PER_SECOND) == available


def test_a_pod_that_does_not_say_since_when_it_is_ready_is_only_available_without_a_wait() -> None:
    found = pod(a_pod("p", ready_since="0001-01-01T00:00:00Z"))
    assert is_available(found, 0, parse_time(NOON))
    assert not is_available(found, 1, parse_time(NOON))
    assert next_availability_check([found], 1, parse_time(NOON), parse_time(NOON)) is None


def test_the_failure_says_which_way_scaling_failed() -> None:
    def reason(replicas: int) -> str:
        found = replica_set(a_replica_set(replicas=replicas))
        active = [pod(a_pod("p", "web"))]
        status = calculate_status(found, active, [], "no", parse_time(NOON), NOON)
        return (status.conditions or ())[0].reason

    assert [reason(0), reason(1), reason(2)] == ["FailedDelete", "", "FailedCreate"]


def test_a_failure_of_another_status_or_reason_takes_the_old_ones_place_at_the_end() -> None:
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
def test_a_status_is_written_if_it_says_anything_new(
    *, change: dict[str, Any], must_be_written: bool
) -> None:
    assert (
        status_differs(replica_set(a_replica_set()), ReplicaSetStatus(**change)) == must_be_written
    )


def test_a_status_is_written_for_a_newer_spec() -> None:
    document = a_replica_set()
    document["metadata"]["generation"] = 2
    assert status_differs(replica_set(document), ReplicaSetStatus())
    document["status"] = {"replicas": 0, "observedGeneration": 2}
    assert not status_differs(replica_set(document), ReplicaSetStatus())


def test_zeros_are_left_out_but_for_those_that_upstream_writes() -> None:
    assert status_document(ReplicaSetStatus()) == {"replicas": 0}
    assert status_document(ReplicaSetStatus(terminating_replicas=0)) == {
        "replicas": 0,
        "terminatingReplicas": 0,
    }
