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

    def assume(self, assumed: AssumedPreemption) -> frozenset[str]:
        """Assume an answer in place of an older one for its pod; return the nodes that change."""
        older = self.withdraw(assumed.preemptor.uid)
        self._by_preemptor[assumed.preemptor.uid] = assumed
        return frozenset({assumed.node} if older is None else {assumed.node, older.node})

    def withdraw(self, preemptor: str) -> AssumedPreemption | None:
        """Drop the assumed preemption of a preemptor, by its UID; return it if there is one."""
        return self._by_preemptor.pop(preemptor, None)

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
            del self._by_preemptor[each.preemptor.uid]
        return frozenset(each.node for each in late)

    def apply(self, state: NodeState) -> NodeState:
        """Return the state of a node with its assumed preemptions applied."""
        assumed = [p for p in self._by_preemptor.values() if p.node == state.node.name]
        if not assumed:
            return state
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
        for key, each in list(self._by_preemptor.items()):
            kept = each
            if ends_nomination and key == uid and kept.nominates:
                kept = replace(kept, nominates=False)
            if ends_victim and uid in kept.victims:
                kept = replace(kept, victims=kept.victims - {uid})
            if kept is each:
                continue
            changed.add(each.node)
            if kept.is_confirmed:
                del self._by_preemptor[key]
            else:
                self._by_preemptor[key] = kept
        return frozenset(changed)


def _newly_nominated(assumed: Iterable[AssumedPreemption], present: set[str]) -> Iterable[Pod]:
    for each in assumed:
        if each.nominates and each.preemptor.uid not in present:
            yield structs.replace(each.preemptor, nominated_node=each.node, may_be_assumed=False)
