"""A search that is broken off: what it found is right, and it says that it did not look further."""

from __future__ import annotations

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from policies.engine import Engine
from policies.patience import OutOfTimeError, Patience
from policies.reference import Reference
from policies.rules import Rules
from policies.upstream import NEWEST
from policies.vectorized import Vectorized
from tests.builders import node, pod, snapshot
from tests.strategies import Cluster, clusters


def looks(count: int) -> Patience:
    """Have time for so many nodes."""
    left = iter(range(count))
    return lambda: next(left, None) is not None


@given(clusters(), st.integers(0, 12), st.sampled_from([Reference, Vectorized]))
def test_what_was_found_in_time_is_what_is_found_without_haste(
    cluster: Cluster, count: int, kind: type[Reference | Vectorized]
) -> None:
    rules = Rules(NEWEST)
    engine: Engine = kind(rules)
    whole = engine.preempt(cluster.preemptor, cluster.snapshot)
    try:
        found = engine.preempt(cluster.preemptor, cluster.snapshot, patience=looks(count))
    except OutOfTimeError:
        event("broken off while filtering")
        return
    event(f"broken off while trying nodes: {found.untried > 0}")
    if not found.untried:
        assert found == whole
    assert dict(found.candidates) == {name: whole.candidates[name] for name in found.candidates}
    assert found.chosen == next(iter(rules.policy.candidates.sort(found.candidates.values())), None)
    assert set(found.rejected) >= set(whole.rejected)


@given(clusters(), st.integers(0, 12), st.sampled_from([Reference, Vectorized]))
def test_filtering_is_whole_or_none(
    cluster: Cluster, count: int, kind: type[Reference | Vectorized]
) -> None:
    engine: Engine = kind(Rules(NEWEST))
    names = tuple(cluster.snapshot.nodes)
    whole = engine.filter_leniently(cluster.preemptor, cluster.snapshot, names)
    try:
        found = engine.filter_leniently(
            cluster.preemptor, cluster.snapshot, names, patience=looks(count)
        )
    except OutOfTimeError:
        event("broken off")
    else:
        assert found == whole


def test_the_best_of_the_nodes_tried_is_chosen_and_the_rest_counted() -> None:
    moment = snapshot(
        *(node(f"node-{number}", cpu="1") for number in (1, 2, 3)),
        pod("dear", on="node-1", cpu="1", priority=5),
        pod("cheap", on="node-2", cpu="1", priority=2),
        pod("cheapest", on="node-3", cpu="1", priority=1),
    )
    asking = pod("vip", cpu="1", priority=10)
    # Three looks for filtering, two for the dry run.
    decision = Reference().preempt(asking, moment, patience=looks(5))
    assert decision.chosen is not None
    assert decision.chosen.node == "node-2"
    assert decision.untried == 1
    assert "not tried, as time was up: 1 node(s)" in list(decision.describe())
    with pytest.raises(OutOfTimeError):
        Reference().preempt(asking, moment, patience=looks(2))
