"""The fields of a subset, injected into pods."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec
import pytest

from extender.kube.patches.strategic_merge_patch import PatchError
from extender.kube.workloadspread.pod_injection import (
    adoption_patch,
    cost_patch,
    inject,
    is_as_patched,
    strategic_merge_pod,
)
from extender.kube.workloadspread.spread_pods import MATCHED_WORKLOADSPREAD
from extender.kube.workloadspread.spreads import StoredWorkloadSpread, decode_workloadspread
from policies.replicaset import DELETION_COST
from tests.builders import encoded
from tests.builders.workloadspread import injected, pod_of, spread_json

ZONE_A = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
ON_X = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["x"]}]}
PREFERENCE = {"weight": 5, "preference": ZONE_A}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
PATCH = {"metadata": {"labels": {"zone": "a"}, "annotations": {"x": "y"}}, "spec": {"x": 1}}
IGNORE = "workloadspread.kruise.io/ignore-patch-existing-pods-metadata"


def stored(**fields: Any) -> StoredWorkloadSpread:
    return decode_workloadspread(encoded(spread_json({"name": "a", **fields})))


def inject_into(pod: dict[str, Any], uid: str = "", **fields: Any) -> dict[str, Any]:
    before = deepcopy(pod)
    after = inject(pod, stored(**fields), "a", uid)
    assert pod == before
    return after


def with_terms(*terms: dict[str, Any]) -> dict[str, Any]:
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}
    return pod_of("web-1", spec={"affinity": affinity})


def test_the_annotation_is_the_subset_of_a_pod() -> None:
    after = inject_into(pod_of("web-1", metadata={"annotations": {"mine": "x"}}))
    annotations = after["metadata"]["annotations"]
    assert annotations == {"mine": "x", **injected("a")}
    assert after["spec"]["affinity"] == {"nodeAffinity": {}}


def test_a_pod_without_a_name_is_identified_by_its_id() -> None:
    annotations = inject_into(pod_of("web-1"), uid="i")["metadata"]["annotations"]
    written = msgspec.json.decode(annotations[MATCHED_WORKLOADSPREAD])
    assert written == {"name": "web", "subset": "a", "uid": "i"}


def test_tolerations_are_added() -> None:
    own, more = {"key": "own", "operator": "Exists"}, {"operator": "Exists"}
    pod = pod_of("web-1", spec={"tolerations": [own]})
    assert inject_into(pod, tolerations=[more])["spec"]["tolerations"] == [own, more]
    assert "tolerations" not in inject_into(pod_of("web-1"), tolerations=[])["spec"]


def test_preferences_are_added() -> None:
    pod = pod_of("web-1", spec={"affinity": {"nodeAffinity": {PREFERRED: [PREFERENCE]}}})
    after = inject_into(pod, preferredNodeSelector=[PREFERENCE])
    assert after["spec"]["affinity"]["nodeAffinity"] == {PREFERRED: [PREFERENCE, PREFERENCE]}


@pytest.mark.parametrize(
    ("terms", "narrowed"),
    [
        ((), [ZONE_A]),
        ((ON_X,), [{**ZONE_A, **ON_X}]),
        ((ZONE_A, {}), [{"matchExpressions": ZONE_A["matchExpressions"] * 2}, ZONE_A]),
    ],
)
def test_each_term_gets_the_requirements_of_the_subset(
    terms: tuple[dict[str, Any], ...], narrowed: list[dict[str, Any]]
) -> None:
    after = inject_into(with_terms(*terms), requiredNodeSelector=ZONE_A)
    found = after["spec"]["affinity"]["nodeAffinity"][REQUIRED]
    assert found == {"nodeSelectorTerms": narrowed}


def test_other_affinity_stays() -> None:
    pod = pod_of("web-1", spec={"affinity": {"podAffinity": {"x": []}}})
    assert inject_into(pod)["spec"]["affinity"]["podAffinity"] == {"x": []}


def test_the_patch_is_merged_last() -> None:
    patch = {
        "metadata": {"labels": {"zone": "a"}},
        "spec": {"containers": [{"name": "main", "image": "web:2"}], "tolerations": None},
    }
    after = inject_into(pod_of("web-1"), patch=patch, tolerations=[{"operator": "Exists"}])
    assert after["metadata"]["labels"] == {"zone": "a"}
    assert after["spec"]["containers"] == [{"name": "main", "image": "web:2"}]
    assert "tolerations" not in after["spec"]


@pytest.mark.parametrize(
    ("spec", "patched", "priority"),
    [
        ({}, "high", None),
        ({"priorityClassName": "low"}, "high", None),
        ({"priorityClassName": "high"}, "high", 7),
    ],
)
def test_another_priority_class_has_another_priority(
    spec: dict[str, Any], patched: str, priority: int | None
) -> None:
    pod = pod_of("web-1", spec={**spec, "priority": 7})
    after = inject_into(pod, patch={"spec": {"priorityClassName": patched}})
    assert after["spec"].get("priority") == priority


def test_an_invalid_patch_is_reported() -> None:
    with pytest.raises(PatchError, match="does not contain declared merge key: name"):
        inject_into(pod_of("web-1"), patch={"spec": {"containers": [{"image": "x"}]}})
    with pytest.raises(PatchError, match="invalid JSON document"):
        inject_into(pod_of("web-1"), patch="x")


def test_an_existing_pod_gets_only_metadata() -> None:
    annotations = {"x": "y", **injected("a")}
    assert adoption_patch(stored(patch=PATCH), "a") == {
        "metadata": {"labels": {"zone": "a"}, "annotations": annotations}
    }


def test_an_existing_pod_gets_only_the_annotation_without_metadata_in_the_patch() -> None:
    only = {"metadata": {"annotations": injected("a")}}
    document = spread_json({"name": "a", "patch": PATCH})
    document["metadata"]["annotations"] = {IGNORE: "true"}
    assert adoption_patch(decode_workloadspread(encoded(document)), "a") == only
    assert adoption_patch(stored(), "a") == only
    assert adoption_patch(stored(patch={"spec": {}}), "a") == only


def test_a_deletion_cost_is_an_annotation() -> None:
    assert cost_patch("-100") == {"metadata": {"annotations": {DELETION_COST: "-100"}}}


@pytest.mark.parametrize(
    ("patch", "applied"),
    [
        ({"metadata": {"labels": {"zone": "a"}}}, True),
        ({"metadata": {"annotations": {"not": "there"}}}, True),
        ({"metadata": {"labels": {"zone": "b"}}}, False),
        ({"spec": {"containers": [{"name": "main", "image": "web:1"}]}}, True),
        ({"spec": {"containers": [{"name": "main", "env": []}]}}, True),
        ({"spec": {"containers": [{"name": "side", "image": "web:1"}]}}, False),
        ({"spec": {"containers": [{"image": "web:1"}]}}, False),
        ({}, True),
    ],
)
def test_a_patch_that_changes_nothing_has_been_applied(
    patch: dict[str, Any], *, applied: bool
) -> None:
    pod = pod_of("web-1", metadata={"labels": {"zone": "a"}})
    assert is_as_patched(pod, {"name": "a", "patch": patch}) == applied


def test_lists_of_pods_merge_by_their_keys() -> None:
    pod = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}], "nodeSelector": {"a": "b"}}}
    patch = {"spec": {"volumes": [{"name": "w"}], "nodeSelector": {"c": "d"}}}
    merged = strategic_merge_pod(pod, patch)["spec"]
    assert {each["name"] for each in merged["volumes"]} == {"v", "w"}
    assert merged["nodeSelector"] == {"a": "b", "c": "d"}
    env = {"spec": {"containers": [{"name": "m", "env": [{"name": "A", "value": "1"}]}]}}
    more = {"spec": {"containers": [{"name": "m", "env": [{"name": "A", "value": "2"}]}]}}
    assert strategic_merge_pod(env, more) == more
