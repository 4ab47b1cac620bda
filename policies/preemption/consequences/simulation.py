"""A cluster after a preemption, and the decisions of the engine at hand about it.

The pods that are preempted leave, the preemptor is placed, and the controllers of the victims
create replacements. A replacement goes to the node with the most free CPU of those that it fits:
kube-scheduler's scores, which are not simulated, prefer free nodes as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from msgspec import structs

from policies.kubernetes.shared_mapping import with_entries
from policies.kubernetes.snapshot import NodeState, Pod, Snapshot
from policies.preemption.decision import Candidate, PreemptionDecision
from policies.preemption.time_limit import DeadlineExceededError


@dataclass(frozen=True, slots=True)
class SimulatedCluster:
    """A snapshot after simulated changes; ``changed`` has the nodes that they changed."""

    original: Snapshot
    snapshot: Snapshot
    changed: Mapping[str, NodeState]

    def evicting(self, pods: Iterable[Pod]) -> SimulatedCluster:
        """Return the cluster without some bound pods. Disruption budgets stay as they are."""
        by_node: dict[str, list[Pod]] = {}
        for pod in pods:
            by_node.setdefault(pod.node_name or "", []).append(pod)
        nodes, found = self.snapshot.nodes, self.snapshot
        changed = {
            name: nodes[name].without_pods(leaving)
            for name, leaving in by_node.items()
            if name in nodes
        }
        uids = {pod.uid for leaving in by_node.values() for pod in leaving}
        members = found.group_members
        if any(pod.group for leaving in by_node.values() for pod in leaving):
            members = {key: _without(each, uids) for key, each in members.items()}
        repelling = _without(found.pods_with_anti_affinity, uids)
        return self._with(
            replace(found, pods_with_anti_affinity=repelling, group_members=members), changed
        )

    def placing(self, pod: Pod, node: str) -> SimulatedCluster:
        """Return the cluster with a pending pod on a known node."""
        nodes = self.snapshot.nodes
        touched = {node, pod.nominated_node or node} & nodes.keys()
        few = replace(self.snapshot, nodes={name: nodes[name] for name in touched})
        placed = few.with_assumed(pod, node)
        return self._with(placed, placed.nodes)

    def after(self, preemptor: Pod, candidate: Candidate) -> SimulatedCluster:
        """Return the cluster after a preemption.

        A pod whose in-place resize is deferred is on the node already, with its desired resources.
        """
        evicted = self.evicting(candidate.victims.pods)
        return evicted if preemptor.resize_deferred else evicted.placing(preemptor, candidate.node)

    def _with(self, snapshot: Snapshot, changed: Mapping[str, NodeState]) -> SimulatedCluster:
        nodes = with_entries(self.snapshot.nodes, changed)
        changed = {**self.changed, **changed}
        return SimulatedCluster(self.original, replace(snapshot, nodes=nodes), changed)


def unchanged(snapshot: Snapshot) -> SimulatedCluster:
    """Return the cluster before any simulated change."""
    return SimulatedCluster(snapshot, snapshot, {})


@dataclass(frozen=True, slots=True)
class Simulation:
    """The preemptor of a decision, its cluster, and the decisions of the engine at hand.

    ``find_node`` returns the node for a pod by ``by_free_cpu``, or None if it fits nowhere.
    ``decide`` returns the decision of the policy for a pod, without criteria over consequences,
    whose simulations would not end. Both raise DeadlineExceededError.
    """

    preemptor: Pod
    cluster: SimulatedCluster
    find_node: Callable[[Pod, SimulatedCluster], str | None]
    decide: Callable[[Pod, SimulatedCluster], PreemptionDecision]

    def choose(self, pod: Pod, cluster: SimulatedCluster) -> Candidate | None:
        """Return the choice of the policy for a pod, or None.

        Raise DeadlineExceededError also if nodes are left untried: the choice could be another.
        """
        decision = self.decide(pod, cluster)
        if decision.untried:
            raise DeadlineExceededError
        return decision.chosen


def by_free_cpu(names: Iterable[str], nodes: Mapping[str, NodeState]) -> list[str]:
    """Return the names of some nodes, that with the most free CPU first, then by name."""

    def key(name: str) -> tuple[int, str]:
        state = nodes[name]
        return state.requested.milli_cpu - state.node.allocatable.milli_cpu, name

    return sorted(names, key=key)


def replacements(victims: Iterable[Pod]) -> Iterator[Pod]:
    """Yield the pods that controllers create for some victims, in the same order.

    A pod without a controller does not come back. A replacement has the specification of its
    victim, volumes and device claims included, and has waited for as long as any guard demands. Its
    UID is another one, so that what was announced for the victim does not count.
    """
    for victim in victims:
        if victim.owner is not None:
            yield structs.replace(
                victim,
                uid=f"{victim.uid}-replacement",
                node_name=None,
                nominated_node=None,
                started_ns=None,
                terminating=False,
                preempted=False,
                assumed_victim=False,
                may_be_assumed=False,
                resize_deferred=False,
                ready=False,
                restarts=0,
                preempted_ns=0,
                waiting_since_ns=0,
            )


def _without(pods: Iterable[Pod], uids: set[str]) -> tuple[Pod, ...]:
    return tuple([pod for pod in pods if pod.uid not in uids])
