"""Assumed preemptions: our own answers, counted until the watch shows their effects.

kube-scheduler acts on a preempt answer at once: it marks and deletes the victims and nominates the
preemptor. Until the watch delivers these changes, another request would be decided on an outdated
state. So each answer is stored as an :class:`AssumedPreemption` and applied to the snapshot: the
victims count as terminating, the preemptor as nominated to the node. This corresponds to AssumePod
of kube-scheduler's cache.

Each half of an assumed preemption ends when the watch confirms it, and all of it after a deadline,
since kube-scheduler need not follow the answer. It also ends with the next preempt call for its
pod. kube-scheduler makes that call only after it has finished or given up the earlier preemption,
and what it has done of it reaches the watch. Victims that are still there have not been deleted.

Only the answer to a call for a pod that the API server has, with this UID, priority and node, is
assumed, and only such a call ends an assumed preemption. Otherwise a client could reserve nodes for
pods that it has invented. A call may also overtake the watch. Its answer is not assumed later, when
the pod arrives: another call may then name the same victims until the watch shows them terminating,
as it would without assumed preemptions. To keep such answers would be to keep those for invented
pods, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from msgspec import structs

from policies.kubernetes.snapshot import NodeState, Pod
from policies.preemption.victims.victim_selection import is_terminating_by_preemption


@dataclass(frozen=True, slots=True)
class AssumedPreemption:
    """One answer: ``preemptor`` is nominated to ``node``; ``victims`` are the UIDs of its victims.

    ``nominates`` is False once the watch has shown the preemptor's nomination, node or end, and for
    a running pod.
    ``deadline`` is in seconds of the caller's monotonic clock.
    """

    preemptor: Pod
    node: str
    victims: frozenset[str]
    deadline: float
    nominates: bool = True

    @property
    def is_confirmed(self) -> bool:
        """Whether the watch has confirmed the nomination and all victims."""
        return not self.nominates and not self.victims


class AssumedPreemptions:
    """The assumed preemptions that are not confirmed yet, one for each preemptor."""

    def __init__(self) -> None:
        self._by_preemptor: dict[str, AssumedPreemption] = {}
        self._on_node: dict[str, dict[str, None]] = {}
        self._of_victim: dict[str, dict[str, None]] = {}

    def assume(self, assumed: AssumedPreemption) -> frozenset[str]:
        """Assume an answer in place of an older one for its pod; return the nodes that change."""
        preemptor = assumed.preemptor.uid
        older = self.withdraw(preemptor)
        self._by_preemptor[preemptor] = assumed
        self._on_node.setdefault(assumed.node, {})[preemptor] = None
        for victim in assumed.victims:
            self._of_victim.setdefault(victim, {})[preemptor] = None
        return frozenset({assumed.node} if older is None else {assumed.node, older.node})

    def withdraw(self, preemptor: str) -> AssumedPreemption | None:
        """Drop the assumed preemption of a preemptor, by its UID; return it if there is one."""
        assumed = self._by_preemptor.pop(preemptor, None)
        if assumed is not None:
            _discard(self._on_node, assumed.node, preemptor)
            for victim in assumed.victims:
                _discard(self._of_victim, victim, preemptor)
        return assumed

    def observe_pod(self, pod: Pod) -> frozenset[str]:
        """Record a pod from the watch; return the nodes whose assumed preemptions change."""
        # A victim that was only assumed on its node is not deleted; it is pending again.
        is_pending = pod.node_name is None and not pod.may_be_assumed
        departing = is_terminating_by_preemption(pod) or pod.finished or is_pending
        return self._confirm(
            pod.uid, ends_victim=departing, ends_nomination=self._is_nomination_confirmed(pod)
        )

    def _is_nomination_confirmed(self, pod: Pod) -> bool:
        """Return whether the watch shows more of a preemptor than was known when it was assumed."""
        assumed = self._by_preemptor.get(pod.uid)
        if assumed is None:
            return False
        known = (None, assumed.preemptor.nominated_node)
        return pod.finished or pod.node_name is not None or pod.nominated_node not in known

    def observe_deletion(self, pod: Pod) -> frozenset[str]:
        """Record the deletion of a pod; return the nodes whose assumed preemptions change."""
        return self._confirm(pod.uid, ends_victim=True, ends_nomination=True)

    def expire(self, now: float) -> frozenset[str]:
        """Drop assumed preemptions whose deadline has passed; return their nodes."""
        late = [each for each in self._by_preemptor.values() if each.deadline <= now]
        for each in late:
            self.withdraw(each.preemptor.uid)
        return frozenset(each.node for each in late)

    def apply(self, state: NodeState) -> NodeState:
        """Return the state of a node with its assumed preemptions applied."""
        preemptors = self._on_node.get(state.node.name)
        if not preemptors:
            return state
        assumed = [self._by_preemptor[each] for each in preemptors]
        victims = frozenset().union(*(each.victims for each in assumed))
        nominated = tuple(pod for pod in state.nominated if pod.uid not in victims)
        present = {pod.uid for pod in nominated}
        return structs.replace(
            state,
            pods=tuple(
                structs.replace(pod, assumed_victim=True) if pod.uid in victims else pod
                for pod in state.pods
            ),
            nominated=(*nominated, *_newly_nominated(assumed, present)),
        )

    def __len__(self) -> int:
        return len(self._by_preemptor)

    def _confirm(self, uid: str, *, ends_victim: bool, ends_nomination: bool) -> frozenset[str]:
        changed: set[str] = set()
        own = self._by_preemptor.get(uid)
        if ends_nomination and own is not None and own.nominates:
            changed.add(self._keep(replace(own, nominates=False)))
        preemptors = self._of_victim.pop(uid, {}) if ends_victim else {}
        for each in map(self._by_preemptor.__getitem__, preemptors):
            changed.add(self._keep(replace(each, victims=each.victims - {uid})))
        return frozenset(changed)

    def _keep(self, assumed: AssumedPreemption) -> str:
        """Keep what is not confirmed yet of an assumed preemption; return its node."""
        self._by_preemptor[assumed.preemptor.uid] = assumed
        if assumed.is_confirmed:
            self.withdraw(assumed.preemptor.uid)
        return assumed.node


def _discard(index: dict[str, dict[str, None]], key: str, preemptor: str) -> None:
    preemptors = index.get(key, {})
    preemptors.pop(preemptor, None)
    if not preemptors:
        index.pop(key, None)


def _newly_nominated(assumed: Iterable[AssumedPreemption], present: set[str]) -> Iterable[Pod]:
    for each in assumed:
        if each.nominates and each.preemptor.uid not in present:
            yield structs.replace(each.preemptor, nominated_node=each.node, may_be_assumed=False)
