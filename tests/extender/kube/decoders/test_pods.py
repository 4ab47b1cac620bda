"""Terms about other pods and spread constraints, as written and as meant."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.decoders.pods import decode_pod
from policies.kubernetes.releases import NEWEST
from policies.kubernetes.selectors import LabelSelector, Requirement
from policies.kubernetes.snapshot import AffinityTerm, Pod, SpreadConstraint
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
def test_label_keys_stand_for_the_pods_own_values(
    keys: Document, requirement: list[Requirement]
) -> None:
    term = {"labelSelector": MATCH_WEB, "topologyKey": "zone", **keys}
    found = decoded({"rev": "7"}, affinity={"podAffinity": {REQUIRED: [term]}})
    assert found.affinity[0].selector == LabelSelector((WEB, *requirement))


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
def test_a_constraint_says_which_nodes_count(fields: Document, expected: dict[str, Any]) -> None:
    assert constrained(**fields) == (
        SpreadConstraint(1, "zone", LabelSelector((WEB,)), **expected),
    )


def test_a_constraint_without_a_selector_has_none_to_add_labels_to() -> None:
    assert constrained(labelSelector=None, matchLabelKeys=["rev"])[0].selector is None
    own = Requirement("rev", "In", ("7",))
    assert constrained(matchLabelKeys=["rev"])[0].selector == LabelSelector((WEB, own))


def test_a_constraint_that_only_prefers_does_not_filter() -> None:
    assert constrained(whenUnsatisfiable="ScheduleAnyway") == ()
