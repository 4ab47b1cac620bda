"""Upstream's own test tables, and cases derived from its source: syncs and admissions.

No case here shows a quirk, so all of them hold in both modes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from extender.explain.workloadspread import (
    Operation,
    SpreadExplanation,
    build_query,
    explain_spread,
    spread_document,
)
from extender.kube.decoders.cluster_objects import decode_node
from extender.kube.workloadspread.pod_injection import (
    adoption_patch,
    cost_patch,
    is_as_patched,
    strategic_merge_pod,
)
from extender.kube.workloadspread.spread_pods import decode_spread_pod
from extender.kube.workloadspread.spreads import encode_status
from policies.workloadspread.pod_groups import match_score
from policies.workloadspread.quirks import FIXED, UPSTREAM, Quirks
from tests.builders import encoded
from tests.vectors.workloadspread import CASES, PARTS, Case, of


def deletion_cost(case: Case) -> None:
    costs = {pod: None if cost is None else int(cost) for pod, cost in expected_costs(case)}
    found = case.explained.outcome.costs
    assert {pod: found[pod].value if pod in found else None for pod in costs} == costs
    check_counts(case)
    for subset, counts in case.expect.get("costCountsBySubset", {}).items():
        pods = case.explained.outcome.groups.subsets.get(subset, ())
        values = Counter(str(found[pod.name].value) for pod in pods if pod.name in found)
        assert values == counts


def expected_costs(case: Case) -> Iterable[tuple[str, str | None]]:
    costs: Mapping[str, str | None] = case.expect.get("deletionCost", {})
    return costs.items()


def check_counts(case: Case) -> None:
    status = {each.name: each for each in case.explained.outcome.status.subsets}
    for subset, replicas in case.expect.get("subsetReplicas", {}).items():
        assert status[subset].replicas == replicas, subset


def reconciled(case: Case) -> None:
    deletion_cost(case)
    outcome = case.explained.outcome
    status = encode_status(outcome.status)
    if "subsetStatuses" in case.expect:
        assert counts(status.get("subsetStatuses")) == counts(case.expect["subsetStatuses"])
    if "versionedSubsetStatuses" in case.expect:
        assert versions(status) == versions(case.expect)
    if "requeueAfterSeconds" in case.expect:
        requeued(case)
    if "events" in case.expect:
        assert [event.reason for event in outcome.events] == case.expect["events"]


def counts(entries: Any) -> list[dict[str, Any]]:
    """Take conditions and empty maps away."""
    return [
        {key: value for key, value in entry.items() if key != "conditions" and value != {}}
        for entry in entries or ()
    ]


def versions(status: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    return {
        version: counts(entries)
        for version, entries in (status.get("versionedSubsetStatuses") or {}).items()
    }


def requeued(case: Case) -> None:
    expected = case.expect["requeueAfterSeconds"]
    assert spread_document(case.explained)["requeueAfterSeconds"] == expected


def manage_existing(case: Case) -> None:
    check_counts(case)
    outcome, expect = case.explained.outcome, case.expect
    subsets = spread_document(case.explained)["subsets"]
    assert {pod: subsets[pod] for pod in expect.get("podSubset", {})} == expect.get("podSubset", {})
    if "costCounts" in expect:
        values = [cost.value for cost in outcome.costs.values()]
        lowest = -100 * len(case.written.spread.subsets)
        assert {
            "positive": sum(value > 0 for value in values),
            "negativeWithinSubsets": sum(lowest <= value < 0 for value in values),
            "belowMinusHundredTimesSubsets": sum(value < lowest for value in values),
        } == expect["costCounts"]
    for part in ("annotations", "labels"):
        for pod, expected in expect.get(f"pod{part.capitalize()}", {}).items():
            present = patched_pods(case)[pod]["metadata"].get(part, {})
            assert {key: present.get(key) for key in expected} == expected


def patched_pods(case: Case) -> dict[str, Any]:
    """Return the pods as they are once all patches of a reconcile have been sent."""
    outcome = case.explained.outcome
    pods = {each["metadata"]["name"]: each for each in case.data["pods"]}
    for name, subset in outcome.groups.adopted.items():
        pods[name] = strategic_merge_pod(pods[name], adoption_patch(case.written, subset.name))
    for name, cost in outcome.cost_changes.items():
        pods[name] = strategic_merge_pod(pods[name], cost_patch(cost))
    return pods


def reschedule(case: Case) -> None:
    document, expect = spread_document(case.explained), case.expect
    assert document["delete"] == sorted(expect["podsDeleted"])
    found = {
        entry["name"]: next(iter(entry.get("conditions", ())), None)
        for entry in document["status"]["subsetStatuses"]
    }
    for name, key in (("schedulable", "status"), ("reason",) * 2, ("lastTransitionTime",) * 2):
        for subset, value in expect.get(name, {}).items():
            condition = found[subset]
            assert (None if condition is None else condition[key]) == value, (subset, key)
    if "requeueAfterSeconds" in expect:
        requeued(case)
    if "events" in expect:
        assert [event["reason"] for event in document["events"]] == expect["events"]


def match_subset(case: Case) -> None:
    (pod,), (node,) = case.pods, case.data["nodes"]
    name = case.input["subset"]
    (subset,) = (each for each in case.written.spread.subsets if each.name == name)
    score = match_score(
        pod,
        decode_node(encoded(node)),
        subset,
        case.input["missingReplicas"],
        lambda _pod, subset: is_as_patched(case.data["pods"][0], case.written.subset(subset.name)),
    )
    assert (score is not None) == case.expect["match"]
    assert (-1 if score is None else score) == case.expect["score"]


OPERATIONS = {"Create": Operation.CREATE, "Delete": Operation.DELETE, "Eviction": Operation.EVICT}


def pod_webhook(case: Case) -> None:
    expect, pod = case.expect, case.data["pods"][0]
    question = build_query(pod, "default", OPERATIONS[case.data["operation"]])
    explained = explain_spread(
        case.files, case.written.spread.key, case.now_ns, case.rules, question
    )
    admitted = spread_document(explained)["admitted"]
    assert (admitted["allowed"], admitted["subset"]) == (expect["allowed"], expect["subset"])
    if expect["pod"] is not None:
        assert meaningful(admitted["pod"]) == meaningful(expect["pod"])
    if expect["versionedSubsetStatuses"] is not None:
        assert versions(admitted["status"]) == versions(expect)
    if expect.get("generatedUID"):
        check_generated(explained, expect)


def meaningful(document: Any) -> Any:
    """Take empty maps and lists away, but for one that every injection leaves."""
    if isinstance(document, dict):
        kept = {key: meaningful(value) for key, value in document.items()}
        return {k: v for k, v in kept.items() if v not in ({}, []) or k == "nodeAffinity"}
    return [meaningful(each) for each in document] if isinstance(document, list) else document


def check_generated(explained: SpreadExplanation, expect: Mapping[str, Any]) -> None:
    assert explained.injection is not None
    admission = explained.injection.admission
    annotation = decode_spread_pod(encoded(explained.injection.pod)).injection
    assert annotation is not None
    assert annotation.uid == admission.uid != ""
    assert admission.status is not None
    (subsets,) = admission.status.versions.values()
    assert {each.name: each.missing for each in subsets} == expect["missingReplicas"]
    (chosen,) = (each for each in subsets if each.name == admission.subset)
    assert list(chosen.creating) == [admission.uid]


def statefulset_ordinal(case: Case) -> None:
    found = {}
    for pod in case.data["pods"]:
        question = build_query(pod, "default", Operation.CREATE)
        explained = explain_spread(
            case.files, case.written.spread.key, case.now_ns, case.rules, question
        )
        assert explained.injection is not None
        assert (explained.injection.admission.status is None) == case.expect["statusUnchanged"]
        found[pod["metadata"]["name"]] = explained.injection.admission.subset
    assert found == case.expect["subsets"]


CHECKS: Mapping[str, Callable[[Case], None]] = {
    "deletion_cost": deletion_cost,
    "manage_existing": manage_existing,
    "match_subset": match_subset,
    "pod_webhook": pod_webhook,
    "reconcile": reconciled,
    "requeue": requeued,
    "reschedule": reschedule,
    "statefulset_ordinal": statefulset_ordinal,
}


@pytest.mark.parametrize("quirks", [UPSTREAM, FIXED], ids=["upstream", "fixed"])
@pytest.mark.parametrize("data", [data for data in CASES if data["table"] in CHECKS], ids=of)
def test_upstream_asserts_the_same(data: dict[str, Any], quirks: Quirks) -> None:
    CHECKS[data["table"]](Case(data, quirks))


ELSEWHERE = {*PARTS, "e2e"}
"""In test_rule_vectors.py and test_scenarios.py."""


def test_every_table_is_run_in_some_file() -> None:
    assert {data["table"] for data in CASES} <= {*CHECKS, *ELSEWHERE}
