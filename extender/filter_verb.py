"""The filter verb: which nodes of the request the pod fits.

kube-scheduler sends only nodes that passed its own filters, and its cache is ahead of our watch. If
the two disagree, rejecting a node because of a pod that has left it already would make
kube-scheduler preempt a second time. So a node is rejected only if the pod fits it neither with the
terminating pods nor without them, and a node that was sent as an object is used as sent. Pods on
nodes that were not sent count as well, for inter-pod affinity and topology spread. Objects behind
volumes and device claims change at the very time of the call (a claim is bound, a volume detached),
so kube-scheduler's result is accepted for these. Every rejected node is returned with its reason:
kube-scheduler has no status for a node that is only dropped, and preemption would skip it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from extender import wire
from extender.kube.decoding import Unreadable, tolerant
from extender.kube.objects import decode_node
from extender.kube.pods import decode_pod
from extender.verdict import Answer, Situation
from policies.decision import Code, FilterDecision, Rejection, refused, unresolvable
from policies.model import Node, NodeState, Pod, Snapshot
from policies.reference import filter_leniently
from policies.rules import Rules

_NOT_KNOWN = refused(Code.UNKNOWN_NODE)
_read_node = tolerant("Node", decode_node)


@dataclass(frozen=True, slots=True)
class SentNode:
    """A node of the request: its bytes, which are sent back, and the decoded node."""

    raw: msgspec.Raw
    node: Node | Unreadable

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name


@dataclass(frozen=True, slots=True)
class FilterArgs:
    """A decoded filter call; ``sent`` is None if the nodes are given by name.

    ``raw_names`` is the JSON of the names, ready to be sent back.
    """

    pod: Pod
    names: Sequence[str]
    sent: tuple[SentNode, ...] | None
    written: msgspec.Raw | None = None


def decode(body: bytes, rules: Rules) -> FilterArgs:
    """Decode a filter call. Raise ExtenderDecodeError, or ObjectError for an invalid pod."""
    request = wire.decode_filter(body)
    pod = decode_pod(request.pod, rules.release)
    if request.names is not None:
        return FilterArgs(pod, request.names, None, request.written)
    sent = tuple(SentNode(raw, _read_node(raw)) for raw in request.nodes or ())
    return FilterArgs(pod, tuple(node.name for node in sent), sent)


def answer(args: FilterArgs, situation: Situation) -> Answer:
    """Return the feasible nodes, and the reason for each other one.

    Raise OutOfTimeError if the context has no time left: a partial result is of no use.
    """
    # The volume and device filters pass a pod without volumes and claims.
    pod = args.pod if args.pod.storage is None else replace(args.pod, storage=None)
    snapshot, engine = situation.snapshot, situation.engine
    if args.sent is None:
        decision = engine.filter_leniently(pod, snapshot, args.names, situation.patience)
        failed = _unknown(args.names, decision, snapshot)
    else:
        states, failed = _as_sent(args.sent, snapshot)
        seen = replace(snapshot, nodes={**snapshot.nodes, **states})
        decision = filter_leniently(pod, seen, situation.rules, states, situation.patience)
    if failed:
        decision = replace(decision, rejected={**decision.rejected, **failed})
    return Answer(lambda: wire.encode(_result(args, decision)), decision)


def veto(args: FilterArgs, why: str) -> bytes:
    """Return an answer that rejects every node resolvably, so that preemption and retries go on."""
    by_name = args.sent is None
    result = wire.FilterResult(
        Nodes=None if by_name else wire.NodeList({}, []),
        NodeNames=() if by_name else None,
        FailedNodes=dict.fromkeys(args.names, why),
        FailedAndUnresolvableNodes={},
    )
    return wire.encode(result)


def echo(args: FilterArgs) -> bytes:
    """Return an answer that passes every node of the request through, as it was sent."""
    names = None if args.sent is not None else args.written or tuple(args.names)
    nodes = None if args.sent is None else wire.NodeList({}, [sent.raw for sent in args.sent])
    return wire.encode(wire.FilterResult(nodes, names, {}, {}))


def _unknown(
    names: Sequence[str], decision: FilterDecision, snapshot: Snapshot
) -> dict[str, Rejection]:
    """Return a rejection for each name of the request that no node has."""
    if len(decision.feasible) + len(decision.rejected) == len(names):
        return {}
    return {name: _NOT_KNOWN for name in names if name not in snapshot.nodes}


def _as_sent(
    nodes: Iterable[SentNode], snapshot: Snapshot
) -> tuple[dict[str, NodeState], dict[str, Rejection]]:
    """Return the state of each node that was sent, and a rejection of each that is not usable.

    The state has the node as it was sent, with the pods that the cache has on it.
    """
    states: dict[str, NodeState] = {}
    failed: dict[str, Rejection] = {}
    for sent in nodes:
        state = snapshot.nodes.get(sent.name)
        if isinstance(sent.node, Unreadable):
            failed[sent.name] = unresolvable(Code.UNREADABLE_NODE, sent.node.problem)
        elif state is None:
            failed[sent.name] = _NOT_KNOWN
        else:
            states[sent.name] = replace(state, node=sent.node)
    return states, failed


def _result(args: FilterArgs, decision: FilterDecision) -> wire.FilterResult:
    by_name = args.sent is None
    fits = frozenset[str]() if by_name else frozenset(decision.feasible)
    items = [sent.raw for sent in args.sent or () if sent.name in fits]
    return wire.FilterResult(
        Nodes=None if by_name else wire.NodeList({}, items),
        NodeNames=_names(args, decision) if by_name else None,
        FailedNodes=dict(_texts(decision, resolvable=True)),
        FailedAndUnresolvableNodes=dict(_texts(decision, resolvable=False)),
    )


def _names(args: FilterArgs, decision: FilterDecision) -> Sequence[str] | msgspec.Raw:
    if args.written is not None and decision.feasible is args.names:
        return args.written
    return tuple(decision.feasible)


def _texts(decision: FilterDecision, *, resolvable: bool) -> Iterator[tuple[str, str]]:
    for name, rejection in decision.rejected.items():
        if rejection.resolvable is resolvable:
            yield name, str(rejection)
