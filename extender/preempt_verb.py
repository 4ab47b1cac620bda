"""The preempt verb: which node, and who goes.

The answer names one node, so that kube-scheduler has nothing left to choose by chance. Three
outcomes:

- our own choice, over the nodes that were offered or over the whole cluster;
- *deferred*: the best of kube-scheduler's own candidates, where we cannot judge (a volume or
  devices have yet to be found for the pod) or find nothing ourselves (a rule or a state that we
  cannot see). This is never worse than without an extender;
- nothing: the pod may not preempt, or no entry passes the guard rails. kube-scheduler tries again
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
    """A decoded preempt call: the preemptor and what kube-scheduler would do, by node."""

    pod: Pod
    offers: Mapping[str, wire.Offer]


def decode(body: bytes, rules: Rules) -> PreemptArgs:
    """Read a preempt call. Raises WireError, or ObjectError if the pod cannot be read."""
    request = wire.decode_preempt(body)
    return PreemptArgs(decode_pod(request.pod, rules.release), request.offers)


def answer(args: PreemptArgs, situation: Situation) -> Answer:
    """Decide, and name at most one node with victims that were verified on it.

    Where the situation's patience ends, the best candidate found so far is chosen, and a note says
    so. Raises OutOfTimeError if none was.
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
    """Name no node: nobody is preempted for now."""
    return wire.encode(wire.PreemptionResult({}))


def echo(args: PreemptArgs, rules: Rules) -> bytes:
    """Return the offers back, as far as a release takes them; no guard looks at them.

    A victim without a UID, and a node without victims where these are errors, would void all.
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
    # Whether a pod waits depends on what all filters say of its nominated node; kube-scheduler knew
    # that when it asked.
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
    """Choose among kube-scheduler's own candidates; ``notes`` gets why any is left out."""
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
    # A node without victims has nothing to be ranked by: passed on only if there is no other.
    fallback = candidates[min(candidates)] if candidates else None
    return replace(
        decision,
        chosen=ranked[0] if ranked else fallback,
        candidates=candidates,
        decided_by=order.separating(*ranked[:2]) if len(ranked) > 1 else None,
    )


def _as_candidate(node: str, offer: wire.Offer, snapshot: Snapshot) -> Candidate | str:
    """Find the offered victims on the node, or say which is not there."""
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
