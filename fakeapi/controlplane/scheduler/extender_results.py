"""Checks of extenders' responses, as kube-scheduler makes them after decoding.

    filter    a name that was not sent                        error (names only; objects are
                                                              accepted as they are)
              neither names nor objects                       no node is feasible
              a node in both maps of reasons                  the unresolvable one counts
              a node left out without a reason                has no status: preemption skips it
    preempt   an unknown node                                 error
              a UID that is on another node, or on none       error
              victims of any priority, any known node         accepted
              a node without victims                          error; if ignorable, left out
              the same in 1.38, if it was sent without any    passed on

Pure. Source: pkg/scheduler/extender.go, findNodesThatPassExtenders in schedule_one.go, and
callExtenders in framework/preemption/preemption.go.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from fakeapi.controlplane.scheduler.extender_v1 import (
    DecodedFilterResult,
    DecodedMetaVictims,
    ExtenderResponseError,
)
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.decision import VictimSet
from policies.preemption.filtering.status import Code, Rejection, refused, unresolvable


@dataclass(frozen=True, slots=True)
class FilteredNodes:
    """The remaining nodes, the statuses of the others, and notes on oddities."""

    left: tuple[str, ...]
    statuses: Mapping[str, Rejection]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExtenderVictims:
    """The victims by node in an extender's response, and notes on oddities."""

    by_node: Mapping[str, VictimSet]
    notes: tuple[str, ...] = ()


def check_filter(
    answer: DecodedFilterResult, sent: Sequence[str], prefix: str, *, cached: bool
) -> FilteredNodes:
    """Return the remaining nodes; ``cached`` is nodeCacheCapable.

    Raises ExtenderResponseError.
    """
    if answer.error:
        raise ExtenderResponseError(answer.error)
    sent_names = frozenset(sent)
    if cached and answer.names is not None:
        left = answer.names
        for name in left:
            if name not in sent_names:
                raise ExtenderResponseError(
                    f'extender "{prefix}" claims a filtered node "{name}" which is not found in '
                    "the input node list"
                )
    else:
        left = answer.nodes or ()
    lost = {
        name: unresolvable(Code.BY_EXTENDER, reason) for name, reason in answer.unresolvable.items()
    }
    others = {name: refused(Code.BY_EXTENDER, reason) for name, reason in answer.failed.items()}
    return FilteredNodes(left, {**others, **lost}, tuple(_filter_notes(answer, sent, left)))


def _filter_notes(
    answer: DecodedFilterResult, sent: Sequence[str], left: Sequence[str]
) -> list[str]:
    kept = frozenset(left)
    rejected = frozenset(answer.failed) | frozenset(answer.unresolvable)
    dropped = [name for name in sent if name not in kept and name not in rejected]
    foreign = sorted((kept | rejected) - frozenset(sent))
    both = sorted(frozenset(answer.failed) & frozenset(answer.unresolvable))
    contrary = sorted(kept & rejected)
    twice = sorted({name for name in left if left.count(name) > 1}) if len(kept) < len(left) else []
    remarks = {
        "left out without a reason, so preemption skips": dropped,
        "not among the nodes sent": foreign,
        "failed and unresolvable; the latter counts": both,
        "kept, and refused": contrary,
        "named more than once": twice,
    }
    return [f"{what}: {', '.join(names)}" for what, names in remarks.items() if names]


def find_victims(
    answer: Mapping[str, DecodedMetaVictims], preemptor: Pod, snapshot: Snapshot, prefix: str
) -> ExtenderVictims:
    """Return the pods with the UIDs in the response. Raises ExtenderResponseError."""
    found: dict[str, VictimSet] = {}
    notes: list[str] = []
    for node, rejected in answer.items():
        state = snapshot.nodes.get(node)
        if state is None:
            raise ExtenderResponseError(f'nodeinfo not found for node name "{node}"')
        present = {pod.uid: pod for pod in state.pods}
        for uid in rejected.uids:
            if uid not in present:
                raise ExtenderResponseError(
                    f"extender: {prefix} claims to preempt pod (UID: &{{{uid}}}) on node: {node}, "
                    "but the pod is not found on that node"
                )
        pods = tuple(present[uid] for uid in rejected.uids)
        found[node] = VictimSet(pods, rejected.violations)
        notes += _victim_notes(node, pods, preemptor)
    return ExtenderVictims(found, tuple(notes))


def _victim_notes(node: str, pods: Sequence[Pod], preemptor: Pod) -> list[str]:
    notes = [
        f"victim {pod.key} on node {node} has priority {pod.priority}, not below the preemptor's "
        f"{preemptor.priority}; kube-scheduler deletes it all the same"
        for pod in pods
        if pod.priority >= preemptor.priority
    ]
    if any(pod.priority > pods[0].priority for pod in pods):
        notes.append(
            f"the first victim on node {node} is not the most important; kube-scheduler takes its "
            "priority for the highest"
        )
    return notes


def check_victims(
    found: ExtenderVictims,
    sent: Mapping[str, VictimSet],
    passed_on: Collection[str],
    *,
    ignorable: bool,
) -> ExtenderVictims:
    """Reject or drop nodes without victims. Raises ExtenderResponseError.

    ``passed_on`` are the nodes that were sent without victims, and may be returned so.
    """
    kept: dict[str, VictimSet] = {}
    notes = list(found.notes)
    for node, victims in found.by_node.items():
        if victims.pods or node in passed_on:
            kept[node] = victims
        elif ignorable:
            notes.append(f"node {node} is dropped, since it has no victims")
        else:
            raise ExtenderResponseError(f'expected at least one victim pod on node "{node}"')
    beyond = [node for node in kept if node not in sent]
    notes += [f"node {node} was not offered; kube-scheduler takes it" for node in beyond]
    return ExtenderVictims(kept, tuple(notes))
