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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import msgspec
from msgspec import structs

from extender.kube.decoders.cluster_objects import decode_node
from extender.kube.decoders.typed_decoder import Unreadable, tolerant_decoder
from extender.protocol import extender_results, extender_v1
from extender.protocol.pod_terms import decode_pod_of_call
from extender.protocol.request_size import UNBOUNDED, RequestBounds, Steps
from extender.protocol.verb_context import CallContext, VerbResult
from extender.terminal.log_limits import shortened
from policies.kubernetes.snapshot import Node, NodeState, Pod, Snapshot
from policies.preemption.filtering.status import (
    Code,
    CountedRejections,
    FilterDecision,
    Rejection,
    refused,
    unresolvable,
)
from policies.preemption.policy import SchedulerRules
from policies.preemption.reference_engine import filter_with_terminating_pods
from policies.preemption.time_limit import in_time

_UNKNOWN_NODE = refused(Code.UNKNOWN_NODE)
_MAX_REASONS: Final = 20
_COST_OF_NODE: Final = 2**9
_COST_OF_STEP: Final = 2**17
"""The costs of decoding a node of any size and of one step, in bytes that cost as much."""

_read_node = tolerant_decoder("Node", decode_node)


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
    """A decoded filter call; ``sent`` is None if the nodes are given by name."""

    ends_assumed_preemption: ClassVar[bool] = False
    pod: Pod
    names: Sequence[str]
    sent: tuple[SentNode, ...] | None

    def decide(self, context: CallContext) -> VerbResult:
        """Return the feasible nodes, and the reason for each other one.

        Raise DeadlineExceededError if the context has no time left: a partial result is of no use.
        """
        # The volume and device filters pass a pod without volumes and claims.
        pod = self.pod if self.pod.storage is None else structs.replace(self.pod, storage=None)
        snapshot, engine = context.snapshot, context.engine
        if self.sent is None:
            decision = engine.filter_with_terminating_pods(
                pod, snapshot, self.names, context.has_time_left
            )
            failed = _unknown_nodes(self.names, decision, snapshot)
        else:
            sent = in_time(self.sent, context.has_time_left)
            states, failed = _sent_node_states(sent, snapshot)
            updated = replace(snapshot, nodes={**snapshot.nodes, **states})
            decision = filter_with_terminating_pods(
                pod, updated, context.rules, states, context.has_time_left
            )
        if failed:
            decision = replace(decision, rejected={**decision.rejected, **failed})
        return VerbResult(lambda: extender_results.encode(_filter_result(self, decision)), decision)

    def refuse_all(self, reason: str) -> bytes:
        """Return an answer that rejects every node resolvably, so that preemption goes on."""
        by_name = self.sent is None
        result = extender_results.FilterResult(
            Nodes=None if by_name else extender_results.RawNodeList({}, []),
            NodeNames=() if by_name else None,
            FailedNodes=dict.fromkeys(self.names, reason),
            FailedAndUnresolvableNodes={},
        )
        return extender_results.encode(result)

    def pass_through(self, _rules: SchedulerRules, _snapshot: Snapshot) -> bytes:
        """Return an answer that passes every node of the request through, as it was sent."""
        if self.sent is None:
            nodes, names = None, extender_results.encodable_names(self.names)
        else:
            nodes, names = extender_results.RawNodeList({}, [sent.raw for sent in self.sent]), None
        return extender_results.encode(extender_results.FilterResult(nodes, names, {}, {}))


def decode(
    body: bytes, rules: SchedulerRules, bounds: RequestBounds = UNBOUNDED
) -> Steps[FilterArgs]:
    """Decode a filter call. Raise ExtenderDecodeError, or ObjectError for an invalid pod."""
    request = yield from extender_v1.decode_filter(body, bounds)
    pod = decode_pod_of_call(request.pod, rules.release)
    if request.names is not None:
        return FilterArgs(pod, request.names, None)
    sent = yield from _sent_nodes(request.nodes or ())
    return FilterArgs(pod, tuple(node.name for node in sent), sent)


def _sent_nodes(nodes: Iterable[msgspec.Raw]) -> Steps[tuple[SentNode, ...]]:
    sent: list[SentNode] = []
    cost = 0
    for raw in nodes:
        sent.append(SentNode(raw, _read_node(raw)))
        cost += len(memoryview(raw)) + _COST_OF_NODE
        if cost > _COST_OF_STEP:
            cost = 0
            yield
    return tuple(sent)


def _unknown_nodes(
    names: Sequence[str], decision: FilterDecision, snapshot: Snapshot
) -> dict[str, Rejection]:
    """Return a rejection for each name of the request that no node has."""
    if len(decision.feasible) + len(decision.rejected) == len(names):
        return {}
    return {name: _UNKNOWN_NODE for name in names if name not in snapshot.nodes}


def _sent_node_states(
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
            failed[sent.name] = _UNKNOWN_NODE
        else:
            states[sent.name] = structs.replace(state, node=sent.node)
    return states, failed


def _filter_result(args: FilterArgs, decision: FilterDecision) -> extender_results.FilterResult:
    by_name = args.sent is None
    fits = frozenset[str]() if by_name else frozenset(decision.feasible)
    items = [sent.raw for sent in args.sent or () if sent.name in fits]
    resolvable, others = _rejection_messages(decision)
    return extender_results.FilterResult(
        Nodes=None if by_name else extender_results.RawNodeList({}, items),
        NodeNames=extender_results.encodable_names(decision.feasible) if by_name else None,
        FailedNodes=resolvable,
        FailedAndUnresolvableNodes=others,
    )


def _rejection_messages(decision: FilterDecision) -> tuple[dict[str, str], dict[str, str]]:
    """Return the messages of the nodes that evictions may make fit, and of the others."""
    resolvable: dict[str, str] = {}
    others: dict[str, str] = {}
    for rejection, names in _nodes_by_rejection(decision.rejected):
        messages = resolvable if rejection.resolvable else others
        messages |= dict.fromkeys(names, _message(rejection))
    return resolvable, others


def _nodes_by_rejection(
    rejected: Mapping[str, Rejection],
) -> Iterable[tuple[Rejection, Sequence[str]]]:
    if isinstance(rejected, CountedRejections):
        return rejected.by_rejection()
    return ((rejection, (name,)) for name, rejection in rejected.items())


def _message(rejection: Rejection) -> str:
    """Return the reasons of one node; not all of a pod with thousands of resources."""
    rest = len(rejection.reasons) - _MAX_REASONS
    if rest > 0:
        rejection = replace(rejection, reasons=rejection.reasons[:_MAX_REASONS])
    message = shortened(str(rejection))
    return f"{message}, and {rest} more" if rest > 0 else message
