"""Subsets of new pods, and the status for created and deleted pods."""

from __future__ import annotations

import pytest

from policies.workloadspread.model import MaxReplicas, Subset, SubsetStatus, WorkloadSpread
from policies.workloadspread.quirks import FIXED, UPSTREAM
from policies.workloadspread.subset_selection import (
    SelectedSubset,
    VersionCounts,
    initial_counts,
    ordinal,
    record_creation,
    record_deletion,
    select_by_ordinal,
)
from tests.builders.workloadspread import NOW_NS, at, condition, spread, status, subset

A = SubsetStatus("a", 0)
B = SubsetStatus("b", 2)
C = SubsetStatus("c", -1)
SUBSETS = (subset("a", 1), subset("b", 2), subset("c"))


def created(
    *counts: SubsetStatus, name: str = "web-1", of: WorkloadSpread | None = None, **fits: str
) -> SelectedSubset:
    """Choose for a pod; ``fits`` has the errors of a simulation by subset."""
    around = of or spread(*SUBSETS, status=status(*counts))

    def simulate(_: WorkloadSpread, each: Subset) -> str:
        return fits.get(each.name, "")

    known = VersionCounts("v1", counts)
    return record_creation(around, known, name, "id", NOW_NS, simulate if fits else None)


def written(choice: SelectedSubset) -> dict[str, SubsetStatus]:
    assert choice.status is not None
    return {each.name: each for each in choice.status.versions["v1"]}


class TestCreation:
    def test_the_first_subset_with_a_missing_replica_gets_the_pod(self) -> None:
        choice = created(A, B, C)
        assert choice.subset == "b"
        assert written(choice) == {
            "a": A,
            "b": SubsetStatus("b", 1, creating={"web-1": NOW_NS}),
            "c": C,
        }

    def test_the_overall_list_and_other_versions_do_not_change(self) -> None:
        before = status(B, v0=(A,))
        choice = created(A, B, C, of=spread(*SUBSETS, status=before))
        assert choice.status is not None
        assert choice.status.subsets == before.subsets
        assert choice.status.versions["v0"] == (A,)

    def test_without_a_limit_nothing_is_written(self) -> None:
        assert created(A, C) == SelectedSubset("c")

    def test_an_unschedulable_subset_gets_no_pod(self) -> None:
        closed = SubsetStatus("b", 2, conditions=(condition("False", -5),))
        assert created(A, closed, C).subset == "c"

    def test_if_all_subsets_are_full_the_pod_is_of_none(self) -> None:
        assert created(A) == SelectedSubset()

    def test_a_recorded_pod_gets_its_recorded_subset(self) -> None:
        for known in (
            SubsetStatus("c", -1, creating={"web-1": at(-5)}),
            SubsetStatus("c", -1, deleting={"web-1": at(-5)}),
        ):
            assert created(B, known) == SelectedSubset("c")

    def test_a_pod_without_a_name_is_recorded_by_an_id(self) -> None:
        choice = created(A, B, name="")
        assert choice.uid == "id"
        assert written(choice)["b"].creating == {"id": NOW_NS}

    def test_no_id_is_made_if_nothing_is_written(self) -> None:
        assert created(A, C, name="") == SelectedSubset("c")


class TestDeletion:
    def deleted(self, *counts: SubsetStatus, of: str = "b") -> SelectedSubset:
        around = spread(*SUBSETS, status=status())
        return record_deletion(around, VersionCounts("v1", counts), "web-1", of, NOW_NS)

    def test_its_subset_has_one_more_missing_replica(self) -> None:
        choice = self.deleted(A, B)
        assert choice.subset == "b"
        assert written(choice)["b"] == SubsetStatus("b", 3, deleting={"web-1": NOW_NS})

    def test_a_deletion_is_recorded_once(self) -> None:
        assert self.deleted(SubsetStatus("b", 2, deleting={"web-1": at(-9)})) == SelectedSubset()
        assert self.deleted(SubsetStatus("b", 2, creating={"web-1": at(-9)})) == SelectedSubset()

    def test_a_removed_subset_has_no_missing_replicas(self) -> None:
        assert self.deleted(A, B, of="x") == SelectedSubset()

    def test_without_a_limit_nothing_is_written(self) -> None:
        assert self.deleted(A, C, of="c") == SelectedSubset("c")


class TestSimulation:
    def test_a_subset_that_the_pod_does_not_fit_is_skipped(self) -> None:
        choice = created(SubsetStatus("a", 1), B, C, a="no room")
        assert (choice.subset, choice.skipped) == ("b", {"a": "no room"})
        conditions = (condition("Unknown", 0, "SimulationFailed", "no room"),)
        assert written(choice)["a"] == SubsetStatus("a", 1, conditions=conditions)
        assert written(choice)["b"].creating == {"web-1": NOW_NS}
        assert choice.status is not None
        assert choice.status.subsets[0].conditions == conditions

    def test_the_last_subset_is_not_simulated(self) -> None:
        assert created(A, SubsetStatus("b", 0), C, c="no room") == SelectedSubset("c")

    def test_a_pod_that_fits_no_subset_gets_the_first_with_missing_replicas(self) -> None:
        around = spread(*SUBSETS[:2], subset("c", 1))
        counts = (SubsetStatus("a", 1), B, SubsetStatus("c", 0))
        choice = created(*counts, of=around, a="no room", b="nor here")
        assert (choice.subset, set(choice.skipped)) == ("a", {"a", "b"})
        assert written(choice)["a"].creating == {"web-1": NOW_NS}

    def test_the_conditions_time_is_that_of_the_first_failure(self) -> None:
        before = condition("Unknown", -50, "SimulationFailed", "other words")
        choice = created(SubsetStatus("a", 1, conditions=(before,)), B, a="no room")
        (found,) = written(choice)["a"].conditions
        assert (found.message, found.changed_ns) == ("no room", at(-50))

    def test_an_unchanged_patch_is_not_written_again(self) -> None:
        before = condition("Unknown", -50, "SimulationFailed", "no room")
        choice = created(SubsetStatus("a", 1, conditions=(before,)), C, a="no room")
        assert choice == SelectedSubset("c", skipped={"a": "no room"})

    def test_a_subset_that_gets_a_pod_again_is_sufficient(self) -> None:
        before = condition("Unknown", -50, "SimulationFailed", "no room")
        choice = created(SubsetStatus("a", 1, conditions=(before,)), B, b="not asked")
        assert choice.subset == "a"
        assert written(choice)["a"].conditions == (condition("True", 0),)

    def test_a_subset_closed_by_rescheduling_is_not_simulated(self) -> None:
        closed = SubsetStatus("a", 1, conditions=(condition("False", -5),))
        choice = created(closed, B, a="no room")
        assert (choice.subset, choice.skipped) == ("b", {})
        assert written(choice)["a"] == closed


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("web-0", 0),
        ("web-12", 12),
        ("a-b-3", 3),
        ("web", -1),
        ("web-x", -1),
        ("web-99999999999", -1),
    ],
)
def test_ordinals_are_at_the_end_of_names(name: str, number: int) -> None:
    assert ordinal(name) == number


@pytest.mark.parametrize(
    ("limits", "places"),
    [
        ((2, 3, None), "aabbbcc"),
        ((2, 3), "aabbb--"),
        ((0, 1, None), "bcccccc"),
        (("50%", 2, None), "bbccccc"),
        (("2", None), "aabbbbb"),
    ],
)
def test_subsets_of_stateful_sets_are_ranges_of_ordinals(
    limits: tuple[MaxReplicas, ...], places: str
) -> None:
    around = spread(*(subset(name, limit) for name, limit in zip("abc", limits, strict=False)))
    found = [select_by_ordinal(around, f"web-{number}") or "-" for number in range(7)]
    assert "".join(found) == places


def test_ordinals_skip_closed_subsets() -> None:
    closed = SubsetStatus("a", 0, conditions=(condition("False", -5),))
    around = spread(subset("a", 2), subset("b", 1), subset("c"), status=status(closed))
    assert [select_by_ordinal(around, f"web-{number}") for number in (0, 1)] == ["b", "c"]


def test_a_new_version_starts_with_its_limits_missing() -> None:
    subsets = (subset("a", 2), subset("b", "25%"), subset("c"), subset("d", "x"))
    assert [each.missing for each in initial_counts(subsets, 10, FIXED)] == [2, 3, -1, 0]
    assert [each.missing for each in initial_counts([subset("a", "5")], 10, UPSTREAM)] == [0]
    assert [each.missing for each in initial_counts([subset("a", "5")], 10, FIXED)] == [5]
