"""Which departures may help a pod: an attempt that a hint leaves out would have failed."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st
from msgspec import structs

from fakeapi.controlplane.scheduler.departure_hint import DepartureHint, departure_hint
from policies import SchedulerRules
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.reference_engine import filter_nodes, preempt
from policies.testing.strategies import NODES, SCHEDULERS, Cluster, clusters, grouped_clusters


def hint_of(pod: Pod, snapshot: Snapshot, rules: SchedulerRules) -> DepartureHint | None:
    """Return the hint of a pod if it has no candidate."""
    filtering = filter_nodes(pod, snapshot, rules)
    if filtering.feasible or filtering.conflict is not None or not is_refused(pod, snapshot, rules):
        return None
    return departure_hint(pod, snapshot, rules, filtering.rejected)


def is_refused(pod: Pod, snapshot: Snapshot, rules: SchedulerRules) -> bool:
    """Return whether a pod fits on no node, and has no candidate."""
    if filter_nodes(pod, snapshot, rules).feasible:
        return False
    decision = preempt(pod, snapshot, rules, list(snapshot.nodes))
    return decision.eligible and not decision.candidates


def is_hopeless(hint: DepartureHint, changed: set[str], snapshot: Snapshot) -> bool:
    return not any(map(hint.may_help, (snapshot.nodes[name] for name in changed | hint.nominated)))


@given(
    st.one_of(clusters(), grouped_clusters()),
    st.frozensets(st.sampled_from(SCHEDULERS)),
    st.sets(st.integers(0, 11)),
)
def test_an_attempt_that_is_left_out_would_fail(
    cluster: Cluster, names: frozenset[str], leaving: set[int]
) -> None:
    rules = SchedulerRules(scheduler_names=names)
    pod = structs.replace(cluster.preemptor, nominated_node=None)
    hint = hint_of(pod, cluster.snapshot, rules)
    if hint is None:
        return
    left = tuple(each for each in cluster.pods if int(each.name[4:]) not in leaving)
    changed = {each.node_name or "" for each in cluster.pods if each not in left} & {*NODES}
    later = replace(cluster, pods=left).snapshot
    hopeless = is_hopeless(hint, changed, later)
    event(f"left out: {hopeless}, after departures: {bool(changed)}")
    if hopeless:
        assert is_refused(pod, later, rules)
