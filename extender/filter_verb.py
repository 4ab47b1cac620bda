"""The filter verb: which of the nodes that kube-scheduler sent the pod fits.

kube-scheduler asks only about nodes that passed its own filters, and its view is ahead of the
watch. Where the two disagree, refusing a node for a pod that has left it already would make
kube-scheduler preempt a second time; so a node is refused only if the pod fits it neither with the
departing pods there nor without them, and a node that was sent as an object is taken as sent. The
pods on nodes that were not sent count as well: they attract, repel and are spread. What stands
behind volumes and device claims changes in the very moment that makes kube-scheduler ask (a claim
was bound, a volume detached), so its word is taken there. Every refused node is named with its
reason: one that is only dropped has no status, and preemption would skip it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import msgspec

from extender import wire
from extender.kube.decoding import Unreadable, tolerant
from extender.kube.objects import decode_node
from extender.kube.pods import decode_pod
from extender.verdict import Answer, Situation
from policies import decide_filter
from policies.decision import Code, FilterDecision, Rejection, refused, unresolvable
from policies.filtering import STORAGE_FILTERS
from policies.model import Node, NodeState, Pod, Snapshot
from policies.reference import Rules

_NOT_KNOWN = refused(Code.UNKNOWN_NODE)
_read_node = tolerant("Node", decode_node)


@dataclass(frozen=True, slots=True)
class SentNode:
    """A node as kube-scheduler sent it: the bytes to send back, and what could be read of them."""

    raw: msgspec.Raw
    node: Node | Unreadable

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name


@dataclass(frozen=True, slots=True)
class FilterArgs:
    """A decoded filter call; ``sent`` is None if the nodes came by name."""

    pod: Pod
    names: tuple[str, ...]
    sent: tuple[SentNode, ...] | None


def decode(body: bytes, rules: Rules) -> FilterArgs:
    """Read a filter call. Raises WireError, or ObjectError if the pod cannot be read."""
    request = wire.decode_filter(body)
    pod = decode_pod(request.pod, rules.release)
    if request.names is not None:
        return FilterArgs(pod, request.names, None)
    sent = tuple(SentNode(raw, _read_node(raw)) for raw in request.nodes or ())
    return FilterArgs(pod, tuple(node.name for node in sent), sent)


def answer(args: FilterArgs, situation: Situation) -> Answer:
    """Decide, and name the nodes that fit and why each other one does not."""
    states, failed = _as_sent(args, situation.snapshot)
    seen = replace(situation.snapshot, nodes={**situation.snapshot.nodes, **states})
    decision = _most_lenient(args.pod, seen, _without_storage(situation.rules), states)
    decision = replace(decision, rejected={**decision.rejected, **failed})
    return Answer(wire.encode(_result(args, decision)), decision)


def _as_sent(
    args: FilterArgs, snapshot: Snapshot
) -> tuple[dict[str, NodeState], dict[str, Rejection]]:
    """Give the state of each node asked about, and those that cannot be judged with the reason."""
    objects = {sent.name: sent.node for sent in args.sent or ()}
    states: dict[str, NodeState] = {}
    failed: dict[str, Rejection] = {}
    for name in args.names:
        state, sent = snapshot.nodes.get(name), objects.get(name)
        if isinstance(sent, Unreadable):
            failed[name] = unresolvable(Code.UNREADABLE_NODE, sent.problem)
        elif state is None:
            failed[name] = _NOT_KNOWN
        else:
            states[name] = state if sent is None else replace(state, node=sent)
    return states, failed


def _without_storage(rules: Rules) -> Rules:
    filters = tuple(each for each in rules.filters if each.name not in STORAGE_FILTERS)
    return replace(rules, filters=filters)


def _most_lenient(
    pod: Pod, snapshot: Snapshot, rules: Rules, among: Collection[str]
) -> FilterDecision:
    """Judge as if the departing pods had left; where that refuses, also as if they stayed.

    A departing pod may take room or repel, but it may also be the one that attracts.
    """
    left = _without_departing(snapshot, _concerned(pod, snapshot, among))
    gone = decide_filter(pod, left, rules, among)
    if left is snapshot or not gone.rejected:
        return gone
    there = frozenset(decide_filter(pod, snapshot, rules, gone.rejected).feasible)
    return replace(
        gone,
        feasible=tuple(name for name in among if name not in gone.rejected or name in there),
        rejected={name: why for name, why in gone.rejected.items() if name not in there},
    )


def _concerned(pod: Pod, snapshot: Snapshot, among: Collection[str]) -> Collection[str]:
    """Name the nodes whose departing pods can matter: elsewhere, only anti-affinity heeds them."""
    return snapshot.nodes if pod.anti_affinity or snapshot.repelling else among


def _without_departing(snapshot: Snapshot, names: Collection[str]) -> Snapshot:
    departing = {
        name: [pod for pod in snapshot.nodes[name].pods if pod.departing] for name in names
    }
    left = {name: snapshot.nodes[name].without(pods) for name, pods in departing.items() if pods}
    if not left:
        return snapshot
    gone = {pod.uid for pods in departing.values() for pod in pods}
    repelling = tuple(pod for pod in snapshot.repelling if pod.uid not in gone)
    return replace(snapshot, nodes={**snapshot.nodes, **left}, repelling=repelling)


def _result(args: FilterArgs, decision: FilterDecision) -> wire.FilterResult:
    fits = frozenset(decision.feasible)
    by_name = args.sent is None
    items = [sent.raw for sent in args.sent or () if sent.name in fits]
    return wire.FilterResult(
        Nodes=None if by_name else wire.NodeList({}, items),
        NodeNames=list(decision.feasible) if by_name else None,
        FailedNodes=dict(_texts(decision, resolvable=True)),
        FailedAndUnresolvableNodes=dict(_texts(decision, resolvable=False)),
    )


def _texts(decision: FilterDecision, *, resolvable: bool) -> Iterator[tuple[str, str]]:
    for name, rejection in decision.rejected.items():
        if rejection.resolvable is resolvable:
            yield name, str(rejection)
