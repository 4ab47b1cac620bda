"""Recent preemptions, for the guards that limit them in a time.

They are derived from the cluster, so that replicas agree and a restart forgets nothing that the API
still shows: kube-scheduler marks a victim with a DisruptionTarget condition. The condition does not
name the preemptor. That is the pod of our own answer, or else a pod that is nominated to the
victim's node and has a higher priority. Our own answers count at once, and until a deadline if the
watch does not show that kube-scheduler follows them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from policies.kubernetes.snapshot import PastPreemption, Pod

MOST: Final = 10_000
"""The maximum number of preemptions that are kept; the oldest ones are dropped."""

KEPT_NS: Final = 24 * 3600 * 10**9
"""A day: for so long preemptions are kept."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A preemption; ``expires_ns`` is None once the watch has confirmed it."""

    preemption: PastPreemption
    expires_ns: int | None


class PreemptionHistory:
    """The preemptions of the last ``kept_ns`` nanoseconds, by the UID of the victim."""

    def __init__(self, kept_ns: int = KEPT_NS, most: int = MOST) -> None:
        self._kept_ns = kept_ns
        self._most = most
        self._by_victim: dict[str, _Kept] = {}

    def __len__(self) -> int:
        return len(self._by_victim)

    def assume(self, preemptor: Pod, victims: Iterable[Pod], now_ns: int, expires_ns: int) -> None:
        """Add an answer of our own, in place of an older one to the same pod.

        A victim that the watch has shown is added already.
        """
        older = [
            uid
            for uid, kept in self._by_victim.items()
            if kept.expires_ns is not None and _is_for(kept.preemption, preemptor.uid)
        ]
        for uid in older:
            del self._by_victim[uid]
        for victim in victims:
            known = self._by_victim.get(victim.uid)
            if known is None or known.expires_ns is not None:
                self._put(_Kept(PastPreemption(now_ns, victim, preemptor), expires_ns))

    def observe(self, victim: Pod, nominated: Iterable[Pod]) -> None:
        """Record a victim from the watch; ``nominated`` are the pods nominated to its node."""
        known = self._by_victim.get(victim.uid)
        preemptor = None if known is None else known.preemption.preemptor
        if known is not None and known.expires_ns is None and preemptor is not None:
            return
        if preemptor is None:
            above = (each for each in nominated if each.priority > victim.priority)
            preemptor = max(above, key=lambda each: (each.priority, each.uid), default=None)
        at_ns = victim.preempted_ns
        if known is not None and known.expires_ns is None:
            at_ns = known.preemption.at_ns
        self._put(_Kept(PastPreemption(at_ns, victim, preemptor), None))

    def recent(self, now_ns: int, deciding: str = "") -> tuple[PastPreemption, ...]:
        """Return the preemptions that are kept at a time, the oldest first.

        An answer of our own to the pod with the UID ``deciding`` does not count unless the watch
        has confirmed it: it is decided anew.
        """
        since_ns = now_ns - self._kept_ns
        self._by_victim = {
            uid: kept
            for uid, kept in self._by_victim.items()
            if kept.preemption.at_ns > since_ns
            and (kept.expires_ns is None or kept.expires_ns > now_ns)
        }
        found = (
            kept.preemption
            for kept in self._by_victim.values()
            if kept.expires_ns is None or not _is_for(kept.preemption, deciding)
        )
        return tuple(sorted(found, key=lambda each: (each.at_ns, each.victim.uid)))

    def _put(self, kept: _Kept) -> None:
        self._by_victim.pop(kept.preemption.victim.uid, None)
        self._by_victim[kept.preemption.victim.uid] = kept
        if len(self._by_victim) > self._most:
            del self._by_victim[next(iter(self._by_victim))]


def _is_for(preemption: PastPreemption, preemptor: str) -> bool:
    return preemption.preemptor is not None and preemption.preemptor.uid == preemptor
