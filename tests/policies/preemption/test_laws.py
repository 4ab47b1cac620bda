"""Laws of decisions, on many small clusters.

Each is tried on clusters with everything in them, and on those with resources, ports and budgets
alone, which find other corners. Some laws that one might expect do not hold, and are narrowed here:

- *The victims are the fewest, or the cheapest, that make room.* They are not: importance has its
  say first (see test_preemption). What holds is that none is superfluous: each, put back into the
  state in which it was judged, or at the end, unseats the preemptor.
- *Once the victims are gone, the preemptor fits, and with any one of them it does not.* Not if two
  pods of a node share a host port, which is forgotten with the first that leaves; the clusters here
  have none (see strategies). And not if pods are counted anew for a spread constraint: a victim
  that was terminating already was never counted, yet its leaving was (see pod_topology_spread). So
  the law applies to the dry run's own counts if there are constraints, and to a new evaluation of
  the cluster with resources and ports alone.
- *Every node is a candidate or rejected.* Not if the pod may not preempt: then filtering's refusals
  are all there is.
- *The order of the input never matters.* The order of the budgets does, since 1.37: a pod that
  breaks one is not charged to those listed after it. The law applies to nodes and pods, and to
  budgets up to 1.36.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st
from msgspec import structs

from policies.kubernetes.releases import NEWEST, RELEASES, Release
from policies.kubernetes.snapshot import Pod, Resources, Snapshot
from policies.preemption.decision import Candidate, PreemptionDecision
from policies.preemption.disruption_budgets import BudgetCoverage, split_by_pdb_violation
from policies.preemption.filtering import IN_TREE, run_pre_filters
from policies.preemption.filtering.status import Code
from policies.preemption.guards.victim_guard import UNPROTECTED, protected_pods
from policies.preemption.policy import (
    DEFAULT_CANDIDATE_ORDER,
    DEFAULT_VICTIM_ORDER,
    KUBE_SCHEDULER,
    SchedulerRules,
)
from policies.preemption.reference_engine import filter_nodes, preempt
from policies.preemption.victims.victim_selection import NodeDryRun
from policies.testing.strategies import Cluster, clusters, rich_clusters
from tests.builders import snapshot

releases = st.sampled_from(list(RELEASES.values()))
any_clusters = rich_clusters() | clusters()


def decided(cluster: Cluster, release: Release = NEWEST) -> PreemptionDecision:
    decision = preempt(cluster.preemptor, cluster.snapshot, SchedulerRules(release))
    event(f"decided by {decision.decided_by}")
    event(f"{len(decision.candidates)} candidate(s)")
    return decision


def fits(asking: Pod, cluster: Snapshot, name: str, release: Release = NEWEST) -> bool:
    return run_pre_filters(asking, cluster, release, IN_TREE).refuse(cluster.nodes[name]) is None


@given(any_clusters, releases, st.data())
def test_the_order_of_nodes_and_pods_never_matters(
    cluster: Cluster, release: Release, data: st.DataObject
) -> None:
    shuffled = replace(
        cluster,
        nodes=tuple(data.draw(st.permutations(cluster.nodes))),
        pods=tuple(data.draw(st.permutations(cluster.pods))),
    )
    assert decided(shuffled, release) == decided(cluster, release)


@given(any_clusters, st.data())
def test_the_order_of_budgets_does_not_matter_up_to_1_36(
    cluster: Cluster, data: st.DataObject
) -> None:
    shuffled = replace(cluster, budgets=tuple(data.draw(st.permutations(cluster.budgets))))
    old = RELEASES["1.36"]
    assert decided(shuffled, old) == decided(cluster, old)


@given(any_clusters, releases)
def test_every_victim_is_on_the_node_has_lower_priority_and_is_in_order(
    cluster: Cluster, release: Release
) -> None:
    for name, candidate in decided(cluster, release).candidates.items():
        victims = candidate.victims.pods
        assert victims
        assert all(each.priority < cluster.preemptor.priority for each in victims)
        assert {each.uid for each in victims} <= {
            each.uid for each in cluster.snapshot.nodes[name].pods
        }
        assert list(victims) == DEFAULT_VICTIM_ORDER.sort(victims)
        assert 0 <= candidate.victims.violations <= len(victims)


@given(any_clusters, releases)
def test_victims_and_spared_are_all_pods_of_lower_priority(
    cluster: Cluster, release: Release
) -> None:
    for name, candidate in decided(cluster, release).candidates.items():
        lower = {
            each.uid
            for each in cluster.snapshot.nodes[name].pods
            if each.priority < cluster.preemptor.priority
        }
        gone, spared = ({each.uid for each in group} for group in parts(candidate))
        assert (gone | spared, gone & spared) == (lower, set())


def parts(candidate: Candidate) -> tuple[tuple[Pod, ...], tuple[Pod, ...]]:
    return candidate.victims.pods, candidate.spared


@given(any_clusters, releases)
def test_the_preemptor_does_not_fit_beside_any_victim(cluster: Cluster, release: Release) -> None:
    before = cluster.snapshot
    pipeline = run_pre_filters(cluster.preemptor, before, release, IN_TREE)
    coverage = BudgetCoverage(before.budgets, release)
    for name, candidate in decided(cluster, release).candidates.items():
        victims, spared = parts(candidate)
        trial = NodeDryRun(pipeline, before.nodes[name])
        judged = DEFAULT_VICTIM_ORDER.sort((*victims, *spared))
        for each in judged:
            trial = trial.removing(each)
        groups = split_by_pdb_violation(judged, coverage)
        for each in (*groups.violating, *groups.others):
            back = trial.adding(each)
            assert (back.rejection() is None) == (each in spared)
            trial = back if each in spared else trial
        assert trial.rejection() is None
        assert all(trial.adding(each).rejection() is not None for each in victims)
        broken = [each for each in victims if each in groups.violating]
        assert candidate.victims.violations == len(broken)


@given(clusters(), releases)
def test_without_the_victims_the_preemptor_fits_and_with_any_one_of_them_it_does_not(
    cluster: Cluster, release: Release
) -> None:
    before = cluster.snapshot
    for name, candidate in decided(cluster, release).candidates.items():
        victims = candidate.victims.pods
        assert fits(cluster.preemptor, evicted(before, name, victims), name, release)
        for index in range(len(victims)):
            all_but_one = victims[:index] + victims[index + 1 :]
            assert not fits(cluster.preemptor, evicted(before, name, all_but_one), name, release)


def evicted(before: Snapshot, name: str, victims: tuple[Pod, ...]) -> Snapshot:
    """Take pods off a node by putting the node together anew without them."""
    state = before.nodes[name]
    gone = {each.uid for each in victims}
    rest = [each for each in state.pods if each.uid not in gone]
    return snapshot(state.node, *rest, *state.nominated)


@given(any_clusters, st.integers(0, 3), st.integers(0, 3))
def test_spare_capacity_never_makes_a_feasible_node_infeasible(
    cluster: Cluster, cores: int, places: int
) -> None:
    larger = replace(
        cluster,
        nodes=tuple(
            structs.replace(
                each,
                allocatable=each.allocatable + Resources(milli_cpu=1000 * cores),
                allowed_pods=each.allowed_pods + places,
            )
            for each in cluster.nodes
        ),
    )
    now = filter_nodes(cluster.preemptor, cluster.snapshot).feasible
    then = filter_nodes(cluster.preemptor, larger.snapshot).feasible
    assert set(now) <= set(then)


@given(any_clusters)
def test_a_candidate_stays_one_with_more_capacity(cluster: Cluster) -> None:
    larger = replace(
        cluster,
        nodes=tuple(structs.replace(n, allowed_pods=n.allowed_pods + 1) for n in cluster.nodes),
    )
    now, then = decided(cluster), decided(larger)
    assert set(now.candidates) <= set(then.candidates) | {
        name for name, why in then.rejected.items() if why.reasons[0].code is Code.FEASIBLE
    }


@given(any_clusters, releases)
def test_no_candidate_beats_the_chosen_one(cluster: Cluster, release: Release) -> None:
    decision = decided(cluster, release)
    assert (decision.chosen is None) == (not decision.candidates)
    if decision.chosen is not None:
        best = DEFAULT_CANDIDATE_ORDER.key(decision.chosen)
        assert all(
            best <= DEFAULT_CANDIDATE_ORDER.key(each) for each in decision.candidates.values()
        )


@given(any_clusters, releases)
def test_the_deciding_criterion_is_the_first_that_differs_from_the_closest_rival(
    cluster: Cluster, release: Release
) -> None:
    decision = decided(cluster, release)
    if decision.chosen is None or len(decision.candidates) < 2:
        assert decision.decided_by is None
        return
    rivals = [each for each in decision.candidates.values() if each != decision.chosen]
    closest, _ = min(DEFAULT_CANDIDATE_ORDER.key(each) for each in rivals)
    mine, _ = DEFAULT_CANDIDATE_ORDER.key(decision.chosen)
    names = [criterion.name for criterion in DEFAULT_CANDIDATE_ORDER.criteria]
    differing = [name for name, a, b in zip(names, mine, closest, strict=True) if a != b]
    assert decision.decided_by == (differing[0] if differing else "node name")


@given(any_clusters, releases)
def test_every_node_is_a_candidate_or_rejected_and_never_both_unless_the_pod_may_not_preempt(
    cluster: Cluster, release: Release
) -> None:
    decision = decided(cluster, release)
    if decision.eligible:
        names = [*decision.candidates, *decision.rejected]
        assert sorted(names) == sorted(cluster.snapshot.nodes)
    else:
        assert not decision.candidates


@given(any_clusters)
def test_a_node_that_fits_is_never_a_candidate(cluster: Cluster) -> None:
    feasible = filter_nodes(cluster.preemptor, cluster.snapshot).feasible
    assert not set(feasible) & set(decided(cluster).candidates)


@given(any_clusters)
def test_a_protected_pod_is_never_a_victim(cluster: Cluster) -> None:
    guard = protected_pods("web pods", lambda each: each.labels.get("app") == "web")
    careful = replace(KUBE_SCHEDULER, victim_guards=(guard,))
    decision = preempt(cluster.preemptor, cluster.snapshot, SchedulerRules(policy=careful))
    for candidate in decision.candidates.values():
        assert all(guard.until_ns(pod) == UNPROTECTED for pod in candidate.victims.pods)


@given(any_clusters)
def test_a_decision_changes_no_input(cluster: Cluster) -> None:
    before = cluster.snapshot
    preempt(cluster.preemptor, before)
    assert before == cluster.snapshot
