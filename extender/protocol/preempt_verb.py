"""The preempt verb: the node to preempt on, and its victims.

The answer names at most one node, so that kube-scheduler does not choose among equals at random.
There are three results:

- our own choice, among the candidates of the request or over the whole cluster;
- *deferred*: the best of kube-scheduler's own candidates, if some filters cannot be evaluated (a
  volume or devices are not allocated to the pod yet, or an object is missing, forbidden or cannot
  be decoded) or if we find no candidate (because of a rule or a state that the extender does not
  see). A note names the objects that are not known. This is never worse than without an extender;
- no node: the pod may not preempt, or no entry passes the guardrails. kube-scheduler retries
  later.

kube-scheduler offers only pods that are on the node in its own snapshot. So an offered victim that
is pending has been assumed there: it waits at Permit or in PreBind, and its eviction deletes
nothing. For this call it counts as a pod on the node. Other pending pods are never named.

Guardrails are the last check of an answer before it is sent. kube-scheduler deletes any pods that
an extender names on a node it knows; it was observed to delete a pod of the preemptor's own
priority. And one UID that it does not find makes it discard the whole answer. So every entry is
validated, whichever code computed it:

- the node is known, and every victim is on it now;
- every victim has strictly lower priority than the preemptor, and no guard of the policy protects
  it; the priority of a pod of a pod group is that of the root group, or the higher of both if it is
  not known whether kube-scheduler reads groups; a running preemptor is never a victim of itself;
- a unit of pods that preemption evicts together is named as a whole, so all of it is on the node;
- victims are ordered most important first, since kube-scheduler takes the first one's priority for
  the highest;
- there is at least one victim, unless the release accepts nodes without victims.

An invalid entry is left out, and a note has the reason.

A unit of a pod group with pods on several nodes cannot be named: a UID of another node makes
kube-scheduler discard the answer, and without it half of the unit would be evicted. So such a
candidate is no answer, whatever the policy. Nor is one on a node with a pod whose group is not
known: it may be part of such a unit, and its priority is not known either. Nor is one with a unit
of which another pod may be on a node: one that cannot be decoded, or a pending one that
kube-scheduler may have assumed. kube-scheduler knows these, so its own candidates remain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import ClassVar

from extender.protocol import extender_results, extender_v1
from extender.protocol.pod_terms import decode_pod_of_call
from extender.protocol.request_size import UNBOUNDED, RequestBounds, Steps
from extender.protocol.verb_context import CallContext, Search, VerbResult
from policies.kubernetes.criteria import Order
from policies.kubernetes.feature_gates import FeatureGate
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.counterfactuals.counterfactual import DecisionInputs
from policies.preemption.decision import Candidate, PreemptionDecision, VictimSet, find_runner_up
from policies.preemption.filtering.status import Code
from policies.preemption.policy import DEFAULT_VICTIM_ORDER, SchedulerRules, order_victims
from policies.preemption.time_limit import DeadlineExceededError, in_time
from policies.preemption.unknown_objects import unknown_objects
from policies.preemption.victim_units import VictimUnits, victim_units
from policies.preemption.victims.victim_selection import PREEMPTION_POLICY_NEVER


def guardrail_violation(
    node: str, victims: VictimSet, preemptor: Pod, units: VictimUnits, rules: SchedulerRules
) -> str | None:
    """Return why an entry violates a guardrail, or None if it is valid."""
    state = units.snapshot.nodes.get(node)
    if state is None:
        return f"node {node} is not known"
    if state.unreadable:
        return f"node {node} holds a pod that could not be read: {', '.join(state.unreadable)}"
    if not victims.pods and not rules.release.victimless_candidates:
        return f"node {node} has no victims, which release {rules.release.name} refuses"
    present = {pod.uid for pod in state.pods}
    for pod in victims.pods:
        if pod.uid not in present:
            return f"victim {pod.key} ({pod.uid}) is not on node {node}"
        if pod.uid == preemptor.uid:
            return f"victim {pod.key} is the preemptor itself"
        priority = units.priority_of(pod)
        if FeatureGate.GENERIC_WORKLOAD in rules.assumed_gates:
            priority = max(priority, pod.priority)
        highest = preemptor.priority - rules.policy.priority_gap
        if priority > highest:
            return f"victim {pod.key} has priority {priority}, not below {highest + 1}"
        guard = rules.policy.protection_of(pod, units.snapshot.now_ns)
        if guard is not None:
            return f"victim {pod.key} is {guard.explain(pod, units.snapshot.now_ns)}"
    return _unit_violation(node, victims, units)


def _unit_violation(node: str, victims: VictimSet, units: VictimUnits) -> str | None:
    """Return which unit is not whole, or that the victims are not ordered by importance."""
    named = [pod.uid for pod in victims.pods]
    whole = units.of(victims.pods)
    for unit in whole:
        for pod in unit.pods:
            if pod.uid not in named:
                return f"{pod.key} of group {unit.group} is not among the victims on node {node}"
    if named != [pod.uid for pod in order_victims(whole, DEFAULT_VICTIM_ORDER)]:
        return f"the victims on node {node} are not ordered by importance"
    return None


@dataclass(frozen=True, slots=True)
class PreemptArgs:
    """A decoded preempt call: the preemptor, and kube-scheduler's candidate victims by node."""

    ends_assumed_preemption: ClassVar[bool] = True
    pod: Pod
    candidates: Mapping[str, extender_v1.CandidateVictims]

    @property
    def names(self) -> Collection[str]:
        """The names of the candidates."""
        return self.candidates.keys()

    def decide(self, context: CallContext) -> VerbResult:
        """Return at most one node with victims, all of them verified to be on it.

        If the context has no time left, choose the best candidate found so far and add a note.
        Raise DeadlineExceededError if there is none.
        """
        context = replace(context, engine=context.engine.for_preemptor(self.pod))
        context = with_assumed_pods(self, context)
        decision = _decide_own(self, context)
        if decision.untried and decision.chosen is None:
            raise DeadlineExceededError
        notes = [
            f"node {node} was offered but is not known"
            for node in self.candidates
            if node not in context.snapshot.nodes
        ]
        if decision.untried:
            notes.append(f"{decision.untried} nodes were not tried before the deadline")
        units = victim_units(context.snapshot, context.rules.release)
        decision = _confirmable(self, context, decision, units, notes)
        refusal = context.rules.policy.refusal(self.pod, context.snapshot)
        if not decision.eligible and (refusal is not None or _is_certain(decision)):
            return _verb_result(decision, None, [*notes, decision.reason])
        if decision.not_evaluated or (self.candidates and decision.chosen is None):
            notes.append(_deferral_note(decision, context.snapshot))
            decision = _deferred(self, units, context, decision, notes)
        chosen = decision.chosen
        if chosen is not None:
            violation = guardrail_violation(
                chosen.node, chosen.victims, self.pod, units, context.rules
            )
            if violation is not None:
                return _verb_result(decision, None, [*notes, violation])
        return _verb_result(decision, chosen, notes)

    def refuse_all(self, _reason: str) -> bytes:
        """Return an answer without a node, so that no pod is preempted for now."""
        return extender_results.encode(extender_results.PreemptionResult({}))

    def pass_through(self, rules: SchedulerRules, snapshot: Snapshot) -> bytes:
        """Return an answer with the candidates of the request, without guardrails.

        Leave out a candidate with a victim without UID, one without victims if the release refuses
        these, and one with a unit of a pod group that may have pods on other nodes: each of them
        makes kube-scheduler discard the whole answer.
        """
        victims = {
            node: extender_results.meta_victims(offer.uids, offer.violations)
            for node, offer in self.candidates.items()
            if all(offer.uids)
            and (offer.uids or rules.release.victimless_candidates)
            and not (rules.release.evicts_units and _may_span_nodes(offer.uids, node, snapshot))
        }
        return extender_results.encode(extender_results.PreemptionResult(victims))


def decode(
    body: bytes, rules: SchedulerRules, bounds: RequestBounds = UNBOUNDED
) -> Steps[PreemptArgs]:
    """Decode a preempt call. Raise ExtenderDecodeError, or ObjectError for an invalid pod."""
    request = yield from extender_v1.decode_preempt(body, bounds)
    pod = decode_pod_of_call(request.pod, rules.release, rules.annotations)
    return PreemptArgs(pod, request.candidates)


def _may_span_nodes(uids: Sequence[str], node: str, snapshot: Snapshot) -> bool:
    """Return whether some of the victims of a candidate may be a unit with pods on other nodes.

    A victim that is not known is not such a pod, unless a victim on the node is of a pod group.
    """
    state = snapshot.nodes.get(node)
    present = {} if state is None else {pod.uid: pod for pod in state.pods}
    away = [uid for uid in uids if uid not in present]
    if not away or any(present[uid].group for uid in uids if uid in present):
        return bool(away)
    members = {pod.uid for pods in snapshot.group_members.values() for pod in pods}
    return not members.isdisjoint(away)


def _is_certain(decision: PreemptionDecision) -> bool:
    # Whether a pod is eligible depends on the status of all filters for its nominated node, which
    # kube-scheduler knew when it called.
    return decision.reason == PREEMPTION_POLICY_NEVER or not decision.not_evaluated


def with_assumed_pods(args: PreemptArgs, context: CallContext) -> CallContext:
    """Return the context with the offered victims that are pending on the nodes of their offers."""
    snapshot, units = context.snapshot, context.rules.release.evicts_units
    offered = chain.from_iterable(offer.uids for offer in args.candidates.values())
    if context.pending_pods.keys().isdisjoint(offered):
        return context
    assumed: dict[str, str] = {}
    for node, offer in args.candidates.items():
        if node not in snapshot.nodes:
            continue
        for uid in offer.uids:
            pod = context.pending_pods.get(uid)
            if pod is None:
                continue
            # A pod of a unit is offered with each node of the unit; its nomination has its own.
            if not (units and pod.group) or pod.nominated_node == node:
                assumed[uid] = node
    for uid, node in assumed.items():
        snapshot = snapshot.with_assumed(context.pending_pods[uid], node)
    return replace(context, snapshot=snapshot)


def decision_inputs(args: PreemptArgs, context: CallContext) -> DecisionInputs:
    """Return the inputs of the decision of a call in a context."""
    context = with_assumed_pods(args, context)
    potential, filtered = (
        None if names is None else frozenset(names) for names in _nodes(args, context.search)
    )
    return DecisionInputs(args.pod, context.snapshot, context.rules, potential, filtered)


def _nodes(
    args: PreemptArgs, search: Search
) -> tuple[Collection[str] | None, Collection[str] | None]:
    """Return the nodes to try and those to filter; None for those that the decision finds."""
    if search is Search.CLUSTER:
        return None, None
    nominated = [args.pod.nominated_node] if args.pod.nominated_node else ()
    return args.candidates.keys(), {*args.candidates, *nominated}


def _decide_own(
    args: PreemptArgs, context: CallContext, among: Collection[str] | None = None
) -> PreemptionDecision:
    """Decide on the nodes to try, or on those ``among`` them."""
    potential, filtered = _nodes(args, context.search)
    return context.engine.preempt(
        args.pod,
        context.snapshot,
        potential if among is None else among,
        filtered,
        context.has_time_left,
    )


def _confirmable(
    args: PreemptArgs,
    context: CallContext,
    decision: PreemptionDecision,
    units: VictimUnits,
    notes: list[str],
) -> PreemptionDecision:
    """Choose again while the choice cannot be returned; add to ``notes`` why it is left out.

    If the choice among the others may need another search, decide again without what cannot be
    returned. Raise DeadlineExceededError if there is no time for that.
    """
    policy = context.rules.policy
    while decision.chosen is not None and (doubt := _doubt(decision.chosen, units)) is not None:
        notes.append(f"left out: {doubt}")
        candidates = decision.candidates.values()
        sure = [each for each in candidates if _doubt(each, units) is None]
        if not policy.compares_while_searching:
            return with_best(decision, sure, policy.order_of_candidates(args.pod, units.snapshot))
        others = [each.node for each in sure]
        for name, rejection in decision.rejected.items():
            if rejection.reasons[0].code is Code.POLICY_LIMIT:
                others.append(name)
        decision = _decide_own(args, context, others)
    return decision


def _doubt(candidate: Candidate, units: VictimUnits) -> str | None:
    """Return why an own candidate cannot be returned because of pod groups, or None if it can."""
    for pod in candidate.elsewhere:
        return f"victim {pod.key} of a candidate on node {candidate.node} is on {pod.node_name}"
    for unit in candidate.groups:
        member = units.uncertain_member(unit)
        if member is not None:
            return f"{member} may belong to group {unit.group} on node {candidate.node}"
    if units.grouped:
        for pod in units.snapshot.nodes[candidate.node].pods:
            group = units.missing_group(pod)
            if group is not None:
                return f"{group} of {pod.key} on node {candidate.node} is not known"
    return None


def with_best(
    decision: PreemptionDecision, candidates: Iterable[Candidate], order: Order[Candidate]
) -> PreemptionDecision:
    """Return the decision with the best of some candidates as its choice."""
    ranked = order.sort(candidates)
    return replace(
        decision,
        chosen=ranked[0] if ranked else None,
        decided_by=order.deciding_criterion(*ranked[:2]) if len(ranked) > 1 else None,
        search=None,
        runner_up=find_runner_up(ranked, order),
    )


def _deferral_note(decision: PreemptionDecision, snapshot: Snapshot) -> str:
    unknown = ", ".join(unknown_objects(decision.pod, snapshot.storage))
    names = f"; not known: {unknown}" if unknown else ""
    if decision.not_evaluated:
        return f"deferred: not evaluated: {', '.join(sorted(decision.not_evaluated))}{names}"
    return f"deferred: no own candidate{names}"


def _deferred(
    args: PreemptArgs,
    units: VictimUnits,
    context: CallContext,
    decision: PreemptionDecision,
    notes: list[str],
) -> PreemptionDecision:
    """Choose among kube-scheduler's own candidates; add to ``notes`` why one is left out.

    Raise DeadlineExceededError.
    """
    rules = context.rules
    snapshot = rules.policy.view_of(units.snapshot)
    allowances = rules.policy.allowances(args.pod, snapshot)
    limits = rules.policy.limits(args.pod, snapshot, allowances)
    candidates: dict[str, Candidate] = {}
    for node, offer in in_time(args.candidates.items(), context.has_time_left):
        found = as_candidate(node, offer, units)
        if isinstance(found, str):
            notes.append(f"left out: {found}")
        elif violation := guardrail_violation(node, found.victims, args.pod, units, rules):
            notes.append(f"left out: {violation}")
        elif exceeded := next((each.name for each in limits if each.refuses(found)), ""):
            notes.append(f"left out: the victims on node {node} exceed {exceeded} of the policy")
        else:
            candidates[node] = found
    costly = [candidate for candidate in candidates.values() if candidate.victims.pods]
    order = rules.policy.order_of_candidates(args.pod, snapshot)
    decision = replace(decision, candidates=candidates, consequences={})
    deferred = with_best(decision, costly, order)
    if costly or not candidates:
        return deferred
    # A node without victims cannot be ranked, so it is chosen only if there is no other.
    return replace(deferred, chosen=candidates[min(candidates)])


def as_candidate(
    node: str, offered: extender_v1.CandidateVictims, units: VictimUnits
) -> Candidate | str:
    """Return the candidate with its victims found on the node, or the reason why one is not."""
    state = units.snapshot.nodes.get(node)
    if state is None:
        return f"node {node} is not known"
    present = {pod.uid: pod for pod in state.pods}
    missing = [uid for uid in offered.uids if uid not in present]
    if missing:
        return f"victim {missing[0] or '(without a UID)'} is not on node {node}"
    named = units.of(present[uid] for uid in sorted(set(offered.uids)))
    victims = order_victims(named, DEFAULT_VICTIM_ORDER)
    # A unit may be larger than what is offered of it; the guardrails refuse that.
    victims = tuple(pod for pod in victims if pod.uid in offered.uids)
    return Candidate(node, VictimSet(victims, offered.violations))


def _verb_result(
    decision: PreemptionDecision, chosen: Candidate | None, notes: list[str]
) -> VerbResult:
    def encode() -> bytes:
        return extender_results.encode(
            extender_results.PreemptionResult(dict(_result_entries(chosen)))
        )

    return VerbResult(encode, decision, chosen, tuple(notes))


def _result_entries(chosen: Candidate | None) -> Iterator[tuple[str, extender_results.MetaVictims]]:
    if chosen is not None:
        uids = (pod.uid for pod in chosen.victims.pods)
        yield chosen.node, extender_results.meta_victims(uids, chosen.victims.violations)
