"""Upstream's own test tables of single rules: versions, paths, references, validation, events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from extender.explain.validate_workloadspread import spread_errors, validation_document
from extender.kube.workloadspread.pod_injection import strategic_merge_pod
from extender.kube.workloadspread.spread_pods import decode_spread_pod
from extender.kube.workloadspread.spreads import decode_workloadspread
from extender.kube.workloadspread.version_conversion import V1BETA1, convert
from extender.kube.workloadspread.workloads import decode_workload
from fakeapi.apiserver.validation.object_validation import pod_spec_errors
from policies.workloadspread.object_references import ApiVersionError, WorkloadReference
from policies.workloadspread.placement_validation import FieldValidationError
from policies.workloadspread.predicates import (
    is_relevant_pod_update,
    is_relevant_workload_event,
    is_relevant_workload_update,
    workloadspread_of_pod,
    workloadspread_of_workload,
)
from policies.workloadspread.quirks import FIXED, UPSTREAM, Quirks
from policies.workloadspread.spread_lookup import (
    OwnerLookup,
    OwnerNotFoundError,
    SelectionError,
    filter_selects,
    is_supported_owner,
    refers_to,
)
from policies.workloadspread.subset_selection import initial_counts, ordinal
from policies.workloadspread.targets import (
    PathError,
    nested_integer,
    replicas_at,
    replicas_for_webhook,
)
from policies.workloadspread.validation import conflict_errors, update_errors
from policies.workloadspread.workload_versions import (
    CurrentRevisionUnknownError,
    newest_version,
    pod_version,
)
from tests.builders import encoded
from tests.builders.workloadspread import files
from tests.vectors.workloadspread import CASES, PARTS, Case, of


def patch(case: Case) -> None:
    merged = strategic_merge_pod(case.data["pods"][0], case.input["patch"])
    assert_contains(merged, case.expect)


def assert_contains(document: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        for key, value in expected.items():
            assert_contains(document[key], value)
    elif isinstance(expected, list):
        assert len(document) == len(expected)
        for one, other in zip(document, expected, strict=True):
            assert_contains(one, other)
    else:
        assert document == expected


def workload_replicas(case: Case) -> None:
    spread = case.written.spread
    workload = case.files.workload_of(spread)
    assert replicas_for_webhook(spread, workload, case.files.whitelist) == case.expect["replicas"]


def initial_status(case: Case) -> None:
    spread = case.written.spread
    replicas = replicas_for_webhook(spread, case.files.workload_of(spread), case.files.whitelist)
    found = initial_counts(spread.subsets, replicas, case.quirks)
    assert [
        {"name": each.name, "replicas": each.replicas, "missingReplicas": each.missing}
        for each in found
    ] == case.expect["subsetStatuses"]


def reference(written: Mapping[str, str]) -> WorkloadReference:
    return WorkloadReference(written["apiVersion"], written["kind"], written["name"])


def reference_equal(case: Case) -> None:
    owner = reference(case.input["ownerReference"])
    check_reference(case, owner, OwnerLookup())


def reference_chain(case: Case) -> None:
    (pod,) = case.pods
    check_reference(case, pod.controller, case.files.owners(pod))


def check_reference(case: Case, owner: WorkloadReference | None, owners: OwnerLookup) -> None:
    problem = ""
    try:
        equal = refers_to(reference(case.input["targetRef"]), owner, owners)
    except (ApiVersionError, OwnerNotFoundError) as error:
        equal, problem = False, str(error)
    assert equal == case.expect["equal"]
    assert (case.expect.get("error") or "") in problem


def owner_kind(case: Case) -> None:
    owner = reference(case.input["ownerReference"])
    assert is_supported_owner(owner, case.files.whitelist) == case.expect["supported"]


def check_ordinal(case: Case) -> None:
    for pod, number in case.expect["ordinals"].items():
        assert ordinal(pod) == number


def check_pod_version(case: Case) -> None:
    (pod,) = case.pods
    assert pod_version(pod, case.kinds) == case.expect["version"]


def workload_version(case: Case) -> None:
    workload = case.data["workload"]
    sets = [each for each in case.data.get("extra") or () if each["kind"] == "ReplicaSet"]
    try:
        version = newest_version(
            decode_workload(workload["kind"], encoded(workload)),
            [decode_workload("ReplicaSet", encoded(each)) for each in sets],
            case.kinds,
            case.quirks,
        )
    except CurrentRevisionUnknownError:
        version = ""
        assert case.expect.get("isError") or case.expect.get("error")
    assert version == (case.expect.get("version") or "")


def replicas_path(case: Case) -> None:
    paths = case.input.get("paths") or [case.input["path"]]
    check_number(case, lambda: replicas_at(case.input["object"], paths), "replicas")


def nested_field(case: Case) -> None:
    check_number(case, lambda: nested_integer(case.input["object"], case.input["path"]), "value")


def check_number(case: Case, read: Callable[[], int], name: str) -> None:
    problem = ""
    try:
        number = read()
    except PathError as error:
        number, problem = 0, str(error)
    assert number == case.expect[name]
    assert bool(problem) == case.expect.get("isError", "error" in case.expect)
    assert (case.expect.get("error") or "") in problem


def pod_selected(case: Case) -> None:
    spread = {"kind": "WorkloadSpread", "metadata": {"name": "web"}, "spec": case.input}
    target_filter = decode_workloadspread(encoded(spread)).spread.target_filter
    try:
        selected = filter_selects(target_filter, case.input["labels"], case.quirks)
    except SelectionError:
        selected = False
        assert case.expect["isError"]
    else:
        assert not case.expect["isError"]
    assert selected == case.expect["selected"]


def conversion(case: Case) -> None:
    given, expect = case.data["workloadspread"], case.expect
    if expect.get("roundTrip"):
        there = convert(given, V1BETA1)
        back = convert(there, given["apiVersion"])
        assert there["apiVersion"] == V1BETA1
        for path in expect["equalPaths"]:
            assert at(back, path) == at(given, path)
        return
    converted = convert(given, f"apps.kruise.io/{expect['toVersion']}")
    assert converted["apiVersion"] == f"apps.kruise.io/{expect['toVersion']}"
    for path, value in expect["checks"].items():
        assert at(converted, path) == value, path


def at(document: Any, path: str) -> Any:
    """Return the value at a dotted path; None if there is none."""
    for step in path.split("."):
        if isinstance(document, list):
            document = document[int(step)]
        else:
            document = None if document is None else document.get(step)
    return document


def event_mapping(case: Case) -> None:
    workload = case.data["workload"]
    spreads = [decode_workloadspread(encoded(each)).spread for each in case.data["existing"]]
    found = workloadspread_of_workload(
        decode_workload(workload["kind"], encoded(workload)), spreads
    )
    assert (None if found is None else found.name) == case.expect["workloadspread"]


def event_enqueue(case: Case) -> None:
    assert sorted(enqueued(case)) == sorted(case.expect["enqueued"])


def enqueued(case: Case) -> list[str]:
    if not case.data.get("workload"):
        return enqueued_by_pod(case)
    kind = case.data["workload"]["kind"]
    old = decode_workload(kind, encoded(case.data["workload"]))
    new = decode_workload(kind, encoded(case.data.get("newWorkload") or case.data["workload"]))
    matters = (
        is_relevant_workload_update(old, new, case.files.whitelist)
        if case.data["operation"] == "update"
        else is_relevant_workload_event(new)
    )
    found = workloadspread_of_workload(new, [case.written.spread])
    return [found.key] if matters and found is not None else []


def enqueued_by_pod(case: Case) -> list[str]:
    pods = [
        *case.pods,
        *(decode_spread_pod(encoded(each)) for each in case.data.get("newPods") or ()),
    ]
    old, new = pods[0], pods[-1]
    if case.data["operation"] == "update" and not is_relevant_pod_update(
        old, new, case.kinds, case.quirks
    ):
        return []
    name = workloadspread_of_pod(new)
    return [] if name is None else [f"{new.namespace}/{name}"]


def validation(case: Case) -> None:
    check_faults(case, spread_errors(case.written, case.files, case.quirks, pod_spec_errors))


def check_faults(case: Case, faults: Iterable[FieldValidationError]) -> None:
    document, expect = validation_document(faults), case.expect
    assert document["valid"] == expect.get("valid", expect.get("allowed"))
    assert set(expect.get("fields", ())) <= {each["field"] for each in document["errors"]}
    assert set(expect.get("messages", ())) <= {each["message"] for each in document["errors"]}
    if "errorCount" in expect:
        assert len(document["errors"]) == expect["errorCount"]
    if expect.get("fieldPrefix"):
        assert all(e["field"].startswith(expect["fieldPrefix"]) for e in document["errors"])


def validate_update(case: Case) -> None:
    old = decode_workloadspread(encoded(case.data["old"])).spread
    check_faults(case, update_errors(case.written.spread, old))


def validate_conflict(case: Case) -> None:
    others = [decode_workloadspread(encoded(each)).spread for each in case.data["existing"]]
    check_faults(case, conflict_errors(case.written.spread, others))


def validate_handler(case: Case) -> None:
    old = case.data.get("old")
    around = files(*([old] if old else ()))
    check_faults(case, spread_errors(case.written, around, case.quirks, pod_spec_errors))


CHECKS: Mapping[str, Callable[[Case], None]] = {
    "conversion": conversion,
    "event_enqueue": event_enqueue,
    "event_mapping": event_mapping,
    "initial_status": initial_status,
    "nested_field": nested_field,
    "ordinal": check_ordinal,
    "owner_kind": owner_kind,
    "patch": patch,
    "pod_selected": pod_selected,
    "pod_version": check_pod_version,
    "reference_chain": reference_chain,
    "reference_equal": reference_equal,
    "replicas_path": replicas_path,
    "validate_conflict": validate_conflict,
    "validate_create": validation,
    "validate_handler": validate_handler,
    "validate_patch": validation,
    "validate_update": validate_update,
    "workload_replicas": workload_replicas,
    "workload_version": workload_version,
}


@pytest.mark.parametrize("quirks", [UPSTREAM, FIXED], ids=["upstream", "fixed"])
@pytest.mark.parametrize("data", [data for data in CASES if data["table"] in CHECKS], ids=of)
def test_upstream_asserts_the_same(data: dict[str, Any], quirks: Quirks) -> None:
    CHECKS[data["table"]](Case(data, quirks))


def test_all_tables_are_run() -> None:
    assert set(CHECKS) == PARTS
