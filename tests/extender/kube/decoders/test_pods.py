"""Pods: affinity and spread constraints, when they started, and who controls them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from extender.kube.decoders.pods import decode_pod, decode_undefaulted_pod, epoch_ns
from policies.kubernetes.default_selector import PodOwner
from policies.kubernetes.releases import NEWEST
from policies.kubernetes.selectors import LabelSelector, Requirement, SpreadConstraint
from policies.kubernetes.snapshot import AffinityTerm, Pod
from tests.builders import Document, encoded, pod_json

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WEB = Requirement("app", "In", ("web",))
MATCH_WEB = {"matchLabels": {"app": "web"}}


def decoded(labels: dict[str, str] | None = None, **spec: Any) -> Pod:
    return decode_pod(encoded(pod_json(labels=labels, spec=spec)), NEWEST)


def constrained(**fields: Any) -> tuple[SpreadConstraint, ...]:
    base = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": MATCH_WEB,
    }
    return decoded({"app": "web", "rev": "7"}, topologySpreadConstraints=[base | fields]).spread


@pytest.mark.parametrize("field", ["podAffinity", "podAntiAffinity"])
def test_required_terms_count_and_preferred_ones_do_not(field: str) -> None:
    term = {"labelSelector": MATCH_WEB, "topologyKey": "zone"}
    preferred = [{"weight": 1, "podAffinityTerm": term}]
    found = decoded(affinity={field: {REQUIRED: [term], PREFERRED: preferred}})
    expected = (AffinityTerm(LabelSelector((WEB,)), frozenset({"default"}), None, "zone"),)
    terms = {"podAffinity": found.affinity, "podAntiAffinity": found.anti_affinity}
    assert terms.pop(field) == expected
    assert set(terms.values()) == {()}


@pytest.mark.parametrize(
    ("keys", "requirement"),
    [
        ({"matchLabelKeys": ["rev"]}, [Requirement("rev", "In", ("7",))]),
        ({"mismatchLabelKeys": ["rev"]}, [Requirement("rev", "NotIn", ("7",))]),
        ({"matchLabelKeys": ["absent"]}, []),
        ({"matchLabelKeys": None, "mismatchLabelKeys": None}, []),
    ],
)
@pytest.mark.parametrize("field", ["podAffinity", "podAntiAffinity"])
def test_label_keys_select_the_own_values_of_a_pod_that_no_api_server_has_created(
    field: str, keys: Document, requirement: list[Requirement]
) -> None:
    term = {"labelSelector": MATCH_WEB, "topologyKey": "zone", **keys}
    written = pod_json(labels={"rev": "7"}, spec={"affinity": {field: {REQUIRED: [term]}}})
    created = decode_undefaulted_pod(encoded(written), NEWEST)
    assert selectors(created) == [LabelSelector((WEB,))]
    del written["metadata"]["uid"]
    template = decode_undefaulted_pod(encoded(written), NEWEST)
    assert selectors(template) == [LabelSelector((WEB, *requirement))]


def selectors(pod: Pod) -> list[LabelSelector | None]:
    return [term.selector for term in (*pod.affinity, *pod.anti_affinity)]


def test_label_keys_of_affinity_without_a_selector_select_nothing() -> None:
    term = {"topologyKey": "zone", "matchLabelKeys": ["rev"]}
    written = pod_json(labels={"rev": "7"}, spec={"affinity": {"podAffinity": {REQUIRED: [term]}}})
    del written["metadata"]["uid"]
    assert selectors(decode_undefaulted_pod(encoded(written), NEWEST)) == [None]


def test_a_relabelled_pod_keeps_its_affinity_and_changes_its_spread() -> None:
    merged = {"key": "rev", "operator": "In", "values": ["7"]}
    selector = {**MATCH_WEB, "matchExpressions": [merged]}
    keyed = {"labelSelector": selector, "topologyKey": "zone", "matchLabelKeys": ["rev"]}
    found = decoded(
        {"rev": "8"},
        affinity={"podAntiAffinity": {REQUIRED: [keyed]}},
        topologySpreadConstraints=[keyed | {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}],
    )
    created, current = (Requirement("rev", "In", (value,)) for value in "78")
    assert selectors(found) == [LabelSelector((WEB, created))]
    assert found.spread[0].selector == LabelSelector((WEB, created, current))


def test_a_constraint_has_kubernetes_defaults() -> None:
    assert constrained() == (SpreadConstraint(1, "zone", LabelSelector((WEB,))),)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"minDomains": 3}, {"min_domains": 3}),
        ({"nodeAffinityPolicy": "Ignore"}, {"honors_affinity": False}),
        ({"nodeTaintsPolicy": "Honor"}, {"honors_taints": True}),
        ({"nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore"}, {}),
    ],
)
def test_the_policies_of_a_constraint_decide_which_nodes_count(
    fields: Document, expected: dict[str, Any]
) -> None:
    assert constrained(**fields) == (
        SpreadConstraint(1, "zone", LabelSelector((WEB,)), **expected),
    )


def test_label_keys_are_ignored_without_a_selector() -> None:
    assert constrained(labelSelector=None, matchLabelKeys=["rev"])[0].selector is None
    own = Requirement("rev", "In", ("7",))
    assert constrained(matchLabelKeys=["rev"])[0].selector == LabelSelector((WEB, own))


def test_a_soft_constraint_does_not_filter() -> None:
    assert constrained(whenUnsatisfiable="ScheduleAnyway") == ()


@pytest.mark.parametrize(
    ("moment", "ns"),
    [
        (datetime(1970, 1, 1, 0, 0, 7, tzinfo=UTC), 7 * 10**9),
        (datetime(1970, 1, 1, 0, 0, 7, tzinfo=UTC).replace(tzinfo=None), 7 * 10**9),
        (datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), -(10**9)),
        (datetime(2262, 4, 11, 23, 47, 16, tzinfo=UTC), 9_223_372_036 * 10**9),
        (datetime(2262, 4, 11, 23, 47, 17, tzinfo=UTC), 2**63 - 1),
        (datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), 2**63 - 1),
        (datetime(1, 1, 1, tzinfo=UTC), 1 - 2**63),
    ],
)
def test_a_time_beyond_int64_is_clamped(moment: datetime, ns: int) -> None:
    assert epoch_ns(moment) == ns
    assert -(2**63) < -epoch_ns(moment) < 2**63


def test_a_pod_with_the_last_possible_start_is_decoded() -> None:
    document = pod_json(status={"startTime": "9999-12-31T23:59:59Z"})
    assert decode_pod(encoded(document), NEWEST).started_ns == 2**63 - 1


def controller_of(*references: Document) -> PodOwner | None:
    document = pod_json(metadata={"ownerReferences": list(references)})
    return decode_pod(encoded(document), NEWEST).controller


def reference(api_version: str, kind: str, *, controller: bool | None = True) -> Document:
    return {"apiVersion": api_version, "kind": kind, "name": "web", "controller": controller}


@pytest.mark.parametrize(
    ("api_version", "kind", "followed"),
    [
        ("apps/v1", "ReplicaSet", True),
        ("apps/v1", "StatefulSet", True),
        ("v1", "ReplicationController", True),
        ("apps/v1", "DaemonSet", False),
        ("batch/v1", "Job", False),
        ("apps/v1beta1", "StatefulSet", False),
        ("v1", "ReplicaSet", False),
    ],
)
def test_the_controller_of_a_pod_is_known_if_it_is_of_a_kind_that_spreads_pods(
    api_version: str, kind: str, *, followed: bool
) -> None:
    found = controller_of(reference(api_version, kind))
    assert found == (PodOwner(kind, "web") if followed else None)


def test_only_the_owner_that_controls_a_pod_counts() -> None:
    other = reference("apps/v1", "StatefulSet", controller=None)
    assert controller_of(other) is None
    assert controller_of(other, reference("apps/v1", "ReplicaSet")) == PodOwner("ReplicaSet", "web")
    job = reference("batch/v1", "Job")
    assert controller_of(job, reference("apps/v1", "ReplicaSet")) is None


@pytest.mark.parametrize(
    ("actions", "soft"),
    [
        ((), False),
        (("DoNotSchedule",), False),
        (("ScheduleAnyway",), True),
        (("DoNotSchedule", "ScheduleAnyway"), True),
    ],
)
def test_the_presence_of_soft_constraints_is_known(actions: tuple[str, ...], *, soft: bool) -> None:
    constraints = [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": action} for action in actions
    ]
    assert decoded(topologySpreadConstraints=constraints).soft_spread is soft


@pytest.mark.parametrize(
    ("written", "expected"),
    [(None, "default-scheduler"), ("", "default-scheduler"), ("batch", "batch")],
)
def test_a_pod_without_a_scheduler_name_has_the_default_one(
    written: str | None, expected: str
) -> None:
    assert decoded(schedulerName=written).scheduler_name == expected
