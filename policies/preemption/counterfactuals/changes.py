"""Changes of a budget, of the nodes, of the policy and of the preemptor that spare a victim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from msgspec import structs

from policies.kubernetes.releases import NEWEST
from policies.kubernetes.snapshot import DisruptionBudget, Node, NodeState
from policies.preemption.counterfactuals.counterfactual import (
    ChangeKind,
    Counterfactual,
    DecisionInputs,
    Outcome,
)
from policies.preemption.counterfactuals.reproduction import ReproducedDecision
from policies.preemption.disruption_budgets import BudgetCoverage, covers
from policies.preemption.filtering.node_resources_fit import amount_of
from policies.preemption.policy import PolicyCriterion
from policies.preemption.reference_engine import filter_nodes
from policies.preemption.time_limit import in_time

_HOSTNAME: Final = "kubernetes.io/hostname"


def fewer_disruptions(reproduced: ReproducedDecision) -> Iterator[Counterfactual]:
    """Yield, for each budget that covers the victim, how many fewer disruptions spare it.

    Strict budgets allow no more than the ready pods permit, so that the first disruptions fewer may
    change nothing.
    """
    inputs, policy = reproduced.inputs, reproduced.policy
    release = NEWEST if policy.strict_budgets else inputs.rules.release
    budgets = policy.view_of(inputs.snapshot).budgets
    stated = {each.key: each for each in inputs.snapshot.budgets}
    for counted in BudgetCoverage(budgets, release).of(reproduced.victim):
        budget = stated[counted.key]
        # More than the pods that it covers on a node have no effect.
        effective = min(counted.allowed, _most_covered(budget, reproduced))
        for allowed in range(effective - 1, -1, -1):
            changed = _with_allowed(inputs, budget, allowed)
            outcome = reproduced.spared_by(changed)
            if outcome is not None:
                yield Counterfactual(
                    ChangeKind.DISRUPTIONS_ALLOWED,
                    budget.key,
                    budget.allowed - allowed,
                    allowed,
                    outcome,
                    changed,
                )
                break


def _most_covered(budget: DisruptionBudget, reproduced: ReproducedDecision) -> int:
    """Return at least the number of pods that a budget covers among the victims of any decision."""
    snapshot = reproduced.inputs.snapshot
    covered = Counter(
        name
        for name, state in snapshot.nodes.items()
        for pod in state.pods
        if covers(budget, pod, NEWEST)
    )
    # The units of pod groups have pods on several nodes; a simulation moves pods between nodes.
    if snapshot.pod_groups.groups or reproduced.policy.compares_while_searching:
        return covered.total()
    return max(covered.values(), default=0)


def _with_allowed(inputs: DecisionInputs, budget: DisruptionBudget, allowed: int) -> DecisionInputs:
    budgets = tuple(
        replace(each, allowed=allowed) if each is budget else each
        for each in inputs.snapshot.budgets
    )
    return replace(inputs, snapshot=replace(inputs.snapshot, budgets=budgets))


def additional_node(reproduced: ReproducedDecision) -> Iterator[Counterfactual]:
    """Yield the smallest node of which an empty copy fits the preemptor, if there is one.

    Nodes are compared by what they have of the resources that the preemptor requests, CPU first,
    then by name. A copy has another name and hostname label. Objects about a node, such as CSINodes
    and ResourceSlices, are not copied.
    """
    inputs = reproduced.inputs
    snapshot, requests = inputs.snapshot, inputs.pod.requests
    resources = ("cpu", "memory", "ephemeral-storage", *sorted(requests.scalars))
    asked = [name for name in resources if amount_of(requests, name) > 0]

    def size(node: Node) -> tuple[list[int], str]:
        return [amount_of(node.allocatable, name) for name in asked], node.name

    nodes = sorted((state.node for state in snapshot.nodes.values()), key=size)
    seen: set[tuple[object, ...]] = set()
    for node in in_time(nodes, reproduced.has_time_left):
        copy = _copy_of(node, inputs)
        properties = _properties(node)
        if properties in seen:
            continue
        seen.add(properties)
        among = None if inputs.among is None else inputs.among | {copy.name}
        nodes_then = {**snapshot.nodes, copy.name: NodeState(copy)}
        changed = replace(inputs, snapshot=replace(snapshot, nodes=nodes_then), among=among)
        fits = filter_nodes(
            inputs.pod, changed.snapshot, inputs.rules, (copy.name,), reproduced.has_time_left
        )
        if fits.feasible:
            outcome = reproduced.decide(changed).outcome
            yield Counterfactual(ChangeKind.ADDITIONAL_NODE, node.name, 0, 0, outcome, changed)
            return


def _copy_of(node: Node, inputs: DecisionInputs) -> Node:
    name = f"{node.name}-copy"
    while name in inputs.snapshot.nodes:
        name += "-copy"
    labels = node.labels
    if _HOSTNAME in labels:
        labels = {**labels, _HOSTNAME: name}
    return structs.replace(node, name=name, labels=labels)


def _properties(node: Node) -> tuple[object, ...]:
    """Return what filters read of an empty node but its name, so as to filter equal ones once."""
    allocatable = node.allocatable
    return (
        frozenset((key, value) for key, value in node.labels.items() if key != _HOSTNAME),
        _HOSTNAME in node.labels,
        node.taints,
        node.unschedulable,
        (allocatable.milli_cpu, allocatable.memory, allocatable.ephemeral_storage),
        frozenset(allocatable.scalars.items()),
        node.allowed_pods,
        node.declared_features,
    )


def other_first_criterion(reproduced: ReproducedDecision) -> Iterator[Counterfactual]:
    """Yield each criterion of the policy that spares the victim if it is the first one.

    The criterion by which the cheapest victims are searched stays the first; others are moved
    behind it.
    """
    policy = reproduced.policy
    fixed = 0 if policy.cheapest_by is None else 1
    for criterion in policy.candidates[fixed + 1 :]:
        changed = _with_first(reproduced, criterion, fixed)
        outcome = _outcome_of_order(reproduced, changed)
        if outcome.spares(reproduced.victim.uid):
            yield Counterfactual(ChangeKind.FIRST_CRITERION, criterion.name, 0, 0, outcome, changed)


def _with_first(
    reproduced: ReproducedDecision, criterion: PolicyCriterion, fixed: int
) -> DecisionInputs:
    inputs, before = reproduced.inputs, reproduced.policy.candidates
    others = (each for each in before[fixed:] if each is not criterion)
    policy = replace(reproduced.policy, candidates=(*before[:fixed], criterion, *others))
    rules = replace(inputs.rules, policy=policy, policy_rules=())
    return replace(inputs, rules=rules)


def _outcome_of_order(reproduced: ReproducedDecision, changed: DecisionInputs) -> Outcome:
    """Return the outcome of another order; most policies have the same candidates in any order."""
    policy = changed.rules.policy
    if policy.compares_while_searching:
        return reproduced.decide(changed).outcome
    order = policy.order_of_candidates(changed.pod, policy.view_of(changed.snapshot))
    return Outcome("", min(reproduced.decision.candidates.values(), key=order.key))


def never_preempting(reproduced: ReproducedDecision) -> Iterator[Counterfactual]:
    """Yield the preemptionPolicy with which the preemptor preempts no pod."""
    inputs = reproduced.inputs
    changed = replace(inputs, pod=structs.replace(inputs.pod, preempts=False))
    outcome = reproduced.spared_by(changed)
    if outcome is not None:
        yield Counterfactual(ChangeKind.PREEMPTION_POLICY, inputs.pod.key, 0, 0, outcome, changed)
