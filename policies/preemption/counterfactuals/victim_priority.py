"""The smallest increase of a victim's priority that spares it.

A priority is compared with those of the other pods of the node, and with that of the preemptor. So
the priorities above the victim's own are cut into intervals in which no such comparison changes:
each of these priorities alone, and the ones between two of them. Within an interval the node has
the same victims; only their highest priority and the sum of their priorities grow. These make the
candidate worse, never better, so that once the victim is spared, it is up to the end of the
interval. The intervals are searched from the lowest one, by their last priority; the first that
spares the victim at its end is bisected. For example, with pods of priority 20 and 50 beside a
victim of priority 10, and a preemptor of priority 100:

    11-19, 20, 21-49, 50, 51-99, 100

At the priority of the preemptor a pod is no potential victim.

That holds for the criteria, guards and limits of :mod:`policies.preemption`. A cost, guard or
criterion that reads priorities in another way (an expression, a plugin), and consequences, may
spare the victim at a priority within an interval and not at its end. Such a priority is not found:
then the increase is one that spares the victim where one less does not.

The priority of a pod of a PodGroup is that of its root group, which many pods share. For such a
victim nothing is offered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from msgspec import structs

from policies.kubernetes.snapshot import Pod
from policies.preemption.counterfactuals.counterfactual import (
    ChangeKind,
    Counterfactual,
    DecisionInputs,
    Outcome,
)
from policies.preemption.counterfactuals.reproduction import ReproducedDecision
from policies.preemption.victim_units import UnitKind, VictimUnits, victim_units

HIGHEST_USER_PRIORITY: Final = 1_000_000_000
"""The highest value of a PriorityClass of users (HighestUserDefinablePriority).

Source: pkg/apis/scheduling/types.go.
"""


def higher_priority(reproduced: ReproducedDecision) -> Iterator[Counterfactual]:
    """Yield the smallest increase of the victim's priority that spares it, if there is one."""
    inputs, victim = reproduced.inputs, reproduced.victim
    units = victim_units(inputs.snapshot, inputs.rules.release)
    if units.unit_of(victim).kind is not UnitKind.POD:
        return
    refused = victim.priority
    for last in _interval_ends(reproduced, units):
        outcome = reproduced.spared_by(with_priority(inputs, victim, last))
        if outcome is not None:
            yield _smallest(reproduced, refused, last, outcome)
            return
        refused = last


def _interval_ends(reproduced: ReproducedDecision, units: VictimUnits) -> list[int]:
    """Return the last priorities of the intervals above the victim's priority, in order."""
    nodes, policy, victim = units.snapshot.nodes, reproduced.policy, reproduced.victim
    # A simulation of consequences compares pods of all nodes.
    compared = (
        nodes.values() if policy.compares_while_searching else [nodes[victim.node_name or ""]]
    )
    priorities: set[int] = set()
    for state in compared:
        for unit in units.of(state.pods):
            priorities |= {unit.priority, *(pod.priority for pod in unit.pods)}
    protected = reproduced.inputs.pod.priority - policy.priority_gap + 1
    highest = min(protected, HIGHEST_USER_PRIORITY)
    ends = {highest, *(end for each in (*priorities, protected) for end in (each - 1, each))}
    return sorted(end for end in ends if victim.priority < end <= highest)


def _smallest(
    reproduced: ReproducedDecision, refused: int, priority: int, outcome: Outcome
) -> Counterfactual:
    """Bisect the priorities above one that does not spare the victim, up to one that does."""
    inputs, victim = reproduced.inputs, reproduced.victim
    while priority - refused > 1:
        between = (refused + priority) // 2
        found = reproduced.spared_by(with_priority(inputs, victim, between))
        if found is None:
            refused = between
        else:
            priority, outcome = between, found
    return Counterfactual(
        ChangeKind.VICTIM_PRIORITY,
        victim.key,
        priority - victim.priority,
        priority,
        outcome,
        with_priority(inputs, victim, priority),
    )


def with_priority(inputs: DecisionInputs, pod: Pod, priority: int) -> DecisionInputs:
    """Return the inputs with another priority of a pod that is on a node and of no PodGroup."""

    def changed(pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
        return tuple(
            structs.replace(each, priority=priority) if each.uid == pod.uid else each
            for each in pods
        )

    snapshot, name = inputs.snapshot, pod.node_name or ""
    state = structs.replace(snapshot.nodes[name], pods=changed(snapshot.nodes[name].pods))
    repelling = snapshot.pods_with_anti_affinity
    return replace(
        inputs,
        snapshot=replace(
            snapshot,
            nodes={**snapshot.nodes, name: state},
            pods_with_anti_affinity=changed(repelling) if pod.anti_affinity else repelling,
        ),
    )
