"""A decision that is reproduced from its inputs, and decided anew on changed ones.

The reference engine verifies an outcome on few nodes. A decision compares the candidates of all
nodes, and only those on the nodes of the victim's unit can have the victim. So if the best of these
and of the node chosen instead is without the victim, so is the best of all. The engine of the
search alone finds that, before the change, no other node has a better candidate.

For a policy that compares candidates while it searches (:attr:`Policy.compares_while_searching`)
the reference engine decides on all nodes, which takes seconds in a cluster of thousands of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from policies.kubernetes.snapshot import Pod
from policies.preemption.counterfactuals.counterfactual import DecisionInputs, Outcome
from policies.preemption.decision import PreemptionDecision
from policies.preemption.engine import Engine
from policies.preemption.filtering.status import FilterDecision
from policies.preemption.policy import Policy, SchedulerRules
from policies.preemption.reference_engine import filter_nodes, post_filter
from policies.preemption.time_limit import DeadlineExceededError, HasTimeLeft
from policies.preemption.victim_units import victim_units

MakeEngine: TypeAlias = Callable[[SchedulerRules], Engine]


class IrreproducibleDecisionError(ValueError):
    """The inputs do not lead to a decision with the victim."""


class NewDecision(NamedTuple):
    """A decision on changed inputs, and its outcome."""

    decision: PreemptionDecision
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class ReproducedDecision:
    """The decision that follows from ``inputs``, with the victim.

    ``filtering`` came before it. Methods that decide raise DeadlineExceededError if
    ``has_time_left`` returns false before they have a result.
    """

    inputs: DecisionInputs
    victim: Pod
    decision: PreemptionDecision
    filtering: FilterDecision
    engine: Engine
    make_engine: MakeEngine
    has_time_left: HasTimeLeft

    @property
    def policy(self) -> Policy:
        """The policy that applies to the preemptor."""
        return self.inputs.rules.for_preemptor(self.inputs.pod).policy

    def spared_by(self, changed: DecisionInputs) -> Outcome | None:
        """Return the outcome of changed inputs if it spares the victim, or None."""
        outcome = self.decide(changed).outcome
        return outcome if outcome.spares(self.victim.uid) else None

    def decide(self, changed: DecisionInputs) -> NewDecision:
        """Return the decision of the engine, or that of a new engine if the rules have changed."""
        same = changed.rules is self.inputs.rules
        engine = self.engine if same else self.make_engine(changed.rules)
        filtering, decision = decide(changed, engine, self.has_time_left)
        fitting = self._newly_fitting(filtering)
        return NewDecision(decision, Outcome(fitting, None if fitting else decision.chosen))

    def verifies(self, changed: DecisionInputs, outcome: Outcome) -> bool:
        """Return whether the reference engine has the same outcome of changed inputs."""
        pod, snapshot, rules = changed.pod, changed.snapshot, changed.rules
        filtering = filter_nodes(pod, snapshot, rules, changed.among, self.has_time_left)
        fitting = self._newly_fitting(filtering)
        if fitting:
            return outcome == Outcome(fitting, None)
        potential = self._potential(filtering, changed, outcome)
        decision = post_filter(filtering, snapshot, rules, potential, self.has_time_left)
        require_time(self.has_time_left)
        return outcome == Outcome("", decision.chosen)

    def _newly_fitting(self, filtering: FilterDecision) -> str:
        return min(set(filtering.feasible).difference(self.filtering.feasible), default="")

    def _potential(
        self, filtering: FilterDecision, changed: DecisionInputs, outcome: Outcome
    ) -> Collection[str] | None:
        """Return the nodes on which the outcome is verified; see the module."""
        if changed.rules.for_preemptor(changed.pod).policy.compares_while_searching:
            return changed.potential
        unit = victim_units(changed.snapshot, changed.rules.release).unit_of(self.victim)
        names = {pod.node_name or "" for pod in unit.pods}
        if outcome.chosen is not None:
            names.add(outcome.chosen.node)
        if changed.potential is not None:
            return names & changed.potential
        rejected = filtering.rejected
        return {name for name in names if name in rejected and rejected[name].resolvable}


def reproduce(
    victim_uid: str, inputs: DecisionInputs, make_engine: MakeEngine, has_time_left: HasTimeLeft
) -> ReproducedDecision:
    """Return the decision that follows from ``inputs``, in which a pod is a victim.

    Raise IrreproducibleDecisionError if it is none, DeadlineExceededError if ``has_time_left``
    returns false before the decision.
    """
    engine = make_engine(inputs.rules)
    engine.follow(inputs.snapshot)
    filtering, decision = decide(inputs, engine, has_time_left)
    victims = () if decision.chosen is None else decision.chosen.victims.pods
    victim = next((pod for pod in victims if pod.uid == victim_uid), None)
    if victim is None:
        raise IrreproducibleDecisionError(_irreproducible(victim_uid, decision))
    found = ReproducedDecision(
        inputs, victim, decision, filtering, engine, make_engine, has_time_left
    )
    if not found.verifies(inputs, Outcome("", decision.chosen)):
        raise IrreproducibleDecisionError(
            f"decision about {inputs.pod.key}: the reference engine does not decide as the engine "
            "of the search; expected the same candidate of both"
        )
    return found


def decide(
    inputs: DecisionInputs, engine: Engine, has_time_left: HasTimeLeft
) -> tuple[FilterDecision, PreemptionDecision]:
    """Return what filtering and preemption decide about ``inputs``.

    Raise DeadlineExceededError if ``has_time_left`` returns false meanwhile.
    """
    pod, snapshot = inputs.pod, inputs.snapshot
    filtering = engine.filter_nodes(pod, snapshot, inputs.among, has_time_left)
    decision = engine.preempt(pod, snapshot, inputs.potential, inputs.among, has_time_left)
    require_time(has_time_left)
    return filtering, decision


def require_time(has_time_left: HasTimeLeft) -> None:
    """Raise DeadlineExceededError if no time is left: a decision may be cut short."""
    if not has_time_left():
        raise DeadlineExceededError


def _irreproducible(uid: str, decision: PreemptionDecision) -> str:
    what = f"decision about {decision.pod.key}: pod with UID {uid} is no victim"
    if decision.chosen is None:
        return f"{what}; expected one of the victims, and there are none"
    victims = ", ".join(f"{pod.key} (UID {pod.uid})" for pod in decision.chosen.victims.pods)
    return f"{what} on {decision.chosen.node}; expected one of {victims}"
