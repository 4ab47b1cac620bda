"""What becomes of victims, their replacements and preemptors, as the watch shows it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from extender.ledger.entry import LedgerEntry, Outcome, State, VictimOutcome
from extender.ledger.outcomes import FOLLOWED_NS, MOST_FOLLOWED
from policies.kubernetes.snapshot import Pod
from tests.builders import SECOND, pod
from tests.extender.conftest import broken
from tests.extender.ledger.ledgers import World, entry, named_pod, owned

VICTIM = named_pod("web-1", owner="ReplicaSet/web")
OTHER = named_pod("web-2", owner="ReplicaSet/web")
BARE = named_pod("bare")


def started(*followed: LedgerEntry) -> World:
    """Return a world with the pods of entries, which are followed from second 1 on."""
    world = World()
    for each in followed:
        world.show(pod(each.pod.name, priority=10))
        for victim in each.victims:
            own = victim.owner.rpartition("/")[2]
            world.show(owned(victim.name, own) if own else pod(victim.name, on="node-1"))
    for each in followed:
        world.tracker.follow(each)
    return world


def leave(world: World, name: str = "web-1", own: str = "web") -> None:
    """Show that a victim is terminating."""
    world.show(owned(name, own, terminating=True))


def victims(world: World, followed: LedgerEntry) -> Sequence[tuple[int, str, str, int]]:
    """Return when each victim left, its replacement, its node and time; times in seconds."""
    return [
        (each.gone_ns // SECOND, each.replacement, each.node, each.bound_ns // SECOND)
        for each in world.outcome(followed).victims
    ]


def preemptor(world: World, followed: LedgerEntry) -> tuple[State, str, int]:
    """Return what became of the preemptor, its node, and the time in seconds."""
    found = world.outcome(followed)
    return found.state, found.node, found.ended_ns // SECOND


class TestPreemptors:
    decision = entry("vip", VICTIM)

    @pytest.mark.parametrize(
        ("pods", "expected"),
        [
            ([], (State.OPEN, "", 0)),
            ([pod("vip", nominated_node="node-1")], (State.OPEN, "", 0)),
            ([pod("vip", on="node-1")], (State.BOUND, "node-1", 5)),
            ([pod("vip", on="node-2")], (State.BOUND, "node-2", 5)),
            ([pod("vip", on="node-1"), pod("vip", on="node-1", finished=True)],
             (State.BOUND, "node-1", 5)),
            ([pod("vip", finished=True)], (State.DELETED, "", 5)),
            ([pod("vip", uid="another")], (State.DELETED, "", 5)),
            ([pod("vip", uid="another", on="node-1")], (State.DELETED, "", 5)),
        ],
    )  # fmt: skip
    def test_its_state_is_what_the_watch_shows(
        self, pods: Sequence[Pod], expected: tuple[State, str, int]
    ) -> None:
        world = started(self.decision)
        world.now = 5.0
        world.show(*pods)
        assert preemptor(world, self.decision) == expected

    def test_one_that_is_deleted_has_ended(self) -> None:
        world = started(self.decision)
        world.now = 5.0
        world.end("vip")
        assert preemptor(world, self.decision) == (State.DELETED, "", 5)

    def test_a_later_decision_supersedes_the_earlier(self) -> None:
        later = entry("vip", OTHER, at=3)
        world = started(self.decision)
        world.now = 3.0
        world.tracker.follow(later)
        world.now = 5.0
        world.show(pod("vip", on="node-1"))
        assert preemptor(world, self.decision) == (State.SUPERSEDED, "", 3)
        assert preemptor(world, later) == (State.BOUND, "node-1", 5)

    def test_it_is_followed_for_an_hour(self) -> None:
        world = started(self.decision)
        world.now = 1 + FOLLOWED_NS / SECOND
        assert preemptor(world, self.decision)[0] is State.OPEN
        world.now += 1
        assert preemptor(world, self.decision)[0] is State.UNKNOWN
        assert not len(world.tracker)

    def test_a_decision_without_victims_is_not_followed(self) -> None:
        world = started(entry("vip"))
        assert not len(world.tracker)


class TestVictims:
    decision = entry("vip", VICTIM)

    def test_one_that_is_deleted_is_gone(self) -> None:
        world = started(self.decision)
        leave(world)
        assert victims(world, self.decision) == [(0, "", "", 0)]
        world.now = 5.0
        world.end("web-1")
        assert victims(world, self.decision) == [(5, "", "", 0)]

    def test_one_that_finishes_is_gone(self) -> None:
        world = started(self.decision)
        world.now = 5.0
        world.show(owned("web-1", "web", finished=True))
        world.now = 6.0
        world.end("web-1")
        assert victims(world, self.decision) == [(5, "", "", 0)]

    def test_its_replacement_is_the_next_new_pod_of_its_owner(self) -> None:
        world = started(self.decision)
        leave(world)
        world.show(owned("web-9", "other", on=None), owned("web-3", "web", on=None))
        world.end("web-1")
        world.now = 7.0
        world.show(owned("web-3", "web", on="node-2"))
        assert victims(world, self.decision) == [(1, "web-3", "node-2", 7)]

    def test_a_pod_that_is_created_before_a_victim_leaves_replaces_nothing(self) -> None:
        world = started(self.decision)
        world.show(owned("web-3", "web", on="node-2"))
        leave(world)
        world.show(owned("web-4", "web", on="node-2"))
        assert victims(world, self.decision) == [(0, "web-4", "node-2", 1)]

    def test_a_bare_pod_is_replaced_by_the_next_of_its_name(self) -> None:
        decision = entry("vip", BARE)
        world = started(decision)
        world.now = 5.0
        world.show(pod("bare", uid="next"))
        world.now = 6.0
        world.show(pod("bare", uid="next", on="node-3"))
        assert victims(world, decision) == [(5, "bare", "node-3", 6)]

    def test_several_of_an_owner_are_replaced_in_the_order_in_which_they_leave(self) -> None:
        decision = entry("vip", VICTIM, OTHER)
        world = started(decision)
        leave(world, "web-2")
        leave(world, "web-1")
        world.show(owned("web-3", "web"), owned("web-4", "web", on=None), owned("web-5", "web"))
        assert [each.replacement for each in world.outcome(decision).victims] == ["web-4", "web-3"]

    def test_a_victim_of_two_decisions_has_one_replacement(self) -> None:
        later = entry("vip", VICTIM, OTHER, at=2)
        world = started(self.decision, later)
        leave(world, "web-1")
        leave(world, "web-2")
        world.end("web-1", "web-2")
        world.show(owned("web-3", "web"), owned("web-4", "web"))
        assert [each[1] for each in victims(world, self.decision)] == ["web-3"]
        assert [each[1] for each in victims(world, later)] == ["web-3", "web-4"]

    def test_a_later_decision_knows_what_became_of_a_victim(self) -> None:
        later = entry("vip", VICTIM, at=2)
        world = started(self.decision)
        leave(world)
        world.show(owned("web-3", "web", on=None))
        world.tracker.follow(later)
        world.show(owned("web-3", "web", on="node-2"))
        world.end("web-1")
        assert victims(world, later) == victims(world, self.decision) == [(1, "web-3", "node-2", 1)]

    def test_a_replacement_that_is_deleted_before_it_is_bound_is_replaced(self) -> None:
        world = started(self.decision)
        leave(world)
        world.show(owned("web-3", "web", on=None))
        world.end("web-3")
        assert victims(world, self.decision) == [(0, "", "", 0)]
        world.show(owned("web-4", "web"))
        assert victims(world, self.decision) == [(0, "web-4", "node-1", 1)]

    def test_a_replacement_that_is_deleted_after_it_is_bound_remains(self) -> None:
        world = started(self.decision)
        leave(world)
        world.show(owned("web-3", "web"))
        world.end("web-3")
        world.show(owned("web-4", "web"))
        assert victims(world, self.decision) == [(0, "web-3", "node-1", 1)]

    def test_a_victim_that_cannot_be_decoded_is_gone_once_it_is_deleted(self) -> None:
        world = started(self.decision)
        world.relist(broken("web-1", on="node-1"), pod("vip", priority=10))
        assert victims(world, self.decision) == [(0, "", "", 0)]
        world.now = 5.0
        world.relist(pod("vip", priority=10))
        assert victims(world, self.decision) == [(5, "", "", 0)]

    def test_a_pod_that_can_be_decoded_again_is_not_new(self) -> None:
        decision = entry("vip", VICTIM)
        world = started(decision)
        world.show(owned("web-3", "web"))
        leave(world)
        world.relist(broken("web-3"), owned("web-1", "web", terminating=True), pod("vip"))
        world.show(owned("web-3", "web"))
        assert victims(world, decision) == [(0, "", "", 0)]


def test_a_relist_shows_what_happened_meanwhile() -> None:
    """Its order is by name: a replacement may precede the victim that it replaces."""
    decision = entry("vip", VICTIM, OTHER)
    world = started(decision)
    world.now = 5.0
    world.relist(
        owned("a-web", "web", on="node-3"),
        owned("web-1", "web", terminating=True),
        pod("vip", on="node-1"),
    )
    assert preemptor(world, decision) == (State.BOUND, "node-1", 5)
    found = victims(world, decision)
    assert sorted(each[0] for each in found) == [0, 5]
    assert sorted(each[1:] for each in found) == [("", "", 0), ("a-web", "node-3", 5)]


class TestRestart:
    decision = entry("vip", VICTIM)

    def test_what_happened_meanwhile_is_found(self) -> None:
        world = started(self.decision)
        leave(world)
        world.outcome(self.decision)
        world.end("web-1")
        world.show(pod("vip", on="node-1"))
        world.restart()
        world.now = 9.0
        world.resume(self.decision)
        assert preemptor(world, self.decision) == (State.BOUND, "node-1", 9)
        assert victims(world, self.decision) == [(9, "", "", 0)]

    def test_a_preemptor_that_left_meanwhile_is_deleted(self) -> None:
        world = started(self.decision)
        world.end("vip")
        world.restart()
        world.resume(self.decision)
        assert preemptor(world, self.decision) == (State.DELETED, "", 1)
        assert victims(world, self.decision) == [(0, "", "", 0)]

    @pytest.mark.parametrize("bound_meanwhile", [True, False])
    def test_a_replacement_is_followed_until_it_is_bound(self, bound_meanwhile: bool) -> None:  # noqa: FBT001
        world = started(self.decision)
        leave(world)
        world.end("web-1")
        world.show(pod("vip", on="node-1"), owned("web-3", "web", on=None))
        assert victims(world, self.decision) == [(1, "web-3", "", 0)]
        world.now = 9.0
        if bound_meanwhile:
            world.show(owned("web-3", "web", on="node-2"))
        world.restart()
        world.resume(self.decision)
        world.show(owned("web-3", "web", on="node-2"))
        assert preemptor(world, self.decision) == (State.BOUND, "node-1", 1)
        assert victims(world, self.decision) == [(1, "web-3", "node-2", 9)]

    def test_a_replacement_that_left_meanwhile_is_replaced(self) -> None:
        world = started(self.decision)
        world.end("web-1")
        world.show(owned("web-3", "web", on=None))
        world.outcome(self.decision)
        world.end("web-3")
        world.restart()
        world.resume(self.decision)
        world.show(owned("web-4", "web"))
        assert victims(world, self.decision) == [(1, "web-4", "node-1", 1)]

    def test_a_decision_of_the_new_process_supersedes_those_of_the_former(self) -> None:
        second, third = entry("vip", VICTIM, at=2), entry("vip", OTHER, at=3)
        world = started(self.decision)
        world.show(owned("web-2", "web"))
        world.restart()
        world.tracker.follow(third)
        world.resume(second, self.decision)
        states = [world.outcome(each).state for each in (self.decision, second, third)]
        assert states == [State.SUPERSEDED, State.SUPERSEDED, State.OPEN]

    def test_resumed_decisions_expire_before_newer_ones(self) -> None:
        newer = entry("new", OTHER, at=1800)
        world = started(self.decision)
        world.restart()
        world.tracker.follow(newer)
        world.resume(self.decision)
        world.now = 3602.0
        assert preemptor(world, self.decision)[0] is State.UNKNOWN
        assert len(world.tracker) == 1

    def test_what_is_followed_is_not_resumed(self) -> None:
        world = started(self.decision)
        leave(world)
        world.resume(self.decision)
        world.show(owned("web-3", "web"))
        assert victims(world, self.decision) == [(0, "web-3", "node-1", 1)]


def test_a_decision_is_followed_until_its_victims_are_replaced() -> None:
    decision = entry("vip", VICTIM)
    world = started(decision)
    leave(world)
    world.end("web-1")
    world.show(pod("vip", on="node-1"), owned("web-3", "web", on=None))
    world.outcome(decision)
    assert len(world.tracker) == 1
    world.show(owned("web-3", "web", on="node-1"))
    world.outcome(decision)
    assert not len(world.tracker)
    assert world.tracker.changes() == {}


def test_only_the_newest_are_followed() -> None:
    world = World()
    surplus = 50
    entries = [
        entry(f"vip-{n}", named_pod(f"web-{n}"), at=1 + n / 1000)
        for n in range(MOST_FOLLOWED + surplus)
    ]
    for each in entries:
        world.tracker.follow(each)
    changed = world.tracker.changes()
    assert changed == {
        each.id: Outcome(State.UNKNOWN, "", SECOND, (VictimOutcome(),))
        for each in entries[:surplus]
    }
    assert len(world.tracker) == MOST_FOLLOWED
    world.tracker.observe_deletion(entries[0].victims[0].uid)
    assert world.tracker.changes() == {}
