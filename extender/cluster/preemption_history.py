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
from typing import Final, TypeVar

from policies.kubernetes.snapshot import PastPreemption, Pod

T = TypeVar("T")

MOST: Final = 10_000
"""The maximum number of preemptions that are kept; the oldest ones are dropped."""

KEPT_NS: Final = 24 * 3600 * 10**9
"""A day: for so long preemptions are kept."""


@dataclass(frozen=True, slots=True)
class _Assumed:
    """A preemption of our own answer, which the watch has not confirmed."""

    preemption: PastPreemption
    expires_ns: int


class PreemptionHistory:
    """The preemptions of the last ``kept_ns`` nanoseconds, by the UID of the victim."""

    def __init__(self, kept_ns: int = KEPT_NS, most: int = MOST) -> None:
        self._kept_ns = kept_ns
        self._most = most
        self._confirmed: dict[str, PastPreemption] = {}
        self._assumed: dict[str, _Assumed] = {}

    def __len__(self) -> int:
        return len(self._confirmed) + len(self._assumed)

    def assume(self, preemptor: Pod, victims: Iterable[Pod], now_ns: int, expires_ns: int) -> None:
        """Add an answer of our own, in place of an older one to the same pod.

        A victim that the watch has shown is added already.
        """
        self._assumed = {
            uid: each
            for uid, each in self._assumed.items()
            if each.expires_ns > now_ns and not _is_for(each.preemption, preemptor.uid)
        }
        for victim in victims:
            if victim.uid not in self._confirmed:
                assumed = _Assumed(PastPreemption(now_ns, victim, preemptor), expires_ns)
                self._put(self._assumed, victim.uid, assumed)

    def observe(self, victim: Pod, nominated: Iterable[Pod]) -> None:
        """Record a victim from the watch; ``nominated`` are the pods nominated to its node."""
        known = self._confirmed.get(victim.uid)
        if known is not None and known.preemptor is not None:
            return
        assumed = self._assumed.pop(victim.uid, None)
        if assumed is not None:
            preemptor = assumed.preemption.preemptor
        else:
            above = (each for each in nominated if each.priority > victim.priority)
            preemptor = max(above, key=lambda each: (each.priority, each.uid), default=None)
        at_ns = victim.preempted_ns if known is None else known.at_ns
        self._put(self._confirmed, victim.uid, PastPreemption(at_ns, victim, preemptor))

    def recent(self, now_ns: int, deciding: str = "") -> tuple[PastPreemption, ...]:
        """Return the preemptions that are kept at a time, the oldest first.

        An answer of our own to the pod with the UID ``deciding`` does not count unless the watch
        has confirmed it: it is decided anew.
        """
        since_ns = now_ns - self._kept_ns
        self._confirmed = {u: each for u, each in self._confirmed.items() if each.at_ns > since_ns}
        self._assumed = {u: each for u, each in self._assumed.items() if each.expires_ns > now_ns}
        assumed = (each.preemption for each in self._assumed.values())
        others = (each for each in assumed if not _is_for(each, deciding))
        found = (*self._confirmed.values(), *others)
        return tuple(sorted(found, key=lambda each: (each.at_ns, each.victim.uid)))

    def _put(self, kept: dict[str, T], uid: str, item: T) -> None:
        """Put an item at the end; drop the oldest preemption if there are too many."""
        kept.pop(uid, None)
        kept[uid] = item
        if len(self) > self._most:
            full = self._confirmed or self._assumed
            del full[next(iter(full))]


def _is_for(preemption: PastPreemption, preemptor: str) -> bool:
    return preemption.preemptor is not None and preemption.preemptor.uid == preemptor
