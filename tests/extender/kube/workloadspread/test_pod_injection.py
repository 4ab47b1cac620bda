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
from tests.builders import encoded
from tests.builders.workloadspread import pod_of, spread_json

IN_A = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
ON_X = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["x"]}]}
WEIGHED = {"weight": 5, "preference": IN_A}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
PATCH = {"metadata": {"labels": {"zone": "a"}, "annotations": {"x": "y"}}, "spec": {"x": 1}}
IGNORE = "workloadspread.kruise.io/ignore-patch-existing-pods-metadata"


def written(**fields: Any) -> StoredWorkloadSpread:
    return decode_workloadspread(encoded(spread_json({"name": "a", **fields})))


def injected(pod: dict[str, Any], uid: str = "", **fields: Any) -> dict[str, Any]:
    before = deepcopy(pod)
    after = inject(pod, written(**fields), "a", uid)
    assert pod == before
    return after


def with_terms(*terms: dict[str, Any]) -> dict[str, Any]:
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}
    return pod_of("web-1", spec={"affinity": affinity})


class TestInjection:
    def test_the_annotation_says_where_a_pod_belongs(self) -> None:
        after = injected(pod_of("web-1", metadata={"annotations": {"mine": "x"}}))
        said = after["metadata"]["annotations"]
        assert said == {"mine": "x", MATCHED_WORKLOADSPREAD: '{"name":"web","subset":"a"}'}
        assert after["spec"]["affinity"] == {"nodeAffinity": {}}

    def test_a_pod_without_a_name_is_identified_by_its_id(self) -> None:
        said = injected(pod_of("web-1"), uid="i")["metadata"]["annotations"][MATCHED_WORKLOADSPREAD]
        assert msgspec.json.decode(said) == {"name": "web", "subset": "a", "uid": "i"}

    def test_tolerations_are_added(self) -> None:
        own, more = {"key": "own", "operator": "Exists"}, {"operator": "Exists"}
        pod = pod_of("web-1", spec={"tolerations": [own]})
        assert injected(pod, tolerations=[more])["spec"]["tolerations"] == [own, more]
        assert "tolerations" not in injected(pod_of("web-1"), tolerations=[])["spec"]

    def test_preferences_are_added(self) -> None:
        pod = pod_of("web-1", spec={"affinity": {"nodeAffinity": {PREFERRED: [WEIGHED]}}})
        after = injected(pod, preferredNodeSelector=[WEIGHED])
        assert after["spec"]["affinity"]["nodeAffinity"] == {PREFERRED: [WEIGHED, WEIGHED]}

    @pytest.mark.parametrize(
        ("terms", "narrowed"),
        [
            ((), [IN_A]),
            ((ON_X,), [{**IN_A, **ON_X}]),
            (
                (IN_A, {}),
                [{"matchExpressions": IN_A["matchExpressions"] * 2}, IN_A],
            ),
        ],
    )
    def test_each_term_asks_for_what_the_subset_requires(
        self, terms: tuple[dict[str, Any], ...], narrowed: list[dict[str, Any]]
    ) -> None:
        after = injected(with_terms(*terms), requiredNodeSelector=IN_A)
        found = after["spec"]["affinity"]["nodeAffinity"][REQUIRED]
        assert found == {"nodeSelectorTerms": narrowed}

    def test_other_affinity_stays(self) -> None:
        pod = pod_of("web-1", spec={"affinity": {"podAffinity": {"x": []}}})
        assert injected(pod)["spec"]["affinity"]["podAffinity"] == {"x": []}

    def test_the_patch_is_merged_after_that(self) -> None:
        patch = {
            "metadata": {"labels": {"zone": "a"}},
            "spec": {"containers": [{"name": "main", "image": "web:2"}], "tolerations": None},
        }
        after = injected(pod_of("web-1"), patch=patch, tolerations=[{"operator": "Exists"}])
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
        self, spec: dict[str, Any], patched: str, priority: int | None
    ) -> None:
        pod = pod_of("web-1", spec={**spec, "priority": 7})
        after = injected(pod, patch={"spec": {"priorityClassName": patched}})
        assert after["spec"].get("priority") == priority

    def test_an_invalid_patch_is_reported(self) -> None:
        with pytest.raises(PatchError, match="does not contain declared merge key: name"):
            injected(pod_of("web-1"), patch={"spec": {"containers": [{"image": "x"}]}})
        with pytest.raises(PatchError, match="invalid JSON document"):
            injected(pod_of("web-1"), patch="x")


class TestAdoption:
    def test_an_existing_pod_gets_only_metadata(self) -> None:
        annotations = {"x": "y", MATCHED_WORKLOADSPREAD: '{"name":"web","subset":"a"}'}
        assert adoption_patch(written(patch=PATCH), "a") == {
            "metadata": {"labels": {"zone": "a"}, "annotations": annotations}
        }

    def test_or_only_where_it_belongs(self) -> None:
        only = {
            "metadata": {"annotations": {MATCHED_WORKLOADSPREAD: '{"name":"web","subset":"a"}'}}
        }
        document = spread_json({"name": "a", "patch": PATCH})
        document["metadata"]["annotations"] = {IGNORE: "true"}
        assert adoption_patch(decode_workloadspread(encoded(document)), "a") == only
        assert adoption_patch(written(), "a") == only
        assert adoption_patch(written(patch={"spec": {}}), "a") == only

    def test_costs_are_an_annotation(self) -> None:
        said = {"controller.kubernetes.io/pod-deletion-cost": "-100"}
        assert cost_patch("-100") == {"metadata": {"annotations": said}}


class TestLikeness:
    @pytest.mark.parametrize(
        ("patch", "alike"),
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
    def test_a_patch_that_changes_nothing_was_applied(
        self, patch: dict[str, Any], *, alike: bool
    ) -> None:
        pod = pod_of("web-1", metadata={"labels": {"zone": "a"}})
        assert is_as_patched(pod, {"name": "a", "patch": patch}) == alike


def test_lists_of_pods_merge_by_their_keys() -> None:
    pod = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}], "nodeSelector": {"a": "b"}}}
    patch = {"spec": {"volumes": [{"name": "w"}], "nodeSelector": {"c": "d"}}}
    merged = strategic_merge_pod(pod, patch)["spec"]
    assert {each["name"] for each in merged["volumes"]} == {"v", "w"}
    assert merged["nodeSelector"] == {"a": "b", "c": "d"}
    env = {"spec": {"containers": [{"name": "m", "env": [{"name": "A", "value": "1"}]}]}}
    more = {"spec": {"containers": [{"name": "m", "env": [{"name": "A", "value": "2"}]}]}}
    assert strategic_merge_pod(env, more) == more
