"""What a choice costs, so that those of two policies can be compared and added up."""

from __future__ import annotations

from typing import Final, NamedTuple

from extender.ledger.entry import LedgerEntry, LedgerPod

_MOST_WORK: Final = 2**44
_UNCOUNTED: Final = frozenset({"cpu", "memory", "ephemeral-storage"})


class ChoiceCost(NamedTuple):
    """The cost of a choice, or of several.

    ``refusals`` are choices of no node. ``cpu`` and ``devices`` are the lost work of the victims:
    milliCPU, and units of extended resources, by seconds.
    """

    refusals: int = 0
    victims: int = 0
    violations: int = 0
    cpu: int = 0
    devices: int = 0


def choice_cost(entry: LedgerEntry) -> ChoiceCost:
    """Return the cost of the choice of an entry."""
    if entry.chosen is None:
        return ChoiceCost(refusals=1)
    work = [lost_work(each) for each in entry.victims]
    return ChoiceCost(
        0,
        len(entry.victims),
        entry.chosen.num_pdb_violations,
        sum(cpu for cpu, _ in work),
        sum(devices for _, devices in work),
    )


def differs(one: LedgerEntry, other: LedgerEntry) -> bool:
    """Return whether two choices have different nodes or victims."""
    if one.node != other.node:
        return True
    return {each.uid for each in one.victims} != {each.uid for each in other.victims}


def lost_work(pod: LedgerPod) -> tuple[int, int]:
    """Return the work that is lost with a pod: milliCPU, and units of devices, by seconds.

    Each is at most ``_MOST_WORK``, so that the sums of half a million pods have 64 bits.
    """
    devices = sum(n for name, n in pod.requests.items() if _is_device(name))
    work = (pod.requests.get("cpu", 0) * pod.run_seconds, devices * pod.run_seconds)
    return min(work[0], _MOST_WORK), min(work[1], _MOST_WORK)


def _is_device(resource: str) -> bool:
    return resource not in _UNCOUNTED and not resource.startswith("hugepages-")
