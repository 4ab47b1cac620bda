"""What the extender knows before the watch does: the promises that its own answers have made.

kube-scheduler acts on a preempt answer at once: it marks and deletes the victims and nominates the
preemptor. Until the watch brings these changes back, a second request would be decided on a state
that no longer holds. So each answer is remembered as a :class:`Promise` and laid over the snapshot:
the victims count as promised to terminate, the preemptor as nominated to the node.

Each half of a promise ends when the watch shows it, and all of it after a deadline, since nothing
guarantees that kube-scheduler followed the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from policies.model import NodeState, Pod
from policies.preemption import terminating_by_preemption


@dataclass(frozen=True, slots=True)
class Promise:
    """One answer: ``preemptor`` to ``node``, at the cost of the pods with these UIDs.

    ``nominates`` is False once the watch has shown where the preemptor went. ``deadline`` is in
    seconds of the clock that the caller uses.
    """

    preemptor: Pod
    node: str
    victims: frozenset[str]
    deadline: float
    nominates: bool = True

    @property
    def is_kept(self) -> bool:
        """Whether the watch has shown all of it."""
        return not self.nominates and not self.victims


class Overlay:
    """The promises that still hold, one for each preemptor."""

    def __init__(self) -> None:
        self._promises: dict[str, Promise] = {}

    def promise(self, promise: Promise) -> frozenset[str]:
        """Remember an answer in place of an older one for its pod; give the nodes it changes."""
        older = self._promises.get(promise.preemptor.uid)
        self._promises[promise.preemptor.uid] = promise
        return frozenset({promise.node} if older is None else {promise.node, older.node})

    def saw(self, pod: Pod) -> frozenset[str]:
        """Take note of a pod as the watch shows it; give the nodes whose promises changed."""
        departing = terminating_by_preemption(pod) or pod.finished
        return self._settle(pod.uid, ends_victim=departing, ends_nomination=self._has_moved_on(pod))

    def _has_moved_on(self, pod: Pod) -> bool:
        """Return whether the watch shows of a preemptor more than was known when it was promised."""
        promise = self._promises.get(pod.uid)
        if promise is None:
            return False
        known = (None, promise.preemptor.nominated_node)
        return pod.finished or pod.node_name is not None or pod.nominated_node not in known

    def lost(self, pod: Pod) -> frozenset[str]:
        """Take note that a pod is gone; give the nodes whose promises changed."""
        return self._settle(pod.uid, ends_victim=True, ends_nomination=True)

    def expire(self, now: float) -> frozenset[str]:
        """Drop promises whose deadline has passed; give the nodes they were about."""
        late = [promise for promise in self._promises.values() if promise.deadline <= now]
        for promise in late:
            del self._promises[promise.preemptor.uid]
        return frozenset(promise.node for promise in late)

    def over(self, state: NodeState) -> NodeState:
        """Lay the promises that concern a node over its state."""
        promises = [p for p in self._promises.values() if p.node == state.node.name]
        if not promises:
            return state
        leaving = frozenset().union(*(promise.victims for promise in promises))
        present = {pod.uid for pod in state.nominated}
        return replace(
            state,
            pods=tuple(
                replace(pod, promised=True) if pod.uid in leaving else pod for pod in state.pods
            ),
            nominated=(*state.nominated, *_newly_nominated(promises, present)),
        )

    def __len__(self) -> int:
        return len(self._promises)

    def _settle(self, uid: str, *, ends_victim: bool, ends_nomination: bool) -> frozenset[str]:
        changed: set[str] = set()
        for key, promise in list(self._promises.items()):
            kept = promise
            if ends_nomination and key == uid and kept.nominates:
                kept = replace(kept, nominates=False)
            if ends_victim and uid in kept.victims:
                kept = replace(kept, victims=kept.victims - {uid})
            if kept is promise:
                continue
            changed.add(promise.node)
            if kept.is_kept:
                del self._promises[key]
            else:
                self._promises[key] = kept
        return frozenset(changed)


def _newly_nominated(promises: Iterable[Promise], present: set[str]) -> Iterable[Pod]:
    for promise in promises:
        if promise.nominates and promise.preemptor.uid not in present:
            yield replace(promise.preemptor, nominated_node=promise.node)
