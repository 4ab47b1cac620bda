"""Entries of ledgers."""

from __future__ import annotations

from typing import Final

from extender.ledger.entry import LedgerCandidate, LedgerEntry, LedgerPod, entry_id

HOUR_NS: Final = 3600 * 10**9
DAY_NS: Final = 24 * HOUR_NS
NOON_NS: Final = 20_000 * DAY_NS + 12 * HOUR_NS
"""12:00 on 2024-10-04, UTC."""


def ledger_pod(
    key: str,
    *,
    priority_class: str = "low",
    owner: str = "",
    team: str = "",
    seconds: int = 60,
) -> LedgerPod:
    """Return a pod that requests a CPU and two devices; ``key`` is ``namespace/name``."""
    namespace, _, name = key.partition("/")
    requests = {"cpu": 1000, "memory": 2**30, "nvidia.com/gpu": 2}
    return LedgerPod(
        namespace, name, f"uid-{name}", 100, priority_class, team, owner, requests, seconds
    )


def ledger_entry(
    at_ns: int,
    preemptor: LedgerPod,
    *victims: LedgerPod,
    writer: int = 1,
    node: str = "node-1",
    budgets: tuple[str, ...] = (),
) -> LedgerEntry:
    """Return an entry with a runner-up; without victims, one without a candidate."""
    number = entry_id(at_ns, writer)
    if not victims:
        return LedgerEntry(number, "preempt", preemptor, rejected={"Insufficient cpu": 3})
    chosen = LedgerCandidate(node, victims, (), len(budgets), budgets, (len(budgets), 100))
    return LedgerEntry(
        number,
        "preempt",
        preemptor,
        node,
        "smallest sum of priorities",
        (chosen, LedgerCandidate("node-2", victims[:1], criteria=(len(budgets), 200))),
        ("fewest PDB violations", "smallest sum of priorities"),
        candidates=2,
    )
