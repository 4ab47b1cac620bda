"""Small clusters that one kube-scheduler works on at the same time, and the result of each.

Each case has nodes of its own, which only its pods select, so that the cases do not depend on each
other. Yet kube-scheduler sees one cluster: it tries each preemption of a pod group with all pods of
lower priority removed, those of other cases included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from tests.builders import Document, manifest
from tests.conformance.objects import NAMESPACE
from tests.conformance.scheduling.environment import Environment
from tests.conformance.scheduling.pods import bound_pod, budget, pending_pod, small_node

BASIC: Final = 0
"""The minimum of a group without one: its policy is ``basic``."""
GUARDED: Final = "guarded"
"""The label of pods whose disruption budget is used up."""
NEVER: Final[Document] = {"priorityClassName": "never"}
"""The field of pods of priority 100 that do not preempt."""
NODE: Final = "node"
"""The label of nodes with their short name."""
ZONE: Final = "zone"
"""The label of nodes with the first letter of that name; each case has a label of its own.

Other cases would be placements of its groups. If the first placement fails for a node selector,
kube-scheduler 1.37 does not try a group again when pods are deleted.
"""
_CASE: Final = "case"


@dataclass(frozen=True, slots=True)
class Group:
    """A PodGroup or CompositePodGroup; ``minimum`` counts pods or groups, ``spec`` adds fields.

    Its pods run in one domain of ``topology``, if not "".
    """

    name: str
    priority: int = 100
    minimum: int = BASIC
    mode: str = "single"
    parent: str = ""
    kind: str = "PodGroup"
    topology: str = ""
    spec: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that runs on node ``on``, or is created once the others are there.

    ``node`` is the only node that it may run on, if not "", and ``spec`` adds fields.
    """

    name: str
    on: str = ""
    cpu: str = "1"
    priority: int = 10
    group: str = ""
    node: str = ""
    label: str = ""
    spec: Mapping[str, Any] = field(default_factory=dict)


class Outcome(NamedTuple):
    """The names of the evicted pods, and the number of those that wait without a nomination."""

    evicted: tuple[str, ...]
    waiting: int


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster, and the result: which pods are evicted, how many wait; all others are bound.

    ``nodes`` maps names to their cores. ``alone`` is the result of a kube-scheduler without an
    extender, if it is another one.
    """

    name: str
    nodes: Mapping[str, int]
    pods: Sequence[Pod]
    groups: Sequence[Group] = ()
    evicted: tuple[str, ...] = ()
    waiting: int = 0
    alone: Outcome | None = None

    def expected(self) -> Outcome:
        """Return the result with the extender."""
        return Outcome(self.evicted, self.waiting)

    def expected_alone(self) -> Outcome:
        """Return the result without it."""
        return self.alone or self.expected()


def running(name: str, on: Sequence[str], group: str = "", **fields: Any) -> list[Pod]:
    """Return a pod for each of the nodes ``on``; a string is a sequence of letters."""
    return [Pod(f"{name}-{n}", node, group=group, **fields) for n, node in enumerate(on)]


def arriving(count: int, group: str = "new", priority: int = 100, **fields: Any) -> list[Pod]:
    """Return pods to be created, members of a group unless it is ""."""
    return [Pod(f"new-{n}", priority=priority, group=group, **fields) for n in range(count)]


async def play(env: Environment, cases: Sequence[tuple[Case, Outcome]]) -> None:
    """Create the clusters of cases, remove what is evicted, and compare the results."""
    named = [(f"c{number}", case) for number, (case, _) in enumerate(cases)]
    name = NEVER["priorityClassName"]
    await env.load(manifest("PriorityClass", name, value=100, preemptionPolicy="Never"))
    expected = {case.name: outcome for case, outcome in cases}
    await env.load(*(each for one in named for each in _existing(*one)))
    for one in named:
        await env.load(*_arriving_pods(*one))
        await env.load(*_arriving_groups(*one))

    def outcomes() -> dict[str, Outcome]:
        return {case.name: _outcome(env, prefix, case) for prefix, case in named}

    with suppress(TimeoutError):
        while outcomes() != expected or env.terminating():
            await env.cluster.until(lambda: bool(env.terminating()) or outcomes() == expected)
            await _remove_terminating(env)
    found = outcomes()
    differing = {
        name: (found[name], want) for name, want in expected.items() if found[name] != want
    }
    assert not differing, differing
    evicted = [f"{prefix}-{pod}" for prefix, case in named for pod in expected[case.name].evicted]
    assert env.deleted() == sorted(evicted), env.deleted()


async def _remove_terminating(env: Environment) -> None:
    leaving = set(env.terminating())
    await env.remove_terminating()
    await env.cluster.until(lambda: leaving.isdisjoint(env.terminating()))


def _outcome(env: Environment, prefix: str, case: Case) -> Outcome:
    there = {pod["metadata"]["name"] for pod in env.cluster.all("Pod")} - set(env.terminating())
    gone = (pod.name for pod in case.pods if f"{prefix}-{pod.name}" not in there)
    new = [f"{prefix}-{pod.name}" for pod in case.pods if not pod.on]
    unbound = [pod for pod in new if not env.node_of(pod)]
    waits = [p for p in unbound if env.unschedulable_message(p) and not env.nomination_of(p)]
    return Outcome(tuple(sorted(gone)), len(waits) if waits == unbound else -1)


def _existing(prefix: str, case: Case) -> list[Document]:
    later = _groups_of_arriving_pods(case)
    return [
        *(_node(prefix, name, cores) for name, cores in case.nodes.items()),
        *(_group(prefix, group) for group in case.groups if group not in later),
        budget(prefix, 0, {_CASE: prefix, GUARDED: "true"}),
        *(_pod(prefix, pod) for pod in case.pods if pod.on),
    ]


def _arriving_pods(prefix: str, case: Case) -> list[Document]:
    return [_pod(prefix, pod) for pod in case.pods if not pod.on]


def _arriving_groups(prefix: str, case: Case) -> list[Document]:
    """Return the groups of arriving pods: after them, kube-scheduler sees all members at once."""
    return [_group(prefix, group) for group in _groups_of_arriving_pods(case)]


def _groups_of_arriving_pods(case: Case) -> list[Group]:
    names = {pod.group for pod in case.pods if not pod.on}
    return [group for group in case.groups if group.name in names]


def _node(prefix: str, name: str, cores: int) -> Document:
    node = small_node(f"{prefix}-{name}", str(cores))
    node["metadata"]["labels"] |= {_CASE: prefix, NODE: name, f"{prefix}-{ZONE}": name[0]}
    return node


def _group(prefix: str, group: Group) -> Document:
    least = "minGroupCount" if group.kind == "CompositePodGroup" else "minCount"
    spec: Document = {
        "schedulingPolicy": {"gang": {least: group.minimum}} if group.minimum else {"basic": {}},
        "disruptionMode": {group.mode: {}},
        "priorityClassName": f"p{group.priority}",
        "priority": group.priority,
        **group.spec,
    }
    if group.parent:
        spec["parentCompositePodGroupName"] = f"{prefix}-{group.parent}"
    if group.parent or group.kind == "CompositePodGroup":
        spec["workloadRef"] = {"workloadName": prefix, "templateName": "t"}
    if group.topology:
        spec["schedulingConstraints"] = {"topology": [{"key": f"{prefix}-{group.topology}"}]}
    return manifest(group.kind, f"{prefix}-{group.name}", namespace=NAMESPACE, spec=spec)


def _pod(prefix: str, pod: Pod) -> Document:
    name = f"{prefix}-{pod.name}"
    labels = {_CASE: prefix, **({pod.label: "true"} if pod.label else {})}
    if pod.on:
        made = bound_pod(name, f"{prefix}-{pod.on}", pod.cpu, pod.priority)
    else:
        made = pending_pod(name, pod.cpu, pod.priority)
        pinned = {NODE: pod.node} if pod.node else {}
        made["spec"]["nodeSelector"] = {_CASE: prefix, **pinned}
    made["metadata"]["labels"] = labels
    made["spec"] |= pod.spec
    if pod.group:
        made["spec"]["schedulingGroup"] = {"podGroupName": f"{prefix}-{pod.group}"}
    return made
