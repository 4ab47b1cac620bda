"""Rescheduling: unschedulable pods are deleted, and their subset gets none for five minutes."""

from __future__ import annotations

import pytest

from policies.workloadspread.model import SpreadPod, SubsetCondition, SubsetStatus
from policies.workloadspread.quirks import FIXED, UPSTREAM
from policies.workloadspread.reschedule import (
    SyncSideEffects,
    evaluate_last_subset,
    evaluate_subset,
    not_evaluated,
    pods_to_reschedule,
)
from tests.builders.workloadspread import NOW_NS, at, condition, member, spread, stuck, subset

COUNTED = SubsetStatus("a", 2, 1)
SPREAD = spread(subset("a", 2), subset("b"), adaptive=20)


def known(*conditions: SubsetCondition) -> SubsetStatus:
    return SubsetStatus("a", 0, conditions=conditions)


class TestPodsToDelete:
    def test_a_pod_may_wait_until_its_deadline(self) -> None:
        agenda = SyncSideEffects(NOW_NS)
        pods = [stuck("late", "a", 20.5), stuck("due", "a", 20), stuck("new", "a", 5)]
        assert [pod.name for pod in pods_to_reschedule(pods, 20, agenda)] == ["late"]
        assert agenda.requeue_at_ns == at(15)

    @pytest.mark.parametrize(
        "pod",
        [
            member("x", "a", phase="Pending", node="", created_ns=at(-99)),
            member("x", "a", unschedulable=True, node="", created_ns=at(-99)),
            member("x", "a", unschedulable=True, phase="Pending", created_ns=at(-99)),
            member("x", "a", unschedulable=True, phase="Pending", node="", terminating=True),
        ],
        ids=["not looked at yet", "running", "on a node", "going"],
    )
    def test_other_pods_are_not_rescheduled(self, pod: SpreadPod) -> None:
        agenda = SyncSideEffects(NOW_NS)
        assert pods_to_reschedule([pod], 20, agenda) == ()
        assert agenda.requeue_at_ns is None

    def test_a_pod_without_a_time_is_past_its_deadline(self) -> None:
        pod = member("x", "a", unschedulable=True, phase="Pending", node="")
        assert pods_to_reschedule([pod], 20, SyncSideEffects(NOW_NS)) == (pod,)


class TestConditions:
    def test_a_subset_is_schedulable_until_a_pod_is_rescheduled(self) -> None:
        judged = evaluate_subset(SPREAD, COUNTED, None, (), SyncSideEffects(NOW_NS))
        assert judged.conditions == (condition("True", 0),)
        assert (judged.missing, judged.replicas) == (2, 1)

    def test_a_rescheduled_pod_makes_its_subset_unschedulable(self) -> None:
        agenda = SyncSideEffects(NOW_NS)
        old = known(condition("True", -1000))
        judged = evaluate_subset(SPREAD, COUNTED, old, [stuck("x", "a", 30)], agenda)
        assert judged.conditions == (condition("False", 0),)

    def test_a_second_pod_does_not_extend_the_period(self) -> None:
        old = known(condition("False", -200))
        judged = evaluate_subset(
            SPREAD, COUNTED, old, [stuck("x", "a", 30)], SyncSideEffects(NOW_NS)
        )
        assert judged.conditions == old.conditions

    def test_a_subset_stays_unschedulable_for_five_minutes(self) -> None:
        agenda = SyncSideEffects(NOW_NS)
        old = known(condition("False", -200))
        assert evaluate_subset(SPREAD, COUNTED, old, (), agenda).conditions == old.conditions
        assert (agenda.requeue_at_ns, list(agenda.events)) == (at(100), [])

    def test_after_five_minutes_a_subset_is_schedulable(self) -> None:
        agenda = SyncSideEffects(NOW_NS)
        judged = evaluate_subset(SPREAD, COUNTED, known(condition("False", -300.5)), (), agenda)
        assert judged.conditions == (condition("True", 0),)
        (event,) = agenda.events
        assert (event.type, event.reason) == ("Normal", "RecoverSchedulable")
        assert event.message == (
            "Subset a of WorkloadSpread default/web is recovered from unschedulable to schedulable"
        )

    def test_the_period_includes_its_last_moment(self) -> None:
        agenda = SyncSideEffects(NOW_NS)
        old = known(condition("False", -300))
        assert evaluate_subset(SPREAD, COUNTED, old, (), agenda).conditions == old.conditions
        assert agenda.requeue_at_ns is None

    def test_a_schedulable_subset_stays_schedulable(self) -> None:
        old = known(condition("True", -5, "Tried"))
        assert (
            evaluate_subset(SPREAD, COUNTED, old, (), SyncSideEffects(NOW_NS)).conditions
            == old.conditions
        )

    @pytest.mark.parametrize("before", [(), (condition("False", -5),), (condition("True", -5),)])
    def test_the_last_subset_is_always_schedulable(
        self, before: tuple[SubsetCondition, ...]
    ) -> None:
        (found,) = evaluate_last_subset(COUNTED, known(*before), SyncSideEffects(NOW_NS)).conditions
        assert found.status == "True"
        assert found.changed_ns == (at(-5) if before and before[0].status == "True" else NOW_NS)


class TestWithoutRescheduling:
    TRIED = condition("Unknown", -5, "SimulationFailed", "no room")

    def test_without_rescheduling_there_is_no_condition(self) -> None:
        old = known(condition("False", -5))
        assert not_evaluated(SPREAD, COUNTED, old, FIXED) == COUNTED

    def test_conditions_of_simulations_stay(self) -> None:
        old = known(self.TRIED)
        assert not_evaluated(SPREAD, COUNTED, old, FIXED).conditions == (self.TRIED,)

    def test_conditions_of_simulations_are_removed_without_simulations(self) -> None:
        old = known(self.TRIED)
        assert not_evaluated(SPREAD, COUNTED, old, UPSTREAM) == COUNTED
        assert not_evaluated(spread(subset("a")), COUNTED, old, FIXED) == COUNTED
