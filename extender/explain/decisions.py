"""Documents of the filter, preempt and scale-down decisions that ``reprieve explain`` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NotRequired, TypedDict

from extender.terminal.criterion_values import shown_criteria, value_of
from policies import decide_filter, post_filter
from policies.kubernetes.input_error import InputError
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.decision import Candidate, PreemptionDecision, no_preemption_needed
from policies.preemption.explanation import (
    PreemptionExplanation,
    ProtectedPod,
    explain_decision,
)
from policies.preemption.filtering.status import FEASIBLE, FilterDecision, Rejection
from policies.preemption.policy import SchedulerRules
from policies.replicaset import ScaleDownDecision


class UnknownNodeError(InputError, ValueError):
    """A node is not in the cluster; the text names the node and the source of the cluster."""


class RejectionDocument(TypedDict):
    """Why a node is rejected; ``detail`` names the claim, volume or device request that fails."""

    reason: str
    resolvable: bool
    detail: NotRequired[str]


class VictimDocument(TypedDict):
    """A pod that is evicted."""

    namespace: str
    name: str
    uid: str
    priority: int


class SparedDocument(VictimDocument):
    """A pod that could be evicted and is reprieved."""

    because: str


class ProtectedDocument(VictimDocument):
    """A pod that could be evicted if no rule of the policy protected it."""

    node: str
    because: str


class UnitDocument(TypedDict):
    """Pods of a pod group that are evicted together; a pod is written ``namespace/name``."""

    pods: list[str]
    priority: int


class CandidateDocument(TypedDict):
    """The victims of one node.

    ``units`` are those of pod groups. ``confirmable`` is false, and present, if one of them has
    pods on other nodes, so that no extender can return the candidate. ``freedClaims`` are the
    claims of victims whose devices count as free. ``violatedPDBs`` are the keys of the budgets that
    the victims violate, and ``spared`` are the reprieved pods; each is present if there are any.
    ``criteria`` has the values of the policy's own criteria, in their units.
    """

    victims: list[VictimDocument]
    numPDBViolations: int
    violatedPDBs: NotRequired[list[str]]
    spared: NotRequired[list[SparedDocument]]
    units: NotRequired[list[UnitDocument]]
    confirmable: NotRequired[bool]
    criteria: NotRequired[dict[str, int]]
    freedClaims: NotRequired[list[str]]


class FilterDocument(TypedDict):
    """The output of ``explain filter -o json``.

    ``undecided`` are those of the feasible nodes that could not be evaluated, with the reason; it
    is present if there are any.
    """

    feasible: list[str]
    undecided: NotRequired[dict[str, str]]
    rejected: dict[str, RejectionDocument]
    unjudged: list[str]


class SearchDocument(TypedDict):
    """The search for the cheapest victims; see VictimSearch."""

    by: str
    cost: int
    bound: int
    nodesSearched: int


class PreemptDocument(TypedDict):
    """The output of ``explain preempt -o json``.

    ``spared`` and ``units`` are those of the chosen node. ``feasible`` are the nodes that fit the
    pod without preemption. ``protected`` are the pods that the policy protects on the nodes that
    were tried; it is present if there are any. ``search`` is present if the policy asks for the
    cheapest victims.
    """

    eligible: bool
    reason: str
    node: str | None
    victims: list[VictimDocument]
    numPDBViolations: int
    decidedBy: str | None
    candidates: dict[str, CandidateDocument]
    rejected: dict[str, RejectionDocument]
    message: str
    unjudged: list[str]
    feasible: list[str]
    spared: list[SparedDocument]
    units: list[UnitDocument]
    protected: NotRequired[list[ProtectedDocument]]
    search: NotRequired[SearchDocument]


class PrecedenceDocument(TypedDict):
    """The criterion that ranks a pod directly before another."""

    pod: str
    ahead_of: str
    criterion: str


class ScaleDownDocument(TypedDict):
    """The output of ``explain scaledown -o json``."""

    delete: list[str]
    order: list[str]
    because: list[PrecedenceDocument]


def explain_preempt(
    pod: Pod, snapshot: Snapshot, rules: SchedulerRules, potential: Sequence[str] | None
) -> PreemptionExplanation:
    """Decide a preemption as kube-scheduler does: only if the pod fits no node.

    With ``potential`` nodes given, decide among these in any case. A bound pod is not eligible.
    """
    if pod.node_name:
        reason = f"the pod is bound to node {pod.node_name}"
        decision = PreemptionDecision(pod, eligible=False, reason=reason, chosen=None)
        return PreemptionExplanation(decision)
    filtering = decide_filter(pod, snapshot, rules)
    if potential is None and filtering.feasible:
        return PreemptionExplanation(no_preemption_needed(filtering))
    decision = post_filter(filtering, snapshot, rules, potential)
    return explain_decision(decision, snapshot, rules, potential)


def require_known_nodes(names: Sequence[str], snapshot: Snapshot, source: str) -> Sequence[str]:
    """Return ``names`` if all are nodes of the snapshot; ``source`` is its origin.

    Raise UnknownNodeError.
    """
    unknown = next((name for name in names if name not in snapshot.nodes), None)
    if unknown is not None:
        raise UnknownNodeError(f"--nodes: no node {unknown!r} in {source}")
    return names


def filter_document(decision: FilterDecision) -> FilterDocument:
    """Return the JSON document of a filter decision."""
    document: FilterDocument = {
        "feasible": sorted(decision.feasible),
        "rejected": _rejection_documents(decision.rejected),
        "unjudged": sorted(decision.not_evaluated),
    }
    undecided = {node: str(each) for node, each in sorted(decision.undecided.items())}
    if undecided:
        document["undecided"] = undecided
    return document


def preempt_document(explanation: PreemptionExplanation) -> PreemptDocument:
    """Return the JSON document of a preemption decision."""
    decision = explanation.decision
    candidates = {
        node: _candidate_document(candidate, explanation)
        for node, candidate in sorted(decision.candidates.items())
    }
    best = decision.chosen
    chosen = None if best is None else candidates[best.node]
    feasible = [node for node, each in decision.rejected.items() if each == FEASIBLE]
    rejected = {node: each for node, each in decision.rejected.items() if each != FEASIBLE}
    document: PreemptDocument = {
        "eligible": decision.eligible,
        "reason": decision.reason,
        "node": None if decision.chosen is None else decision.chosen.node,
        "victims": [] if chosen is None else chosen["victims"],
        "numPDBViolations": 0 if chosen is None else chosen["numPDBViolations"],
        "decidedBy": decision.decided_by,
        "candidates": candidates,
        "rejected": _rejection_documents(rejected),
        "message": decision.message,
        "unjudged": sorted(decision.not_evaluated),
        "feasible": sorted(feasible),
        "spared": [] if chosen is None else chosen.get("spared", []),
        "units": [] if best is None else _unit_documents(best),
    }
    if decision.search is not None:
        document["search"] = {
            "by": decision.search.criterion,
            "cost": decision.search.cost,
            "bound": decision.search.bound,
            "nodesSearched": decision.search.searched,
        }
    if explanation.protected:
        document["protected"] = [_protected_document(each) for each in explanation.protected]
    return document


def victim_names(explanation: PreemptionExplanation) -> Iterator[str]:
    """Yield the victims of the chosen node as ``pod/NAME``, as kubectl does."""
    chosen = explanation.decision.chosen
    if chosen is not None:
        yield from (f"pod/{pod.name}" for pod in chosen.victims.pods)


def scale_down_document(decision: ScaleDownDecision) -> ScaleDownDocument:
    """Return the JSON document of a scale-down decision."""
    return {
        "delete": [replica.name for replica in decision.victims],
        "order": [replica.name for replica in decision.order],
        "because": [
            {"pod": each.replica.name, "ahead_of": each.ahead_of.name, "criterion": each.criterion}
            for each in decision.explanations
        ],
    }


def _candidate_document(
    candidate: Candidate, explanation: PreemptionExplanation
) -> CandidateDocument:
    document: CandidateDocument = {
        "victims": [_victim_document(pod) for pod in candidate.victims.pods],
        "numPDBViolations": candidate.victims.violations,
    }
    if candidate.node in explanation.violated:
        document["violatedPDBs"] = list(explanation.violated[candidate.node])
    if candidate.spared:
        document["spared"] = _spared_documents(explanation.decision.pod, candidate)
    if candidate.groups:
        document["units"] = _unit_documents(candidate)
    if candidate.elsewhere:
        document["confirmable"] = False
    if candidate.freed_claims:
        document["freedClaims"] = list(candidate.freed_claims)
    values = {
        each.name: value
        for each in shown_criteria(explanation.order)
        if (value := value_of(each, candidate)) is not None
    }
    if values:
        document["criteria"] = values
    return document


def _victim_document(pod: Pod) -> VictimDocument:
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "priority": pod.priority,
    }


def _spared_documents(preemptor: Pod, candidate: Candidate) -> list[SparedDocument]:
    because = f"{preemptor.key} fits {candidate.node} without its eviction"
    return [{**_victim_document(pod), "because": because} for pod in candidate.spared]


def _protected_document(protected: ProtectedPod) -> ProtectedDocument:
    return {
        **_victim_document(protected.pod),
        "node": protected.pod.node_name or "",
        "because": protected.because,
    }


def _unit_documents(candidate: Candidate) -> list[UnitDocument]:
    return [
        {"pods": [pod.key for pod in unit.pods], "priority": unit.priority}
        for unit in candidate.groups
    ]


def _rejection_documents(rejected: Mapping[str, Rejection]) -> dict[str, RejectionDocument]:
    return {node: _rejection_document(each) for node, each in sorted(rejected.items())}


def _rejection_document(rejection: Rejection) -> RejectionDocument:
    document: RejectionDocument = {"reason": str(rejection), "resolvable": rejection.resolvable}
    return {**document, "detail": rejection.causes} if rejection.causes else document
