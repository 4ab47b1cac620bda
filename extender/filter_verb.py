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
    """A node as kube-scheduler sent it: the bytes to send back, and what could be read of them."""

    raw: msgspec.Raw
    node: Node | Unreadable

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name


@dataclass(frozen=True, slots=True)
class FilterArgs:
    """A decoded filter call; ``sent`` is None if the nodes came by name.

    ``written`` are the names as they were sent, ready to be sent back.
    """

    pod: Pod
    names: Sequence[str]
    sent: tuple[SentNode, ...] | None
    written: msgspec.Raw | None = None


def decode(body: bytes, rules: Rules) -> FilterArgs:
    """Read a filter call. Raises WireError, or ObjectError if the pod cannot be read."""
    request = wire.decode_filter(body)
    pod = decode_pod(request.pod, rules.release)
    if request.names is not None:
        return FilterArgs(pod, request.names, None, request.written)
    sent = tuple(SentNode(raw, _read_node(raw)) for raw in request.nodes or ())
    return FilterArgs(pod, tuple(node.name for node in sent), sent)


def answer(args: FilterArgs, situation: Situation) -> Answer:
    """Decide, and name the nodes that fit and why each other one does not.

    Raises OutOfTimeError if the situation's patience ends: half a filtering says nothing.
    """
    # Without its volumes and devices, no filter asks about them.
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
    """Refuse every node for now: resolvably, so that preemption and retries go on."""
    by_name = args.sent is None
    result = wire.FilterResult(
        Nodes=None if by_name else wire.NodeList({}, []),
        NodeNames=() if by_name else None,
        FailedNodes=dict.fromkeys(args.names, why),
        FailedAndUnresolvableNodes={},
    )
    return wire.encode(result)


def echo(args: FilterArgs) -> bytes:
    """Let every node pass that was asked about, as it was sent."""
    names = None if args.sent is not None else args.written or tuple(args.names)
    nodes = None if args.sent is None else wire.NodeList({}, [sent.raw for sent in args.sent])
    return wire.encode(wire.FilterResult(nodes, names, {}, {}))


def _unknown(
    names: Sequence[str], decision: FilterDecision, snapshot: Snapshot
) -> dict[str, Rejection]:
    """Return the names that were asked about and that no node has."""
    if len(decision.feasible) + len(decision.rejected) == len(names):
        return {}
    return {name: _NOT_KNOWN for name in names if name not in snapshot.nodes}


def _as_sent(
    nodes: Iterable[SentNode], snapshot: Snapshot
) -> tuple[dict[str, NodeState], dict[str, Rejection]]:
    """Return the state of each node that was sent, and those that cannot be judged with the reason.

    A node is taken as it was sent, with the pods that are known to be there.
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
