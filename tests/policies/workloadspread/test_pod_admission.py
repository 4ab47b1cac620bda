"""Answers of the pod webhook: allowed, in a subset, or an error to retry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from policies.workloadspread.model import (
    SpreadPod,
    Subset,
    SubsetInjection,
    SubsetStatus,
    WorkloadSpread,
)
from policies.workloadspread.object_references import WorkloadReference
from policies.workloadspread.pod_admission import (
    ADMITTED,
    AdmissionContext,
    PodAdmission,
    admit_creation,
    admit_placement,
    admit_removal,
)
from policies.workloadspread.quirks import FIXED, UPSTREAM, Quirks
from policies.workloadspread.spread_lookup import OwnerLookup
from policies.workloadspread.workloads import TargetWorkload
from tests.builders.workloadspread import (
    CLONE_SET,
    DEPLOYMENT,
    NOW_NS,
    STATEFUL_SET,
    at,
    member,
    replica_set,
    rules,
    spread,
    status,
    subset,
    workload,
)

SUBSETS = (subset("a", "40%"), subset("b"))


def asking(
    *found: TargetWorkload, quirks: Quirks = FIXED, replicas: int | None = 5
) -> AdmissionContext:
    """Build a context; ``replicas`` are the target's, None if it is missing."""
    target = None if replicas is None else workload(replicas=replicas)
    owners = OwnerLookup({each.identity: each for each in found})
    return AdmissionContext(owners, lambda _: target, NOW_NS, rules(quirks))


def created(
    *spreads: WorkloadSpread, pod: SpreadPod | None = None, around: AdmissionContext | None = None
) -> PodAdmission:
    new = pod or member("web-1", node="", phase="Pending")
    return admit_creation(new, spreads, around or asking(), lambda: "an-id")


def removed(pod: SpreadPod, *spreads: WorkloadSpread) -> PodAdmission:
    return admit_removal(pod, spreads, asking())


def versions(admission: PodAdmission) -> Mapping[str, tuple[SubsetStatus, ...]]:
    assert admission.status is not None
    return admission.status.versions


class TestCreation:
    def test_a_version_that_is_new_starts_from_the_targets_replicas(self) -> None:
        admission = created(spread(*SUBSETS))
        assert (admission.spread, admission.subset, admission.error) == ("web", "a", "")
        assert versions(admission) == {
            "versionIgnored": (
                SubsetStatus("a", 1, creating={"web-1": NOW_NS}),
                SubsetStatus("b", -1),
            )
        }

    def test_a_version_that_is_known_goes_on(self) -> None:
        known = (SubsetStatus("a", 0), SubsetStatus("b", -1))
        admission = created(spread(*SUBSETS, status=status(versionIgnored=known)))
        assert (admission.subset, admission.status) == ("b", None)

    def test_versions_are_counted_separately(self) -> None:
        known = (SubsetStatus("a", 0), SubsetStatus("b", -1))
        around = asking(replica_set("h2"), workload(DEPLOYMENT))
        mine = spread(*SUBSETS, target=DEPLOYMENT, status=status(h1=known))
        hashed = WorkloadReference("apps/v1", "ReplicaSet", "web-h2", "h2-uid")
        pod = member("web-1", controller=hashed, labels={"pod-template-hash": "h2"})
        admission = created(mine, pod=pod, around=around)
        assert admission.subset == "a"
        assert set(versions(admission)) == {"h1", "h2"}

    def test_a_pod_without_a_name_is_given_an_id(self) -> None:
        admission = created(spread(*SUBSETS), pod=member("", phase="Pending", node=""))
        assert admission.uid == "an-id"
        assert "an-id" in versions(admission)["versionIgnored"][0].creating

    def test_a_single_subset_without_limit_needs_no_counts(self) -> None:
        assert created(spread(subset("a"))) == PodAdmission(spread="web", subset="a", cost=100)

    def test_stateful_sets_are_placed_by_ordinal(self) -> None:
        mine = spread(subset("a", 1), subset("b"), target=STATEFUL_SET)
        found = [
            created(mine, pod=member(f"web-{number}", controller=STATEFUL_SET)) for number in (0, 1)
        ]
        assert found == [
            PodAdmission(spread="web", subset="a"),
            PodAdmission(spread="web", subset="b"),
        ]

    def test_other_pods_are_allowed(self) -> None:
        assert created() == ADMITTED
        assert created(spread(*SUBSETS), pod=member("x", controller=None)) == ADMITTED

    def test_a_missing_owner_is_an_error_to_retry(self) -> None:
        hashed = WorkloadReference("apps/v1", "ReplicaSet", "web-h2", "h2-uid")
        admission = created(spread(*SUBSETS, target=DEPLOYMENT), pod=member("x", controller=hashed))
        assert admission.error == 'ReplicaSet "web-h2" not found'

    def test_a_missing_target_has_zero_replicas(self) -> None:
        admission = created(spread(*SUBSETS), around=asking(replicas=None))
        assert admission.subset == "b"

    @pytest.mark.parametrize(
        ("quirks", "adaptive", "tried"),
        [(FIXED, 20, True), (UPSTREAM, 20, False), (FIXED, None, False)],
    )
    def test_pods_are_tried_in_adaptive_mode(
        self, quirks: Quirks, adaptive: int | None, *, tried: bool
    ) -> None:
        asked: list[str] = []

        def simulate(_: WorkloadSpread, tried: Subset) -> str:
            asked.append(tried.name)
            return ""

        mine = spread(*SUBSETS, adaptive=adaptive)
        admit_placement(member("web-1"), mine, asking(quirks=quirks), str, simulate)
        assert asked == (["a"] if tried else [])


class TestRemoval:
    POD = member("web-1", "a")
    MINE = spread(*SUBSETS, status=status(versionIgnored=(SubsetStatus("a", 0),)))

    def test_its_subset_has_one_more_missing_replica(self) -> None:
        admission = removed(self.POD, self.MINE)
        assert (admission.spread, admission.subset) == ("web", "a")
        (counted,) = versions(admission)["versionIgnored"]
        assert counted == SubsetStatus("a", 1, deleting={"web-1": NOW_NS})

    def test_a_deletion_is_recorded_once(self) -> None:
        known = SubsetStatus("a", 0, deleting={"web-1": at(-3)})
        mine = spread(*SUBSETS, status=status(versionIgnored=(known,)))
        assert removed(self.POD, mine).status is None

    @pytest.mark.parametrize(
        "pod",
        [
            member("web-1"),
            member("web-1", "a", phase="Failed"),
            member("web-1", "a", terminating=True),
            member("web-1", "a", controller=None),
            member("web-1", injection=SubsetInjection("other", "a")),
        ],
        ids=["never put anywhere", "ended", "going", "nobody's", "of another"],
    )
    def test_other_pods_are_deleted_without_change(self, pod: SpreadPod) -> None:
        assert removed(pod, self.MINE) == ADMITTED

    def test_stateful_sets_record_nothing(self) -> None:
        mine = spread(subset("a", 1), subset("b"), target=STATEFUL_SET)
        pod = replace(self.POD, controller=STATEFUL_SET)
        assert removed(pod, mine).status is None

    def test_the_target_may_have_been_replaced(self) -> None:
        moved = replace(self.MINE, target=replace(CLONE_SET, name="other"))
        assert removed(self.POD, moved).subset == "a"
