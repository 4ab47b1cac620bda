"""Both engines give the same decisions: candidates, victims, reasons, messages and all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from policies import Rules
from policies.reference import filter_nodes, preempt
from policies.upstream import RELEASES, Release
from policies.vectorized import Vectorized
from tests.strategies import Cluster, clusters

releases = st.sampled_from(list(RELEASES.values()))


@given(clusters(), releases)
def test_both_engines_decide_alike(cluster: Cluster, release: Release) -> None:
    rules = Rules(release)
    pod, snapshot = cluster.preemptor, cluster.snapshot
    engine = Vectorized(rules)
    assert engine.preempt(pod, snapshot) == preempt(pod, snapshot, rules)
    assert engine.filter_nodes(pod, snapshot) == filter_nodes(pod, snapshot, rules)
