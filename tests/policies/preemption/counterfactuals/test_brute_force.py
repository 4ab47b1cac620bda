"""The counterfactuals of random decisions are those that trying every amount finds.

Amounts of random clusters are whole cores and devices, and priorities are small.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec import structs

from policies.kubernetes.releases import NEWEST, RELEASES
from policies.kubernetes.snapshot import NodeState, Pod, Resources, Snapshot, build_node_state
from policies.preemption.costs.fragmentation import FragmentationCriterion
from policies.preemption.counterfactuals.counterfactual import (
    ChangeKind,
    Counterfactual,
    DecisionInputs,
)
from policies.preemption.counterfactuals.reproduction import MakeEngine
from policies.preemption.counterfactuals.search import find_counterfactuals
from policies.preemption.disruption_budgets import covers
from policies.preemption.filtering.node_resources_fit import amount_of
from policies.preemption.policy import SchedulerRules
from policies.preemption.reference_engine import ReferenceEngine, filter_nodes, preempt
from policies.preemption.vectorized import VectorizedEngine
from policies.preemption.victim_units import UnitKind, victim_units
from policies.testing.full_clusters import full_clusters
from policies.testing.strategies import (
    DEVICE,
    LABELS,
    NODES,
    Cluster,
    clusters,
    grouped_clusters,
    rich_clusters,
)
from policies.testing.worked_clusters import cases
from tests.builders import budget
from tests.properties.policies import shaped_rules
from tests.properties.sampling import examples

CORE: Final = 1000
GIB: Final = 2**30
ENGINES: Final = st.sampled_from([ReferenceEngine, VectorizedEngine])
Found = tuple[ChangeKind, str, int]


@dataclass(frozen=True)
class Recorded:
    """A decision with a victim, and which nodes the preemptor fits without preemption."""

    inputs: DecisionInputs
    victim: Pod

    def spared(self, **changes: object) -> bool:
        """Decide anew on changed inputs."""
        before, after = self.inputs, replace(self.inputs, **changes)  # type: ignore[arg-type]
        if set(feasible(after)) - set(feasible(before)):
            return True
        chosen = decided(after)
        return chosen is None or self.victim.uid not in {each.uid for each in chosen}


def feasible(inputs: DecisionInputs) -> Sequence[str]:
    return filter_nodes(inputs.pod, inputs.snapshot, inputs.rules, inputs.among).feasible


def decided(inputs: DecisionInputs) -> tuple[Pod, ...] | None:
    decision = preempt(inputs.pod, inputs.snapshot, inputs.rules, inputs.potential, inputs.among)
    return None if decision.chosen is None else decision.chosen.victims.pods


def every_change(recorded: Recorded) -> Iterator[Found]:
    yield from first(ChangeKind.VICTIM_PRIORITY, recorded.victim.key, priorities(recorded))
    for each in recorded.inputs.snapshot.budgets:
        amounts = disruptions(recorded, each.key)
        yield from first(ChangeKind.DISRUPTIONS_ALLOWED, each.key, amounts)
    yield from nodes(recorded)
    yield from criteria(recorded)
    yield from requests(recorded)
    if recorded.spared(pod=structs.replace(recorded.inputs.pod, preempts=False)):
        yield ChangeKind.PREEMPTION_POLICY, recorded.inputs.pod.key, 0


def first(kind: ChangeKind, subject: str, amounts: Iterable[int]) -> Iterator[Found]:
    yield from ((kind, subject, amount) for amount in list(amounts)[:1])


def priorities(recorded: Recorded) -> Iterator[int]:
    inputs, victim = recorded.inputs, recorded.victim
    units = victim_units(inputs.snapshot, inputs.rules.release)
    if units.unit_of(victim).kind is UnitKind.POD:
        for amount in range(1, inputs.pod.priority - victim.priority + 3):
            raised = structs.replace(victim, priority=victim.priority + amount)
            if recorded.spared(snapshot=with_pod(inputs.snapshot, raised)):
                yield amount


def with_pod(snapshot: Snapshot, pod: Pod) -> Snapshot:
    def changed(pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
        return tuple(pod if each.uid == pod.uid else each for each in pods)

    return replace(
        snapshot,
        nodes={
            name: build_node_state(
                state.node, changed(state.pods), state.nominated, state.unreadable
            )
            for name, state in snapshot.nodes.items()
        },
        pods_with_anti_affinity=changed(snapshot.pods_with_anti_affinity),
        group_members={key: changed(pods) for key, pods in snapshot.group_members.items()},
    )


def disruptions(recorded: Recorded, key: str) -> Iterator[int]:
    snapshot, policy = recorded.inputs.snapshot, recorded.inputs.rules.policy
    release = NEWEST if policy.strict_budgets else recorded.inputs.rules.release
    budget = next(each for each in snapshot.budgets if each.key == key)
    if covers(budget, recorded.victim, release):
        for amount in range(1, budget.allowed + 1):
            smaller = replace(budget, allowed=budget.allowed - amount)
            budgets = [smaller if each.key == key else each for each in snapshot.budgets]
            if recorded.spared(snapshot=replace(snapshot, budgets=tuple(budgets))):
                yield amount


def nodes(recorded: Recorded) -> Iterator[Found]:
    inputs = recorded.inputs
    sizes = []
    for name, state in inputs.snapshot.nodes.items():
        copy = NodeState(structs.replace(state.node, name=f"{name}-copy"))
        then = replace(inputs.snapshot, nodes={**inputs.snapshot.nodes, f"{name}-copy": copy})
        if filter_nodes(inputs.pod, then, inputs.rules, [f"{name}-copy"]).feasible:
            sizes.append((size(state.node.allocatable, inputs.pod.requests), name))
    yield from ((ChangeKind.ADDITIONAL_NODE, name, 0) for _, name in sorted(sizes)[:1])


def size(allocatable: Resources, requests: Resources) -> list[int]:
    resources = ("cpu", "memory", DEVICE)
    return [amount_of(allocatable, each) for each in resources if amount_of(requests, each)]


def criteria(recorded: Recorded) -> Iterator[Found]:
    policy = recorded.inputs.rules.policy
    start = 0 if policy.cheapest_by is None else 1
    for place in range(start + 1, len(policy.candidates)):
        moved = list(policy.candidates)
        moved.insert(start, moved.pop(place))
        changed = replace(policy, candidates=tuple(moved))
        if recorded.spared(rules=replace(recorded.inputs.rules, policy=changed)):
            yield ChangeKind.FIRST_CRITERION, policy.candidates[place].name, 0


def requests(recorded: Recorded) -> Iterator[Found]:
    policy = recorded.inputs.rules.policy
    if policy.compares_while_searching:
        return
    units = {
        "cpu": Resources(milli_cpu=CORE),
        "memory": Resources(memory=GIB),
        DEVICE: Resources(scalars={DEVICE: 1}),
    }
    if any(isinstance(each, FragmentationCriterion) for each in policy.criteria):
        del units[DEVICE]
    for resource, unit in units.items():
        reductions = smaller_requests(recorded, resource, unit)
        yield from first(ChangeKind.PREEMPTOR_REQUEST, resource, reductions)


def smaller_requests(recorded: Recorded, resource: str, unit: Resources) -> Iterator[int]:
    before = recorded.inputs.pod
    pod = structs.replace(before, requests=before.requests - unit)
    while amount_of(pod.requests, resource) > 0:
        if recorded.spared(pod=pod):
            yield amount_of(before.requests, resource) - amount_of(pod.requests, resource)
        pod = structs.replace(pod, requests=pod.requests - unit)


@st.composite
def full_with_budgets(draw: st.DrawFn) -> Cluster:
    """Draw full nodes whose pods are covered by budgets that allow some disruptions."""
    cluster = draw(full_clusters())
    pods = [
        structs.replace(each, labels=draw(labels), priority=draw(st.integers(0, 4)))
        for each in cluster.pods
    ]
    allowed = draw(st.lists(st.integers(1, 3), max_size=2))
    budgets = [
        budget(f"budget-{n}", match={"app": app}, allowed=each)
        for each, (n, app) in zip(allowed, enumerate(["web", "db"]), strict=False)
    ]
    return replace(cluster, pods=tuple(pods), budgets=tuple(budgets))


@st.composite
def with_larger_requests(draw: st.DrawFn, smaller: st.SearchStrategy[Cluster]) -> Cluster:
    """Draw a preemptor whose requests leave more room for reductions."""
    cluster = draw(smaller)
    more = Resources(milli_cpu=CORE * draw(st.integers(0, 2)))
    if draw(st.booleans()):
        more += Resources(scalars={DEVICE: draw(st.integers(0, 2))})
    preemptor = structs.replace(cluster.preemptor, requests=cluster.preemptor.requests + more)
    return replace(cluster, preemptor=structs.replace(preemptor, preempts=True))


labels = st.sampled_from(LABELS)
any_clusters = st.one_of(
    full_with_budgets(),
    with_larger_requests(clusters()),
    with_larger_requests(rich_clusters()),
    with_larger_requests(grouped_clusters()),
)


@st.composite
def recorded_inputs(draw: st.DrawFn, rules: st.SearchStrategy[SchedulerRules]) -> DecisionInputs:
    names = st.sampled_from([None, None, None, *(frozenset(NODES) - {each} for each in NODES)])
    case = draw(cases(any_clusters, rules))
    return DecisionInputs(
        case.preemptor, case.snapshot, case.rules, potential=draw(names), among=draw(names)
    )


def without_consequences(rules: SchedulerRules) -> SchedulerRules:
    return replace(rules, policy=rules.policy.without_consequences())


releases = st.sampled_from(list(RELEASES.values()))
all_rules = st.builds(SchedulerRules, releases) | shaped_rules()


@settings(max_examples=examples(500))
@given(recorded_inputs(all_rules.map(without_consequences)), ENGINES)
def test_the_changes_found_are_those_that_trying_every_amount_finds(
    inputs: DecisionInputs, make_engine: MakeEngine
) -> None:
    for victim in decided(inputs) or ():
        found = find_counterfactuals(victim.uid, inputs, make_engine=make_engine)
        expected = list(every_change(Recorded(inputs, victim)))
        for each in found:
            event(each.kind.value)
        assert [(each.kind, each.subject, each.amount) for each in found] == expected
        assert_they_hold(Recorded(inputs, victim), found)


@settings(max_examples=examples(200))
@given(recorded_inputs(shaped_rules()), ENGINES)
def test_every_change_found_holds_with_any_policy(
    inputs: DecisionInputs, make_engine: MakeEngine
) -> None:
    for victim in decided(inputs) or ():
        found = find_counterfactuals(victim.uid, inputs, make_engine=make_engine)
        assert_they_hold(Recorded(inputs, victim), found)


def assert_they_hold(recorded: Recorded, found: Iterable[Counterfactual]) -> None:
    for each in found:
        assert recorded.spared(
            pod=each.inputs.pod,
            snapshot=each.inputs.snapshot,
            rules=each.inputs.rules,
            among=each.inputs.among,
        )
        if each.outcome.fitting:
            assert each.outcome.fitting in feasible(each.inputs)
        else:
            chosen = each.outcome.chosen
            assert decided(each.inputs) == (None if chosen is None else chosen.victims.pods)
