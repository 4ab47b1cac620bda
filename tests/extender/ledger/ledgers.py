"""Entries, and a pod store whose changes a tracker observes, as tests of the ledger need them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import structs
from msgspec.structs import replace

from extender.cluster.scheduler_cache import SchedulerCache
from extender.kube.decoders.typed_decoder import Unreadable
from extender.ledger.entry import LedgerEntry, LedgerPod, LedgerRecord, Outcome, VictimOutcome
from extender.ledger.outcomes import OutcomeTracker
from policies.kubernetes.default_selector import PodOwner
from policies.kubernetes.snapshot import Pod
from tests.builders import SECOND, pod
from tests.builders.ledger_entries import ledger_entry, ledger_pod


def named_pod(name: str, **fields: Any) -> LedgerPod:
    """Build a pod of an entry, in the namespace default; its UID is its name."""
    return structs.replace(ledger_pod(f"default/{name}"), uid=name, **fields)


def entry(preemptor: str, *victims: LedgerPod, at: float = 1.0) -> LedgerEntry:
    """Build an entry of second ``at`` that names victims on node-1, or none."""
    return ledger_entry(int(at * SECOND), named_pod(preemptor), *victims)


def unknown_outcome(followed: LedgerEntry) -> Outcome:
    """Return the outcome of an entry of which nothing was observed yet."""
    return Outcome(victims=(VictimOutcome(),) * len(followed.victims))


def owned(name: str, owner: str, **fields: Any) -> Pod:
    """Build a pod of a ReplicaSet, on a node unless a field says otherwise."""
    reference = PodOwner("ReplicaSet", owner)
    fields = {"on": "node-1", **fields}
    return replace(pod(name, **fields), owner=reference)


class World:
    """Pods as the watch shows them, and a tracker that observes them; ``now`` is in seconds."""

    def __init__(self) -> None:
        self.now = 1.0
        self.outcomes: dict[int, Outcome] = {}
        self._start(())

    def restart(self, *meanwhile: Pod) -> None:
        """Replace the tracker by a new one, which lists the pods and those created meanwhile."""
        self._start((*self._pods(), *meanwhile))

    def show(self, *pods: Pod) -> None:
        """Add or update pods."""
        for each in pods:
            self._cluster.pods.upsert(each)

    def end(self, *names: str) -> None:
        """Delete pods."""
        for name in names:
            self._cluster.pods.remove(self._cluster.pods.by_key[f"default/{name}"])

    def relist(self, *pods: Pod | Unreadable) -> None:
        """Replace all pods, as the list after a broken watch does."""
        self._cluster.pods.replace(pods)

    def outcome(self, followed: LedgerEntry) -> Outcome:
        """Return the outcome of an entry, as a ledger has it after all changes."""
        self.outcomes |= self.tracker.changes()
        return self.outcomes.get(followed.id, unknown_outcome(followed))

    def resume(self, *followed: LedgerEntry) -> None:
        """Resume entries with the outcomes that a ledger has of them."""
        records = [LedgerRecord(each, self.outcome(each)) for each in followed]
        self.tracker.resume(records, self._cluster.pods.by_key)

    def _pods(self) -> list[Pod]:
        return [each for each in self._cluster.pods.by_key.values() if isinstance(each, Pod)]

    def _start(self, pods: Iterable[Pod]) -> None:
        listed = tuple(pods)
        self._cluster = SchedulerCache(lambda: self.now)
        self.tracker = OutcomeTracker(lambda: int(self.now * SECOND))
        self._cluster.pods.observer = self.tracker
        self.relist(*listed)
