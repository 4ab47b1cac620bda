"""What kube-scheduler chooses itself if an extender passes its calls through.

kube-scheduler ranks the candidates that it has found by its own criteria
(pickOneNodeForPreemption in pkg/scheduler/framework/preemption/preemption.go), so its choice
follows from the call. Among equal ones it chooses at random, and here the first by name is taken.
Candidates without victims, which only wait for other extenders, are dropped, as it drops them.
"""

from __future__ import annotations

from dataclasses import replace

from extender.protocol.preempt_verb import (
    PreemptArgs,
    as_candidate,
    with_assumed_pods,
    with_best,
)
from extender.protocol.verb_context import CallContext, VerbResult
from extender.protocol.verbs import DecodedCall
from policies.preemption.decision import Candidate, PreemptionDecision
from policies.preemption.filtering.status import FilterDecision
from policies.preemption.policy import DEFAULT_CANDIDATE_ORDER
from policies.preemption.victim_units import victim_units


def own_choice(call: DecodedCall, context: CallContext) -> VerbResult:
    """Return the choice of kube-scheduler, and the answer that leaves it to kube-scheduler.

    All nodes of a filter call fit. A candidate with a victim that is not known is left out with a
    note: kube-scheduler may choose it.
    """

    def encode() -> bytes:
        return call.pass_through(context.rules, context.snapshot)

    if not isinstance(call, PreemptArgs):
        return VerbResult(encode, FilterDecision(call.pod, tuple(call.names), {}))
    units = victim_units(with_assumed_pods(call, context).snapshot, context.rules.release)
    candidates: dict[str, Candidate] = {}
    notes: list[str] = []
    for node, offer in call.candidates.items():
        found = as_candidate(node, offer, units)
        if isinstance(found, str):
            notes.append(f"left out: {found}")
        elif found.victims.pods:
            candidates[node] = found
    decision = PreemptionDecision(
        call.pod, eligible=True, reason="", chosen=None, candidates=candidates
    )
    decision = with_best(decision, candidates.values(), DEFAULT_CANDIDATE_ORDER)
    return VerbResult(encode, decision, decision.chosen, tuple(notes))


def settled(call: PreemptArgs, context: CallContext) -> CallContext:
    """Return the context of a call as it is now, so that it can be decided in it again later."""
    return replace(with_assumed_pods(call, context), pending_pods={})
