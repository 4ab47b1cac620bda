"""The pods and replicas of a target of each kind, and paths into its object."""

from __future__ import annotations

from typing import Any

import pytest

from policies.kubernetes.selectors import LabelSelector, equals_all
from policies.workloadspread.model import SpreadPod, TargetFilter, WorkloadSpread
from policies.workloadspread.object_references import ObjectKey, WorkloadReference
from policies.workloadspread.quirks import FIXED, UPSTREAM, Quirks
from policies.workloadspread.targets import (
    PathError,
    Target,
    TargetError,
    TargetPods,
    find_target_pods,
    nested_integer,
    replicas_at,
    replicas_for_webhook,
)
from policies.workloadspread.workloads import AllowedKind, AllowedKinds, Scale, TargetWorkload
from tests.builders.workloadspread import (
    CLONE_SET,
    DEPLOYMENT,
    JOB,
    REPLICA_SET,
    STATEFUL_SET,
    member,
    replica_set,
    spread,
    subset,
    workload,
)

WEB = LabelSelector(equals_all({"app": "web"}))
GAMES = WorkloadReference("games.io/v1", "GameSet", "web", "web-uid")
ADVANCED = WorkloadReference("apps.kruise.io/v1beta1", "StatefulSet", "web", "web-uid")
CONTROLLER = WorkloadReference("v1", "ReplicationController", "web", "web-uid")
LISTED = AllowedKinds((AllowedKind("games.io", "v1", "GameSet", "spec.count"),))

OWN = member("own")
SHARED = member("shared", owners=frozenset(["other-uid", "web-uid"]))
FOREIGN = member("foreign", owners=frozenset(["other-uid"]), labels={"app": "web"})


def found(
    reference: WorkloadReference,
    one: TargetWorkload | None,
    *pods: SpreadPod,
    quirks: Quirks = FIXED,
    sets: tuple[TargetWorkload, ...] = (),
    whitelist: AllowedKinds = LISTED,
    **fields: Any,
) -> TargetPods:
    about = spread(subset("a"), target=reference, **fields)
    return find_target_pods(about, Target(one, sets, pods, whitelist), quirks)


def names(of: TargetPods) -> list[str]:
    return [pod.name for pod in of.pods]


@pytest.mark.parametrize(
    "reference", [CLONE_SET, REPLICA_SET, STATEFUL_SET, ADVANCED, CONTROLLER], ids=str
)
class TestKindsThatOwnTheirPods:
    def test_any_owner_reference_counts_and_pods_are_sorted_by_name(
        self, reference: WorkloadReference
    ) -> None:
        of = found(reference, workload(reference, replicas=4), SHARED, FOREIGN, OWN)
        assert (names(of), of.replicas) == (["own", "shared"], 4)

    def test_without_replicas_there_are_no_pods(self, reference: WorkloadReference) -> None:
        assert found(reference, workload(reference, replicas=0), OWN) == TargetPods()

    def test_a_target_that_is_being_deleted_has_no_pods(self, reference: WorkloadReference) -> None:
        going = workload(reference, replicas=4, terminating=True)
        assert found(reference, going, OWN) == TargetPods()


def test_a_missing_target_has_no_pods() -> None:
    assert found(CLONE_SET, None, OWN) == TargetPods()


def test_without_a_target_there_are_no_pods() -> None:
    about = spread(subset("a"), target=None)
    assert find_target_pods(about, Target(workload(), pods=(OWN,)), FIXED) == TargetPods()


class TestDeployment:
    def pods(self, *sets: TargetWorkload) -> list[str]:
        one = workload(DEPLOYMENT, replicas=4, selector=WEB)
        pods = [
            member("of-old", owners=frozenset(["old-uid"])),
            member("of-new", owners=frozenset(["new-uid"])),
            member("its-own"),
        ]
        return names(found(DEPLOYMENT, one, *pods, sets=sets))

    def test_its_pods_are_those_of_its_replica_sets(self) -> None:
        old = replica_set("old", replicas=0)
        assert self.pods(old, replica_set("new")) == ["of-new", "of-old"]

    def test_deleted_and_foreign_replica_sets_do_not_count(self) -> None:
        foreign = replica_set("new", controller=CLONE_SET, labels={})
        assert self.pods(replica_set("old", terminating=True), foreign) == ["its-own"]


class TestJob:
    def test_its_pods_are_those_that_it_owns_and_selects(self) -> None:
        one = workload(JOB, parallelism=2, replicas=9, selector=WEB)
        labelled = member("labelled", labels={"app": "web"})
        of = found(JOB, one, OWN, labelled, FOREIGN)
        assert (names(of), of.replicas) == (["labelled"], 2)

    def test_a_job_has_pods_at_zero_and_while_it_is_deleted(self) -> None:
        one = workload(JOB, parallelism=0, selector=WEB, terminating=True)
        of = found(JOB, one, member("labelled", labels={"app": "web"}))
        assert (names(of), of.replicas) == (["labelled"], 0)

    def test_a_job_without_a_selector_has_no_pods(self) -> None:
        assert names(found(JOB, workload(JOB), OWN)) == []

    @pytest.mark.parametrize("kind", ["Job", "ReplicaSet"])
    def test_a_kind_of_another_group_has_no_pods(self, kind: str) -> None:
        odd = WorkloadReference("odd.io/v1", kind, "web", "web-uid")
        assert found(odd, workload(odd, selector=WEB), OWN) == TargetPods()


class TestOtherKinds:
    def of(self, *pods: SpreadPod, quirks: Quirks = FIXED, **fields: Any) -> TargetPods:
        return found(
            GAMES, workload(GAMES, **fields), *pods, quirks=quirks, whitelist=AllowedKinds()
        )

    def test_without_a_scale_the_replicas_are_unknown(self) -> None:
        of = self.of(OWN, FOREIGN)
        assert (names(of), of.replicas) == (["own"], -1)

    def test_a_scale_has_the_replicas(self) -> None:
        of = self.of(OWN, FOREIGN, scale=Scale(6, WEB))
        assert (names(of), of.replicas) == (["own"], 6)

    def test_if_it_owns_none_the_scale_selects_them(self) -> None:
        assert names(self.of(FOREIGN, scale=Scale(6, WEB))) == ["foreign"]

    def test_a_scale_of_zero_has_no_pods(self) -> None:
        assert self.of(OWN, scale=Scale(0, WEB)) == TargetPods()

    def test_a_scale_without_a_selector_selects_none_or_upstream_all(self) -> None:
        unowned = member("unowned", owners=frozenset())
        assert names(self.of(unowned, scale=Scale(6))) == []
        assert names(self.of(unowned, scale=Scale(6), quirks=UPSTREAM)) == ["unowned"]


COUNTED = {"spec": {"count": 7, "workers": {"replicas": 2}, "name": "x"}}


class TestPaths:
    def replicas(self, quirks: Quirks = FIXED, version: str = "v1", *paths: str) -> int:
        reference = WorkloadReference(f"games.io/{version}", "GameSet", "web", "web-uid")
        target_filter = TargetFilter(replicas_paths=paths) if paths else None
        one = workload(reference, document=COUNTED)
        return found(reference, one, OWN, quirks=quirks, target_filter=target_filter).replicas

    def test_the_filter_s_own_path_comes_first(self) -> None:
        assert self.replicas(FIXED, "v1", "spec.workers.replicas", "spec.count") == 9

    def test_the_whitelist_s_path_comes_second(self) -> None:
        assert self.replicas() == 7

    def test_its_version_is_compared_by_upstream_only(self) -> None:
        assert self.replicas(FIXED, "v2") == 7
        assert self.replicas(UPSTREAM, "v2") == -1

    def test_a_missing_path_is_an_error(self) -> None:
        with pytest.raises(TargetError, match="GameSet default/web: object type error"):
            self.replicas(FIXED, "v1", "spec.name")


class TestFilter:
    def pods(self, target_filter: TargetFilter) -> list[str]:
        labelled = member("labelled", labels={"app": "web"})
        return names(found(CLONE_SET, workload(), OWN, labelled, target_filter=target_filter))

    def test_a_selector_selects(self) -> None:
        assert self.pods(TargetFilter(WEB)) == ["labelled"]

    def test_without_one_all_pods_count(self) -> None:
        assert self.pods(TargetFilter()) == ["labelled", "own"]

    def test_an_invalid_selector_is_an_error(self) -> None:
        with pytest.raises(TargetError, match=r"spec\.targetFilter\.selector: odd"):
            self.pods(TargetFilter(error="odd"))


class TestWebhook:
    def replicas(
        self, reference: WorkloadReference, limit: str | int = "50%", **fields: Any
    ) -> int:
        about: WorkloadSpread = spread(
            subset("a", limit), target=reference, target_filter=fields.pop("target_filter", None)
        )
        return replicas_for_webhook(about, workload(reference, **fields), LISTED)

    @pytest.mark.parametrize("reference", [CLONE_SET, REPLICA_SET, STATEFUL_SET, DEPLOYMENT])
    def test_most_kinds_have_replicas(self, reference: WorkloadReference) -> None:
        assert self.replicas(reference, replicas=4, parallelism=9) == 4

    def test_a_job_has_parallelism(self) -> None:
        assert self.replicas(JOB, replicas=4, parallelism=9) == 9

    def test_absolute_limits_need_no_replicas(self) -> None:
        assert self.replicas(CLONE_SET, 5, replicas=4) == 0

    def test_other_kinds_have_a_path_or_no_replicas(self) -> None:
        assert self.replicas(GAMES, document={"spec": {"count": 7}}) == 7
        assert self.replicas(GAMES, document={"spec": {}}) == 0
        unlisted = WorkloadReference("other.io/v1", "GameSet", "web")
        assert self.replicas(unlisted, document={"spec": {"count": 7}}) == 0

    def test_the_filter_s_path_comes_first_and_must_exist(self) -> None:
        target_filter = TargetFilter(replicas_paths=("spec.count",))
        document = {"spec": {"count": 7}}
        assert self.replicas(CLONE_SET, target_filter=target_filter, document=document) == 7
        with pytest.raises(TargetError, match='path "spec" not exists'):
            self.replicas(CLONE_SET, target_filter=target_filter, document={})

    def test_a_missing_target_has_no_replicas(self) -> None:
        assert replicas_for_webhook(spread(subset("a", "50%")), None, LISTED) == 0


def test_workloads_have_their_identity() -> None:
    assert workload(GAMES).key == "GameSet default/web"
    assert workload(GAMES).identity == ObjectKey("games.io", "GameSet", "web")


# Paths


OBJECT = {"spec": {"replicas": 5, "groups": [1, {"replicas": 2}], "name": "x", "on": True}}


@pytest.mark.parametrize(
    ("paths", "total"),
    [
        ([], 0),
        ([""], 0),
        (["spec.replicas"], 5),
        (["spec.groups.0", "spec.groups.1.replicas", "spec.replicas"], 8),
        (["spec.groups.+1.replicas"], 2),
    ],
)
def test_numbers_add_up(paths: list[str], total: int) -> None:
    assert replicas_at(OBJECT, paths) == total


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("spec.nope", 'path "nope" not exists'),
        ("spec", "object type error"),
        ("spec.name", "object type error"),
        ("spec.on", "object type error"),
        ("spec.replicas.more", "object is not deep enough"),
        ("spec.groups.2", "index 2 out of range"),
        ("spec.groups.-1", "index -1 out of range"),
        ("spec.groups.x", 'parsing "x": invalid syntax'),
        ("spec..replicas", 'path "" not exists'),
    ],
)
def test_a_missing_path_is_reported_with_its_end(path: str, problem: str) -> None:
    with pytest.raises(PathError, match=problem):
        nested_integer(OBJECT, path.split("."))


def test_an_empty_path_is_the_value_itself() -> None:
    assert nested_integer(7, []) == 7
