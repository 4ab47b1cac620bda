"""Counts of pods and missing replicas, and limits from maxReplicas."""

from __future__ import annotations

from itertools import permutations

import pytest

from policies.workloadspread.model import MaxReplicas, SpreadPod, SubsetInjection, SubsetStatus
from policies.workloadspread.quirks import FIXED, UPSTREAM, Quirks
from policies.workloadspread.reschedule import SyncSideEffects
from policies.workloadspread.subset_counts import (
    MaxReplicasError,
    SubsetCounter,
    limit_for_costs,
    limit_for_counting,
    percentage_value,
    scaled_value,
)
from tests.builders.workloadspread import NOW_NS, at, member, spread, subset


def counted(
    limit: MaxReplicas,
    *pods: SpreadPod,
    old: SubsetStatus | None = None,
    replicas: int = 10,
    quirks: Quirks = FIXED,
) -> tuple[SubsetStatus, SyncSideEffects]:
    agenda = SyncSideEffects(NOW_NS)
    one = subset("a", limit)
    counter = SubsetCounter(spread(one), replicas, agenda, quirks)
    return counter.count(one, pods, old), agenda


def several(*names: str) -> list[SpreadPod]:
    return [member(name, "a") for name in names]


@pytest.mark.parametrize(
    ("limit", "missing"), [(None, -1), (5, 3), (2, 0), (1, 0), (0, 0), ("50%", 3), ("15%", 0)]
)
def test_missing_replicas_are_the_limit_less_the_active_pods(
    limit: MaxReplicas, missing: int
) -> None:
    gone = [member("z", "a", phase="Failed"), member("y", "a", terminating=True)]
    status, agenda = counted(limit, *several("u", "v"), *gone)
    assert (status.replicas, status.missing) == (2, missing)
    assert (agenda.requeue_at_ns, list(agenda.events)) == (None, [])


class TestCreations:
    OLD = SubsetStatus("a", 5, creating={"seen": at(-2), "id": at(-2), "due": at(-10)})

    def test_an_observed_pod_is_no_longer_awaited(self) -> None:
        with_id = member("w", injection=SubsetInjection("web", "a", "id"))
        status, agenda = counted(5, member("seen", "a"), with_id, old=self.OLD)
        assert status.creating == {"due": at(-10)}
        assert (status.replicas, status.missing) == (2, 2)
        assert agenda.requeue_at_ns == at(20)

    def test_an_observed_pod_may_have_finished(self) -> None:
        status, _ = counted(5, member("seen", "a", phase="Failed"), old=self.OLD)
        assert set(status.creating) == {"id", "due"}
        assert (status.replicas, status.missing) == (0, 3)

    def test_a_pod_with_an_id_is_not_looked_for_by_name(self) -> None:
        pod = member("seen", injection=SubsetInjection("web", "a", "another"))
        assert "seen" in counted(5, pod, old=self.OLD)[0].creating

    def test_a_pod_is_awaited_for_thirty_seconds(self) -> None:
        old = SubsetStatus("a", 5, creating={"late": at(-30.5), "due": at(-30)})
        status, agenda = counted(5, old=old)
        assert (status.creating, status.missing) == ({"due": at(-30)}, 4)
        (event,) = agenda.events
        assert (event.type, event.reason) == ("Warning", "CreatePodFailed")
        assert event.message == "Pod default/late was expected to be created but it wasn't"
        assert agenda.requeue_at_ns is None  # the deadline is now, and it has not passed

    def test_awaited_pods_are_at_most_the_missing_ones(self) -> None:
        old = SubsetStatus("a", 5, creating={str(number): at(-1) for number in range(4)})
        status, _ = counted(3, member("x", "a"), old=old)
        assert (status.missing, len(status.creating)) == (0, 4)

    def test_without_a_limit_nothing_is_missing(self) -> None:
        status, _ = counted(None, old=SubsetStatus("a", -1, creating={"due": at(-1)}))
        assert (status.missing, set(status.creating)) == (-1, {"due"})


class TestDeletions:
    OLD = SubsetStatus("a", 5, deleting={"going": at(-5), "gone": at(-5), "late": at(-15.5)})

    def test_a_pod_that_is_being_deleted_counts_and_is_missing(self) -> None:
        status, agenda = counted(3, *several("going", "x"), old=self.OLD)
        assert status.deleting == {"going": at(-5)}
        assert (status.replicas, status.missing) == (2, 2)
        assert agenda.requeue_at_ns == at(10)

    def test_a_deletion_counts_for_fifteen_seconds(self) -> None:
        status, agenda = counted(3, *several("late"), old=self.OLD)
        assert (status.deleting, status.missing) == ({}, 2)
        (event,) = agenda.events
        assert event.reason == "DeletePodFailed"
        assert event.message == "Pod default/late was expected to be deleted but it wasn't"

    def test_a_finished_pod_is_removed_from_the_deletions(self) -> None:
        status, _ = counted(3, member("going", "a", phase="Succeeded"), old=self.OLD)
        assert (status.deleting, status.missing) == ({}, 3)

    def test_with_too_many_pods_the_order_of_the_list_does_not_matter(self) -> None:
        pods = several("going", "u", "v", "w")
        found = {counted(2, *order, old=self.OLD)[0].missing for order in permutations(pods)}
        assert found == {0}

    def test_upstream_counts_in_the_order_of_the_list(self) -> None:
        pods = several("going", "u", "v", "w")
        found = {
            counted(2, *order, old=self.OLD, quirks=UPSTREAM)[0].missing
            for order in permutations(pods)
        }
        assert found == {0, 1}


def test_the_earliest_deadline_counts() -> None:
    old = SubsetStatus("a", 5, creating={"x": at(-1), "y": at(-5)}, deleting={"z": at(-1)})
    _, agenda = counted(5, member("z", "a"), old=old)
    assert agenda.requeue_at_ns == at(14)


def test_an_invalid_limit_is_an_error() -> None:
    for limit in (-1, "x"):
        with pytest.raises(MaxReplicasError):
            counted(limit)
    with pytest.raises(MaxReplicasError):
        counted("5", quirks=UPSTREAM)
    assert counted("5")[0].missing == 5


# maxReplicas


@pytest.mark.parametrize(
    ("limit", "replicas", "number"),
    [
        (None, 10, None),
        (0, 10, 0),
        (4, 10, 4),
        ("0%", 10, 0),
        ("33%", 10, 4),
        ("30%", 10, 3),
        ("1%", 1000, 10),
        ("1%", 1, 1),
        ("100%", 7, 7),
        ("150%", 10, 15),
        ("50%", 0, 0),
        ("50%", -1, 0),
        ("+5%", 100, 5),
    ],
)
def test_valid_limits(limit: MaxReplicas, replicas: int, number: int | None) -> None:
    for quirks in (FIXED, UPSTREAM):
        assert limit_for_counting(limit, replicas, quirks) == number
        assert limit_for_costs(limit, replicas, quirks) == number


@pytest.mark.parametrize("limit", [-1, "-1%", "", "%", "x", "5.5%", "5 %", "1_0%", "0x1%"])
def test_invalid_limits(limit: MaxReplicas) -> None:
    for quirks in (FIXED, UPSTREAM):
        with pytest.raises(MaxReplicasError):
            limit_for_counting(limit, 100, quirks)
        with pytest.raises(MaxReplicasError):
            limit_for_costs(limit, 100, quirks)


def test_a_percentage_of_unknown_replicas_is_negative() -> None:
    with pytest.raises(MaxReplicasError, match="'100%' is negative"):
        limit_for_counting("100%", -1, FIXED)


def test_a_numeric_text_is_that_number() -> None:
    assert limit_for_counting("5", 10, FIXED) == limit_for_costs("5", 10, FIXED) == 5


def test_upstream_reads_a_numeric_text_in_two_ways() -> None:
    assert limit_for_costs("5", 100, UPSTREAM) == 5
    assert limit_for_costs("5", 10, UPSTREAM) == 1
    assert limit_for_costs("5%%", 100, UPSTREAM) == 5
    with pytest.raises(MaxReplicasError, match="'5' is not a percentage such as 30%"):
        limit_for_counting("5", 100, UPSTREAM)


def test_negative_numbers_are_allowed_without_validation() -> None:
    assert scaled_value(-3, 10, FIXED) == -3
    assert percentage_value("-5%", 100) == -5
