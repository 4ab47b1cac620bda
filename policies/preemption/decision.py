"""Results of filtering and preemption: node status, victims and whole decisions.

A decision holds everything that led to it, so :meth:`PreemptionDecision.describe` only renders it
and computes nothing again. Reasons are kube-scheduler's own phrases, word for word, because people
and tools search for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from policies.kubernetes.criteria import Order
from policies.kubernetes.snapshot import Pod
from policies.preemption.filtering.status import (
    FEASIBLE,
    FilterDecision,
    Rejection,
    describe_not_evaluated,
    explained,
    resolution_note,
)
from policies.preemption.victim_units import VictimUnit


@dataclass(frozen=True, slots=True)
class VictimSet:
    """The pods to evict on one node, most important first, and the number of PDB violations."""

    pods: tuple[Pod, ...]
    violations: int = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that fits the pod without its victims; ``spared`` are the pods that were reprieved.

    ``groups`` are the units among the victims that are of a pod group. Such a unit may have pods on
    other nodes. They are victims too, but no extender can return them. ``freed_claims`` are the
    keys of the claims of victims whose devices count as free, if the pod needs them.
    """

    node: str
    victims: VictimSet
    spared: tuple[Pod, ...] = ()
    groups: tuple[VictimUnit, ...] = ()
    freed_claims: tuple[str, ...] = ()

    @property
    def elsewhere(self) -> tuple[Pod, ...]:
        """The victims on other nodes."""
        return tuple(pod for unit in self.groups for pod in unit.away_from(self.node))


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """The second best candidate, and how it compares with the chosen one.

    ``values`` has for each criterion its name, the value of the chosen candidate and that of this
    one; the smaller value is preferred.
    """

    candidate: Candidate
    values: tuple[tuple[str, int, int], ...]


def find_runner_up(ranked: Sequence[Candidate], order: Order[Candidate]) -> RunnerUp | None:
    """Return the second of candidates that are ranked by ``order``, or None."""
    if len(ranked) < 2:
        return None
    best, second = ranked[:2]
    values = ((each.name, each.key(best), each.key(second)) for each in order.criteria)
    return RunnerUp(second, tuple(values))


@dataclass(frozen=True, slots=True)
class VictimSearch:
    """How far the cheapest victims by a criterion were searched for.

    ``cost`` is that of the chosen victims. No victims on any node that was tried cost less than
    ``bound``: if both are equal, none are cheaper. It is lower if the search ended early, or if a
    filter may refuse a node because a pod has left. ``searched`` counts the nodes that were
    searched because their bounds did not exclude cheaper victims.
    """

    criterion: str
    cost: int
    bound: int
    searched: int

    def __str__(self) -> str:
        searched = f"; nodes searched: {self.searched}" if self.searched else ""
        by = f"cheaper by {self.criterion}{searched}"
        if self.bound == self.cost:
            return f"no victims are {by}"
        return f"victims may be up to {100 - 100 * self.bound // self.cost}% {by}"


@dataclass(frozen=True, slots=True)
class PreemptionDecision:
    """Whether a pod may preempt, on which node, and with which victims.

    ``reason`` states why the pod is not eligible, or that it needs no preemption (else it is
    empty). ``rejected`` holds every node that is no candidate. ``decided_by`` names the criterion
    that separated the chosen node from the second best (None: there was no second). ``message`` is
    the text of the pod's FailedScheduling event. ``not_evaluated`` names the in-tree filters that
    need more than the snapshot shows: with any, the victims may not suffice. ``untried`` counts the
    nodes for which no time was left: with any, there may be better candidates. ``search`` is about
    the cheapest victims, if the policy asks for these. ``consequences`` are what was counted of
    what would follow, by the criterion's name and the candidate's node. ``runner_up`` is the second
    best candidate.
    """

    pod: Pod
    eligible: bool
    reason: str
    chosen: Candidate | None
    candidates: Mapping[str, Candidate] = field(default_factory=dict)
    rejected: Mapping[str, Rejection] = field(default_factory=dict)
    decided_by: str | None = None
    message: str = ""
    not_evaluated: frozenset[str] = frozenset()
    untried: int = 0
    search: VictimSearch | None = None
    consequences: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    runner_up: RunnerUp | None = None

    def describe(self) -> Iterator[str]:
        """Yield, line by line, the victims and reprieved pods of each node, and what decided."""
        yield self._outcome()
        for node in sorted(self.candidates):
            yield from _describe_candidate(self.candidates[node])
        for node, rejection in sorted(self.rejected.items()):
            yield f"  {node}: {explained(rejection)}{resolution_note(rejection)}"
        if self.search is not None:
            yield str(self.search)
        if self.untried:
            yield f"not tried before the deadline: {self.untried} node(s)"
        yield from describe_not_evaluated(self.not_evaluated)

    def _outcome(self) -> str:
        if not self.eligible:
            return f"{self.pod.key} may not preempt: {self.reason}"
        if self.reason:
            return f"{self.pod.key}: {self.reason}"
        if self.chosen is None:
            return f"{self.pod.key}: preemption is not helpful on any node"
        why = f", decided by {self.decided_by}" if self.decided_by else ", the only candidate"
        return f"{self.pod.key} preempts pods on {self.chosen.node}{why}"


def no_preemption_needed(filtering: FilterDecision) -> PreemptionDecision:
    """Return the decision for a pod that fits some node without preemption: it has no victims."""
    return PreemptionDecision(
        filtering.pod,
        eligible=True,
        reason=str(FEASIBLE),
        chosen=None,
        rejected=dict.fromkeys(filtering.feasible, FEASIBLE)
        | dict(filtering.undecided)
        | dict(filtering.rejected),
        not_evaluated=filtering.not_evaluated,
    )


def freed_devices(candidate: Candidate) -> str:
    """Return the line that names the claims of victims whose devices count as free."""
    return f"devices of victims count as free: claims {', '.join(candidate.freed_claims)}"


def _describe_candidate(candidate: Candidate) -> Iterator[str]:
    breaks = candidate.victims.violations
    yield f"  {candidate.node}: candidate" + (f", violates {breaks} budget(s)" if breaks else "")
    elsewhere = {pod.uid for pod in candidate.elsewhere}
    if elsewhere:
        yield "    no extender can confirm it: a unit of a pod group has pods on other nodes"
    for unit in candidate.groups:
        names = ", ".join(pod.key for pod in unit.pods)
        yield f"    unit      {names} (priority {unit.priority})"
    for pod in candidate.victims.pods:
        place = f" on node {pod.node_name}" if pod.uid in elsewhere else ""
        yield f"    victim    {pod.key} (priority {pod.priority}){place}"
    if candidate.freed_claims:
        yield f"    {freed_devices(candidate)}"
    for pod in candidate.spared:
        yield f"    reprieved {pod.key} (priority {pod.priority})"
