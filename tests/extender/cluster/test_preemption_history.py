"""Recent preemptions: what the watch shows, and our own answers until they expire."""

from __future__ import annotations

from extender.cluster.preemption_history import PreemptionHistory
from policies.kubernetes.snapshot import Pod
from tests.builders import SECOND, pod

KEPT = 100 * SECOND


def victim(name: str, at: int = 10) -> Pod:
    return pod(name, on="n", priority=1, preempted=True, preempted_ns=at * SECOND)


def told(history: PreemptionHistory, now: int) -> list[tuple[str, str | None, int]]:
    """Return victim, preemptor and time of each preemption."""
    return [
        (each.victim.name, each.preemptor.name if each.preemptor else None, each.at_ns // SECOND)
        for each in history.recent(now * SECOND)
    ]


def test_a_victim_of_the_watch_is_kept_for_a_time() -> None:
    history = PreemptionHistory(KEPT)
    history.observe(victim("a"), ())
    history.observe(victim("a", at=50), ())  # shown again
    assert told(history, 109) == [("a", None, 10)]
    assert told(history, 110) == []
    assert len(history) == 0


def test_the_preemptor_is_the_most_important_pod_nominated_to_the_node() -> None:
    history = PreemptionHistory(KEPT)
    history.observe(
        victim("a"), [pod("low", priority=1), pod("high", priority=9), pod("mid", priority=5)]
    )
    assert told(history, 20) == [("a", "high", 10)]


def test_an_answer_counts_at_once_and_until_it_expires() -> None:
    history = PreemptionHistory(KEPT)
    history.assume(pod("p"), [pod("a"), pod("b")], now_ns=10 * SECOND, expires_ns=40 * SECOND)
    assert told(history, 11) == [("a", "p", 10), ("b", "p", 10)]
    history.observe(victim("b", at=12), [pod("other", priority=9)])
    assert told(history, 41) == [("b", "p", 12)]


def test_an_answer_changes_nothing_that_the_watch_has_shown() -> None:
    history = PreemptionHistory(KEPT)
    history.observe(victim("a"), ())
    history.assume(pod("p"), [pod("a")], now_ns=20 * SECOND, expires_ns=40 * SECOND)
    assert told(history, 50) == [("a", None, 10)]


def test_the_oldest_are_dropped() -> None:
    history = PreemptionHistory(KEPT, most=2)
    for name in ("a", "b", "c"):
        history.observe(victim(name), ())
    assert [name for name, *_ in told(history, 20)] == ["b", "c"]


def test_a_pod_is_decided_anew_without_its_own_answer() -> None:
    history = PreemptionHistory(KEPT)
    first, second = pod("p"), pod("q")
    for preemptor, name in ((first, "a"), (second, "b"), (first, "c")):
        history.assume(preemptor, [pod(name)], now_ns=10 * SECOND, expires_ns=90 * SECOND)
    assert told(history, 11) == [("b", "q", 10), ("c", "p", 10)]
    assert [each.victim.name for each in history.recent(11 * SECOND, deciding="p")] == ["b"]
