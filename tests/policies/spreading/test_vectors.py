"""Upstream's own test tables, and what was read from its source: all of it holds here, too.

Every case runs with upstream's quirks. Those that do not show a quirk run without any as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import pytest

from extender.explain_spread import (
    Explained,
    Operation,
    ask,
    explain_spread,
    spread_document,
)
from extender.kube.objects import decode_node
from extender.kube.workloadspread.conversion import V1BETA1, convert
from extender.kube.workloadspread.injecting import adoption_patch, cost_patch, is_as_patched
from extender.kube.workloadspread.podpatch import patch_pod
from extender.kube.workloadspread.pods import decode_spread_pod
from extender.kube.workloadspread.spreads import WrittenSpread, decode_spread, encode_status
from extender.kube.workloadspread.workloads import decode_workload
from extender.spreadfiles import SpreadFiles
from extender.validate_spread import spread_faults, validation_document
from fakeapi.api.podspecs import pod_spec_faults
from policies.spreading.choosing import first_counts, ordinal
from policies.spreading.matching import match_score
from policies.spreading.model import SpreadPod
from policies.spreading.owners import (
    OwnerNotFoundError,
    Owners,
    SelectionError,
    refers_to,
    selects,
    supported,
)
from policies.spreading.paths import PathError, nested_integer, replicas_at
from policies.spreading.placement_rules import Fault
from policies.spreading.quirks import FIXED, UPSTREAM, Quirks
from policies.spreading.reconciling import SpreadRules
from policies.spreading.references import ApiVersionError, Reference
from policies.spreading.targets import replicas_for_webhook
from policies.spreading.validation import conflict_faults, update_faults
from policies.spreading.versions import (
    DEFAULT_VERSIONED_KINDS,
    NewestUnknownError,
    newest_version,
    pod_version,
    versioned_kinds,
)
from policies.spreading.watching import (
    pod_change_matters,
    spread_of_pod,
    spread_of_workload,
    workload_arrival_matters,
    workload_change_matters,
)
from tests.builders import encoded
from tests.spreads import files, moment

CASES: list[dict[str, Any]] = msgspec.json.decode(
    (Path(__file__).parents[2] / "vectors" / "workloadspread.json").read_bytes()
)["cases"]


@dataclass(frozen=True)
class Case:
    """A case of the tables, and the quirks under which it runs."""

    data: Mapping[str, Any]
    quirks: Quirks

    @property
    def expect(self) -> Mapping[str, Any]:
        expect: Mapping[str, Any] = self.data["expect"]
        return expect

    @property
    def input(self) -> Mapping[str, Any]:
        given: Mapping[str, Any] = self.data["input"]
        return given

    @cached_property
    def kinds(self) -> frozenset[str]:
        kinds = (self.data.get("config") or {}).get("versionedStatusKinds")
        return DEFAULT_VERSIONED_KINDS if kinds is None else versioned_kinds(kinds)

    @cached_property
    def files(self) -> SpreadFiles:
        ones = (self.data.get("workloadspread"), self.data.get("workload"))
        many = (self.data.get(name) or () for name in ("pods", "nodes", "extra", "existing"))
        documents = [*ones, *(each for several in many for each in several)]
        return files(*(each for each in documents if each and each["metadata"].get("name")))

    @cached_property
    def written(self) -> WrittenSpread:
        return decode_spread(encoded(self.data["workloadspread"]))

    @cached_property
    def pods(self) -> list[SpreadPod]:
        return [decode_spread_pod(encoded(each)) for each in self.data["pods"]]

    @property
    def now_ns(self) -> int:
        return moment(self.data["now"])

    @property
    def rules(self) -> SpreadRules:
        return SpreadRules(self.kinds, self.quirks)

    @cached_property
    def explained(self) -> Explained:
        return explain_spread(self.files, self.written.spread.key, self.now_ns, self.rules)

    def owners(self, pod: SpreadPod) -> Owners:
        return self.files.owners(pod)


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
        for pod, wanted in expect.get(f"pod{part.capitalize()}", {}).items():
            present = patched_pods(case)[pod]["metadata"].get(part, {})
            assert {key: present.get(key) for key in wanted} == wanted


def patched_pods(case: Case) -> dict[str, Any]:
    """Give the pods as they are once all patches of a reconcile have been sent."""
    outcome = case.explained.outcome
    pods = {each["metadata"]["name"]: each for each in case.data["pods"]}
    for name, subset in outcome.groups.adopted.items():
        pods[name] = patch_pod(pods[name], adoption_patch(case.written, subset.name))
    for name, cost in outcome.cost_changes.items():
        pods[name] = patch_pod(pods[name], cost_patch(cost))
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


OPERATIONS = {
    "Create": Operation.CREATE,
    "Delete": Operation.DELETE,
    "Eviction": Operation.EVICT,
}


def pod_webhook(case: Case) -> None:
    expect, pod = case.expect, case.data["pods"][0]
    question = ask(pod, "default", OPERATIONS[case.data["operation"]])
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


def check_generated(explained: Explained, expect: Mapping[str, Any]) -> None:
    assert explained.answer is not None
    admission = explained.answer.admission
    annotation = decode_spread_pod(encoded(explained.answer.pod)).injection
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
        question = ask(pod, "default", Operation.CREATE)
        explained = explain_spread(
            case.files, case.written.spread.key, case.now_ns, case.rules, question
        )
        assert explained.answer is not None
        assert (explained.answer.admission.status is None) == case.expect["statusUnchanged"]
        found[pod["metadata"]["name"]] = explained.answer.admission.subset
    assert found == case.expect["subsets"]


def patch(case: Case) -> None:
    merged = patch_pod(case.data["pods"][0], case.input["patch"])
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
    found = first_counts(spread.subsets, replicas, case.quirks)
    assert [
        {"name": each.name, "replicas": each.replicas, "missingReplicas": each.missing}
        for each in found
    ] == case.expect["subsetStatuses"]


def reference(written: Mapping[str, str]) -> Reference:
    return Reference(written["apiVersion"], written["kind"], written["name"])


def reference_equal(case: Case) -> None:
    owner = reference(case.input["ownerReference"])
    check_reference(case, owner, Owners())


def reference_chain(case: Case) -> None:
    (pod,) = case.pods
    check_reference(case, pod.controller, case.files.owners(pod))


def check_reference(case: Case, owner: Reference | None, owners: Owners) -> None:
    problem = ""
    try:
        equal = refers_to(reference(case.input["targetRef"]), owner, owners)
    except (ApiVersionError, OwnerNotFoundError) as error:
        equal, problem = False, str(error)
    assert equal == case.expect["equal"]
    assert (case.expect.get("error") or "") in problem


def owner_kind(case: Case) -> None:
    owner = reference(case.input["ownerReference"])
    assert supported(owner, case.files.whitelist) == case.expect["supported"]


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
    except NewestUnknownError:
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
    wanted = decode_spread(encoded(spread)).spread.target_filter
    try:
        selected = selects(wanted, case.input["labels"], case.quirks)
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
    """Give what is at a dotted path; None for nothing."""
    for step in path.split("."):
        if isinstance(document, list):
            document = document[int(step)]
        else:
            document = None if document is None else document.get(step)
    return document


def event_mapping(case: Case) -> None:
    workload = case.data["workload"]
    spreads = [decode_spread(encoded(each)).spread for each in case.data["existing"]]
    found = spread_of_workload(decode_workload(workload["kind"], encoded(workload)), spreads)
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
        workload_change_matters(old, new, case.files.whitelist)
        if case.data["operation"] == "update"
        else workload_arrival_matters(new)
    )
    found = spread_of_workload(new, [case.written.spread])
    return [found.key] if matters and found is not None else []


def enqueued_by_pod(case: Case) -> list[str]:
    pods = [
        *case.pods,
        *(decode_spread_pod(encoded(each)) for each in case.data.get("newPods") or ()),
    ]
    old, new = pods[0], pods[-1]
    if case.data["operation"] == "update" and not pod_change_matters(
        old, new, case.kinds, case.quirks
    ):
        return []
    name = spread_of_pod(new)
    return [] if name is None else [f"{new.namespace}/{name}"]


def validation(case: Case) -> None:
    check_faults(case, spread_faults(case.written, case.files, case.quirks, pod_spec_faults))


def check_faults(case: Case, faults: Iterable[Fault]) -> None:
    document, expect = validation_document(faults), case.expect
    assert document["valid"] == expect.get("valid", expect.get("allowed"))
    assert set(expect.get("fields", ())) <= {each["field"] for each in document["errors"]}
    assert set(expect.get("messages", ())) <= {each["message"] for each in document["errors"]}
    if "errorCount" in expect:
        assert len(document["errors"]) == expect["errorCount"]
    if expect.get("fieldPrefix"):
        assert all(e["field"].startswith(expect["fieldPrefix"]) for e in document["errors"])


def validate_update(case: Case) -> None:
    old = decode_spread(encoded(case.data["old"])).spread
    check_faults(case, update_faults(case.written.spread, old))


def validate_conflict(case: Case) -> None:
    others = [decode_spread(encoded(each)).spread for each in case.data["existing"]]
    check_faults(case, conflict_faults(case.written.spread, others))


def validate_handler(case: Case) -> None:
    old = case.data.get("old")
    around = files(*([old] if old else ()))
    check_faults(case, spread_faults(case.written, around, case.quirks, pod_spec_faults))


CHECKS: Mapping[str, Callable[[Case], None]] = {
    "conversion": conversion,
    "deletion_cost": deletion_cost,
    "event_enqueue": event_enqueue,
    "event_mapping": event_mapping,
    "initial_status": initial_status,
    "manage_existing": manage_existing,
    "match_subset": match_subset,
    "nested_field": nested_field,
    "ordinal": check_ordinal,
    "owner_kind": owner_kind,
    "patch": patch,
    "pod_selected": pod_selected,
    "pod_version": check_pod_version,
    "pod_webhook": pod_webhook,
    "reconcile": reconciled,
    "reference_chain": reference_chain,
    "reference_equal": reference_equal,
    "replicas_path": replicas_path,
    "requeue": requeued,
    "reschedule": reschedule,
    "statefulset_ordinal": statefulset_ordinal,
    "validate_conflict": validate_conflict,
    "validate_create": validation,
    "validate_handler": validate_handler,
    "validate_patch": validation,
    "validate_update": validate_update,
    "workload_replicas": workload_replicas,
    "workload_version": workload_version,
}

ELSEWHERE = {"e2e": "test_scenarios.py"}


@pytest.mark.parametrize("quirks", [UPSTREAM, FIXED], ids=["upstream", "fixed"])
@pytest.mark.parametrize(
    "data",
    [data for data in CASES if data["table"] in CHECKS],
    ids=lambda data: f"{data['table']}: {data['name']}",
)
def test_what_upstream_asserts_holds(data: dict[str, Any], quirks: Quirks) -> None:
    CHECKS[data["table"]](Case(data, quirks))


def test_every_table_is_run_here_or_elsewhere() -> None:
    assert {data["table"] for data in CASES} <= set(CHECKS) | set(ELSEWHERE)
