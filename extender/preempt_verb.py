"""The preempt verb: the node to preempt on, and its victims.

The answer names at most one node, so that kube-scheduler does not choose among equals at random.
There are three results:

- our own choice, among the candidates of the request or over the whole cluster;
- *deferred*: the best of kube-scheduler's own candidates, if some filters cannot be evaluated (a
  volume or devices are not allocated to the pod yet) or if we find no candidate (because of a rule
  or a state that the extender does not see). This is never worse than without an extender;
- no node: the pod may not preempt, or no entry passes the guardrails. kube-scheduler retries
  later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from extender import wire
from extender.guardrails import objection
from extender.kube.pods import decode_pod
from extender.verdict import Answer, Search, Situation
from policies.decision import Candidate, PreemptionDecision, VictimSet
from policies.model import Pod, Snapshot
from policies.patience import OutOfTimeError
from policies.policy import IMPORTANCE
from policies.preemption import NEVER
from policies.rules import Rules


@dataclass(frozen=True, slots=True)
class PreemptArgs:
    """A decoded preempt call: the preemptor, and kube-scheduler's candidate victims by node."""

    pod: Pod
    offers: Mapping[str, wire.Offer]


def decode(body: bytes, rules: Rules) -> PreemptArgs:
    """Decode a preempt call. Raise ExtenderDecodeError, or ObjectError for an invalid pod."""
    request = wire.decode_preempt(body)
    return PreemptArgs(decode_pod(request.pod, rules.release), request.offers)


def answer(args: PreemptArgs, situation: Situation) -> Answer:
    """Return at most one node with victims, all of them verified to be on it.

    If the context has no time left, choose the best candidate found so far and add a note. Raise
    OutOfTimeError if there is none.
    """
    decision = _own_choice(args, situation)
    if decision.untried and decision.chosen is None:
        raise OutOfTimeError
    notes = [
        f"node {node} was offered but is not known"
        for node in args.offers
        if node not in situation.snapshot.nodes
    ]
    if decision.untried:
        notes.append(f"{decision.untried} nodes were not tried, as time was up")
    if not decision.eligible and _is_certain(decision):
        return _answer(decision, None, [*notes, decision.reason])
    if decision.unjudged or (args.offers and decision.chosen is None):
        notes.append(_why_deferred(decision))
        decision = _deferred(args, situation, decision, notes)
    chosen = decision.chosen
    refusal = None if chosen is None else _objection(chosen, args.pod, situation)
    if refusal is not None:
        return _answer(decision, None, [*notes, refusal])
    return _answer(decision, chosen, notes)


def veto() -> bytes:
    """Return an answer without a node, so that no pod is preempted for now."""
    return wire.encode(wire.PreemptionResult({}))


def echo(args: PreemptArgs, rules: Rules) -> bytes:
    """Return an answer with the candidates of the request, without guardrails.

    Leave out a candidate with a victim without UID, and one without victims if the release refuses
    these: either makes kube-scheduler discard the whole answer.
    """
    return wire.encode(
        wire.PreemptionResult(
            {
                node: wire.meta_victims(offer.uids, offer.violations)
                for node, offer in args.offers.items()
                if all(offer.uids) and (offer.uids or rules.release.victimless_candidates)
            }
        )
    )


def _is_certain(decision: PreemptionDecision) -> bool:
    # Whether a pod is eligible depends on the status of all filters for its nominated node, which
    # kube-scheduler knew when it called.
    return decision.reason == NEVER or not decision.unjudged


def _own_choice(args: PreemptArgs, situation: Situation) -> PreemptionDecision:
    pod, snapshot, engine = args.pod, situation.snapshot, situation.engine
    if situation.search is Search.CLUSTER:
        return engine.preempt(pod, snapshot, patience=situation.patience)
    concerned = {*args.offers, *([pod.nominated_node] if pod.nominated_node else ())}
    return engine.preempt(pod, snapshot, args.offers.keys(), concerned, situation.patience)


def _why_deferred(decision: PreemptionDecision) -> str:
    if decision.unjudged:
        return f"deferred: not judged here: {', '.join(sorted(decision.unjudged))}"
    return "deferred: no candidate of our own"


def _deferred(
    args: PreemptArgs, situation: Situation, decision: PreemptionDecision, notes: list[str]
) -> PreemptionDecision:
    """Choose among kube-scheduler's own candidates; add to ``notes`` why one is left out."""
    candidates: dict[str, Candidate] = {}
    for node, offer in args.offers.items():
        found = _as_candidate(node, offer, situation.snapshot)
        refusal = found if isinstance(found, str) else _objection(found, args.pod, situation)
        if refusal is None and isinstance(found, Candidate):
            candidates[node] = found
        else:
            notes.append(f"left out: {refusal}")
    costly = [candidate for candidate in candidates.values() if candidate.victims.pods]
    order = situation.rules.policy.candidates
    ranked = order.sort(costly)
    # A node without victims cannot be ranked, so it is chosen only if there is no other.
    fallback = candidates[min(candidates)] if candidates else None
    return replace(
        decision,
        chosen=ranked[0] if ranked else fallback,
        candidates=candidates,
        decided_by=order.separating(*ranked[:2]) if len(ranked) > 1 else None,
    )


def _as_candidate(node: str, offer: wire.Offer, snapshot: Snapshot) -> Candidate | str:
    """Return the candidate with its victims found on the node, or the reason why one is not."""
    state = snapshot.nodes.get(node)
    if state is None:
        return f"node {node} is not known"
    present = {pod.uid: pod for pod in state.pods}
    missing = [uid for uid in offer.uids if uid not in present]
    if missing:
        return f"victim {missing[0] or '(without a UID)'} is not on node {node}"
    victims = IMPORTANCE.sort(present[uid] for uid in set(offer.uids))
    return Candidate(node, VictimSet(tuple(victims), offer.violations))


def _objection(candidate: Candidate, preemptor: Pod, situation: Situation) -> str | None:
    rules = situation.rules
    return objection(
        candidate.node,
        candidate.victims,
        preemptor,
        situation.snapshot,
        rules.release,
        rules.policy,
    )


def _answer(decision: PreemptionDecision, chosen: Candidate | None, notes: list[str]) -> Answer:
    def encode() -> bytes:
        return wire.encode(wire.PreemptionResult(dict(_entries(chosen))))

    return Answer(encode, decision, chosen, tuple(notes))


def _entries(chosen: Candidate | None) -> Iterator[tuple[str, wire.MetaVictims]]:
    if chosen is not None:
        uids = (pod.uid for pod in chosen.victims.pods)
        yield chosen.node, wire.meta_victims(uids, chosen.victims.violations)
