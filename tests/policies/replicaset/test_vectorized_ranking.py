"""The order on columns is the plain one, replica by replica, and keeps to the pairwise rule."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from policies.replicaset import RankedPod, scale_down_order
from policies.replicaset.pod_ranking import LONGEST_AGE
from policies.replicaset.vectorized_ranking import sort_for_deletion
from tests.replicas import NOW_NS

# On both sides of where ranks begin, of now, and of what 64 bits hold; and often the same.
AGES = (0, -1, 1, 2**44 - 1, 2**44, 2**44 + 1, 2**45 - 1, 2**49 - 1, 2**53 - 22, 2**53 - 23)
MOMENTS = (None, *(NOW_NS - age for age in AGES), LONGEST_AGE, -LONGEST_AGE)
CROWDED = st.dictionaries(st.sampled_from(["", "node-1", "node-2"]), st.integers(0, 2))
CLOCKS = st.sampled_from([None, NOW_NS, 0, LONGEST_AGE])


@st.composite
def replicas(draw: st.DrawFn, uid: st.SearchStrategy[str] | None = None) -> RankedPod:
    """Draw a replica that often equals others in much."""
    name = draw(uid or st.text("abü\U0001f600", max_size=2))
    return RankedPod(
        namespace="default",
        name=name,
        uid=name,
        node=draw(st.sampled_from(["node-1", "node-1", "node-2", ""])),
        phase=draw(st.sampled_from(["Running", "Running", "Pending", "Unknown", "", "Odd"])),
        ready=draw(st.sampled_from([True, True, False])),
        ready_since_ns=draw(st.sampled_from(MOMENTS)),
        deletion_cost=draw(st.sampled_from([0, 0, -(2**31), 2**31 - 1])),
        restarts=draw(st.sampled_from([0, 0, 2**31 - 1])),
        sidecar_restarts=draw(st.integers(0, 1)),
        created_ns=draw(st.sampled_from(MOMENTS)),
    )


@st.composite
def alike(draw: st.DrawFn) -> list[RankedPod]:
    """Draw ready replicas that only times, restarts and UIDs tell apart, so that cycles occur."""
    numbered = st.integers(0, 99).map("{:02}".format)
    return [
        RankedPod(
            namespace="default",
            name=uid,
            uid=uid,
            node="node-1",
            phase="Running",
            ready=True,
            ready_since_ns=NOW_NS - 2**44 - draw(st.integers(0, 2)),
            deletion_cost=0,
            restarts=draw(st.integers(0, 2)),
            sidecar_restarts=0,
            created_ns=NOW_NS - 2**44 - draw(st.integers(0, 2)),
        )
        for uid in draw(st.lists(numbered, unique=True, max_size=12))
    ]


MANY = st.one_of(st.lists(replicas(), max_size=12), alike())


@given(MANY, CROWDED, CLOCKS)
def test_both_sort_alike(
    given_replicas: list[RankedPod], crowded: dict[str, int], now_ns: int | None
) -> None:
    """Even where UIDs are not unique: then what is equal keeps its order."""
    fast = sort_for_deletion(given_replicas, crowded, now_ns)
    plain = scale_down_order(crowded, now_ns).sort(given_replicas)
    assert list(map(id, fast)) == list(map(id, plain))


@given(MANY, CROWDED, CLOCKS)
def test_no_replica_stands_directly_behind_one_that_it_goes_before(
    given_replicas: list[RankedPod], crowded: dict[str, int], now_ns: int | None
) -> None:
    compare = scale_down_order(crowded, now_ns).compare
    ranked = sort_for_deletion(given_replicas, crowded, now_ns)
    assert all(compare(one, other).sign <= 0 for one, other in pairwise(ranked))


@given(MANY, CROWDED, CLOCKS)
def test_every_pair_stands_in_its_order_unless_three_go_round_in_a_circle(
    given_replicas: list[RankedPod], crowded: dict[str, int], now_ns: int | None
) -> None:
    """Then no list has every pair in its order, and upstream's depends on what it was given."""
    compare = scale_down_order(crowded, now_ns).compare
    ranked = sort_for_deletion(given_replicas, crowded, now_ns)
    circles = any(
        compare(a, b).sign == compare(b, c).sign == compare(c, a).sign != 0
        for a, b, c in combinations(ranked, 3)
    )
    assert circles or all(compare(one, other).sign <= 0 for one, other in combinations(ranked, 2))


def test_nothing_is_sorted_into_nothing() -> None:
    assert sort_for_deletion([], {}, NOW_NS) == []
