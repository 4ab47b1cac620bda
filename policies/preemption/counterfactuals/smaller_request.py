"""The smallest reduction of a request of the preemptor that spares a victim.

A filter and a dry run compare the request with what a node has left. So what is found on a node
changes only where the request crosses one of these amounts of it:

- what is allocatable on the node: a larger request is unresolvable;
- what its pods leave: then the preemptor fits without preemption;
- what is left without the potential victims: then the node may be a candidate;
- what is left at each failed attempt to reprieve a unit: beside the pods that are kept so far, and
  the unit.

Each counts also beside the pods that are nominated to the node. For example, a node of 6 CPUs has
two pods of 2 CPUs that may be victims and one of 1 CPU that may not, and the request is 4 CPUs.
Beside the first pod 3 CPUs are left, so that it is reprieved at a request of 3 CPUs.

Nodes that another filter refuses for good do not count. The search jumps to the largest of these
amounts on any node that is below the request, and decides anew, until the victim is spared. It ends
without a result at a request of 0, where the filter does not compare at all; after MOST_STEPS; or
with the time. Between two such amounts every decision is the same. That does not hold, and nothing
is offered, for

- a policy that compares candidates while it searches (:attr:`Policy.compares_while_searching`);
- a resource of which the policy counts what remains (:class:`FragmentationCriterion`);
- a resource that devices may back, or that several containers request as devices;
- a pod whose in-place resize is deferred.

A rule of a policy that reads the requests of the preemptor may choose another policy between two of
these amounts. Then a smaller reduction may spare the victim, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from msgspec import structs

from policies.devices.extended_resources import delegated_resources
from policies.kubernetes.snapshot import NodeState, Pod, Resources
from policies.preemption.costs.fragmentation import FragmentationCriterion
from policies.preemption.counterfactuals.counterfactual import (
    ChangeKind,
    Counterfactual,
    DecisionInputs,
)
from policies.preemption.counterfactuals.reproduction import ReproducedDecision
from policies.preemption.decision import Candidate, PreemptionDecision
from policies.preemption.disruption_budgets import BudgetCoverage, count_pdb_violations
from policies.preemption.filtering import NodeResourcesFit, has_to_fit_beside, run_pre_filters
from policies.preemption.filtering.node_resources_fit import amount_of
from policies.preemption.filtering.status import Code
from policies.preemption.guards.allowance import BoundAllowance
from policies.preemption.time_limit import in_time
from policies.preemption.victim_units import VictimUnit, VictimUnits, victim_units
from policies.preemption.victims.victim_selection import potential_units, select_victims

MOST_STEPS: Final = 200
"""The most decisions in the search for one resource: a second or two in a large cluster."""


def smaller_requests(reproduced: ReproducedDecision) -> Iterator[Counterfactual]:
    """Yield, for each resource that the preemptor requests, the smallest reduction that spares."""
    if reproduced.policy.compares_while_searching or reproduced.inputs.pod.resize_deferred:
        return
    dry_runs = DryRuns.of(reproduced)
    for resource in _reducible(reproduced):
        found = _smallest_reduction(reproduced, dry_runs, resource)
        if found is not None:
            yield found


def _reducible(reproduced: ReproducedDecision) -> Iterator[str]:
    inputs = reproduced.inputs
    pod, rules = inputs.pod, inputs.rules
    left_out = set(delegated_resources(pod, inputs.snapshot, rules.release))
    for criterion in reproduced.policy.criteria:
        if isinstance(criterion, FragmentationCriterion):
            left_out.add(criterion.resource)
    asked = [each.resource for each in pod.extended_requests]
    left_out |= {resource for resource in asked if asked.count(resource) > 1}
    for each in rules.filters:
        if isinstance(each, NodeResourcesFit):
            yield from (name for name, _ in each.counted(pod.requests) if name not in left_out)


def _smallest_reduction(
    reproduced: ReproducedDecision, dry_runs: DryRuns, resource: str
) -> Counterfactual | None:
    inputs = reproduced.inputs
    request = amount_of(inputs.pod.requests, resource)
    names = [name for name in inputs.snapshot.nodes if _reads_requests(reproduced, name)]
    next_requests = {
        name: dry_runs.next_request(name, resource, inputs.pod, reproduced.decision)
        for name in in_time(names, reproduced.has_time_left)
    }
    for _ in range(MOST_STEPS):
        smaller = max(next_requests.values(), default=0)
        if smaller <= 0:
            return None
        changed = with_request(inputs, resource, smaller)
        decision, outcome = reproduced.decide(changed)
        if outcome.spares(reproduced.victim.uid):
            return Counterfactual(
                ChangeKind.PREEMPTOR_REQUEST, resource, request - smaller, smaller, outcome, changed
            )
        for name, threshold in next_requests.items():
            if threshold == smaller:
                next_requests[name] = dry_runs.next_request(name, resource, changed.pod, decision)
    return None


def _reads_requests(reproduced: ReproducedDecision, name: str) -> bool:
    """Return whether the result of a node may depend on requests.

    It does not if another filter refuses the node for good.
    """
    if name in (reproduced.inputs.potential or ()):
        return True
    status = reproduced.filtering.rejected.get(name)
    return status is not None and (
        status.resolvable or any(each.code is Code.INSUFFICIENT for each in status.reasons)
    )


@dataclass(frozen=True, slots=True)
class DryRuns:
    """The dry runs of a decision, as far as they compare requests with what a node has left.

    The order in which a node's units are reprieved, and what they request, do not depend on the
    preemptor's requests, so they are found once.
    """

    inputs: DecisionInputs
    units: VictimUnits
    coverage: BudgetCoverage
    allowances: tuple[BoundAllowance, ...]
    _orders: dict[str, list[VictimUnit]] = field(default_factory=dict, repr=False, compare=False)
    _amounts: dict[tuple[str, str], list[int]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @staticmethod
    def of(reproduced: ReproducedDecision) -> DryRuns:
        """Return the dry runs of a decision."""
        inputs, policy = reproduced.inputs, reproduced.policy
        snapshot, release = policy.view_of(inputs.snapshot), inputs.rules.release
        return DryRuns(
            inputs,
            victim_units(snapshot, release),
            BudgetCoverage(snapshot.budgets, release),
            policy.allowances(inputs.pod, snapshot),
        )

    def next_request(self, name: str, resource: str, pod: Pod, decision: PreemptionDecision) -> int:
        """Return the largest request below that of ``pod`` at which a node's result may change.

        ``decision`` is the one about ``pod``. 0: it does not change.
        """
        request, state = amount_of(pod.requests, resource), self.units.snapshot.nodes[name]
        names = self.inputs.rules.scheduler_names
        nominated = sum(
            amount_of(each.requests, resource)
            for each in state.nominated
            if has_to_fit_beside(each, pod, names)
        )
        free = amount_of(state.node.allocatable, resource)
        found = 0
        for used in self._compared(state, resource, self._candidate(name, pod, decision)):
            for left in (free - used, free - used - nominated):
                if found < left < request:
                    found = left
        return found

    def _candidate(self, name: str, pod: Pod, decision: PreemptionDecision) -> Candidate | None:
        """Return the candidate of a node, also of one that a limit refuses."""
        candidate, refusal = decision.candidates.get(name), decision.rejected.get(name)
        if candidate is not None or refusal is None:
            return candidate
        if refusal.reasons[0].code is not Code.POLICY_LIMIT:
            return None
        rules, units = self.inputs.rules, self.units
        pipeline = run_pre_filters(
            pod, units.snapshot, rules.release, rules.filters, rules.scheduler_names
        )
        policy, state = rules.for_preemptor(pod).policy, units.snapshot.nodes[name]
        found = select_victims(pipeline, state, units, self.coverage, policy, self.allowances)
        return found if isinstance(found, Candidate) else None

    def _compared(
        self, state: NodeState, resource: str, candidate: Candidate | None
    ) -> Iterator[int]:
        """Yield what is used of a node wherever the request is compared with what is left."""
        yield 0
        used = amount_of(state.requested, resource)
        yield used
        order = self._order_of_reprieve(state)
        requested = self._requested(order, state.node.name, resource)
        used -= sum(requested)
        yield used
        if candidate is None:
            return
        evicted = {pod.uid for pod in candidate.victims.pods}
        for unit, amount in zip(order, requested, strict=True):
            if unit.pods[0].uid in evicted:
                yield used + amount
            else:
                used += amount

    def _requested(self, order: list[VictimUnit], name: str, resource: str) -> list[int]:
        """Return what each unit requests on a node."""
        found = self._amounts.get((name, resource))
        if found is None:
            found = self._amounts[name, resource] = [
                sum(
                    [
                        amount_of(pod.requests, resource)
                        for pod in unit.pods
                        if pod.node_name == name
                    ]
                )
                for unit in order
            ]
        return found

    def _order_of_reprieve(self, state: NodeState) -> list[VictimUnit]:
        """Return the potential units of a node, those that violate a budget first."""
        name = state.node.name
        found = self._orders.get(name)
        if found is None:
            pod, rules = self.inputs.pod, self.inputs.rules
            policy = rules.for_preemptor(pod).policy
            units = potential_units(pod, state, self.units, policy, self.allowances)
            counts = count_pdb_violations((unit.pods for unit in units), self.coverage)
            violating = [unit for unit, count in zip(units, counts, strict=True) if count]
            others = [unit for unit, count in zip(units, counts, strict=True) if not count]
            found = self._orders[name] = [*violating, *others]
        return found


def with_request(inputs: DecisionInputs, resource: str, amount: int) -> DecisionInputs:
    """Return the inputs with another request of the preemptor, which at most one container has."""
    pod = inputs.pod
    asked = tuple(
        replace(each, count=amount) if each.resource == resource else each
        for each in pod.extended_requests
    )
    requests = _with_amount(pod.requests, resource, amount)
    return replace(inputs, pod=structs.replace(pod, requests=requests, extended_requests=asked))


def _with_amount(resources: Resources, name: str, amount: int) -> Resources:
    match name:
        case "cpu":
            return structs.replace(resources, milli_cpu=amount)
        case "memory":
            return structs.replace(resources, memory=amount)
        case "ephemeral-storage":
            return structs.replace(resources, ephemeral_storage=amount)
    return structs.replace(resources, scalars={**resources.scalars, name: amount})
