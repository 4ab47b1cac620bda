"""Ledgers in files: pods, decisions and what followed, in one line each.

Times are seconds after ``BEGINNING``. ``example_records`` are the decisions of docs/ledger.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from extender.ledger.entry import (
    LedgerCandidate,
    LedgerEntry,
    LedgerPod,
    LedgerRecord,
    LedgerShadow,
    Outcome,
    State,
    VictimOutcome,
    entry_id,
)
from extender.ledger.storage.location import open_database
from extender.ledger.storage.sqlite_database import Access
from extender.ledger.storage.store import ComparedShadow, LedgerBatch, LedgerStore

BEGINNING: Final = 1_767_366_245
"""2026-01-02T15:04:05Z, in seconds since the epoch."""
SECOND: Final = 10**9
CRITERIA: Final = ("fewest PDB violations", "lowest priority of the first victim")
WRITER: Final = 7


def at(seconds: float) -> int:
    """Return a time in nanoseconds since the epoch."""
    return BEGINNING * SECOND + round(seconds * SECOND)


def prioritized_pod(key: str, priority: int = 0, **fields: Any) -> LedgerPod:
    """Return the pod ``namespace/name``; its UID is its name unless a field says otherwise."""
    namespace, _, name = key.rpartition("/")
    known = {"uid": name, "requests": {"cpu": 1000}, **fields}
    return LedgerPod(namespace=namespace or "default", name=name, priority=priority, **known)


def candidate(
    node: str,
    victims: Iterable[LedgerPod],
    criteria: Sequence[int] = (),
    spared: Iterable[LedgerPod] = (),
    violated: Sequence[str] = (),
) -> LedgerCandidate:
    """Return a node with its victims, the pods that are spared, and the budgets it violates."""
    return LedgerCandidate(
        node,
        tuple(victims),
        tuple(spared),
        len(violated),
        tuple(violated),
        tuple(criteria),
        {"cpu": 4000},
        {"cpu": 4000},
    )


def decision(
    seconds: float,
    pod: LedgerPod,
    *kept: LedgerCandidate,
    outcome: Outcome | None = None,
    **fields: Any,
) -> LedgerRecord:
    """Return a decision; the first of the ``kept`` candidates is chosen, if there is any."""
    chosen: Mapping[str, Any] = {}
    if kept:
        by = CRITERIA[1] if len(kept) > 1 else None
        chosen = {"node": kept[0].node, "kept": kept, "decided_by": by, "criteria": CRITERIA}
    defaults = {"candidates": len(kept), "policy": "kube-scheduler", "release": "1.38", **chosen}
    number = entry_id(at(seconds), WRITER)
    entry = LedgerEntry(number, "preempt", pod, **{**defaults, **fields})
    return LedgerRecord(entry, outcome or Outcome())


def shadowed(record: LedgerRecord, **choices: LedgerCandidate | None) -> LedgerRecord:
    """Return a decision with the choices of shadow policies by name; None is no node."""

    def entry(policy: str, chosen: LedgerCandidate | None) -> LedgerEntry:
        made = decision(0, record.entry.pod, *([] if chosen is None else [chosen]), policy=policy)
        return msgspec.structs.replace(made.entry, id=record.entry.id)

    shadows = tuple(LedgerShadow(name, entry(name, each)) for name, each in choices.items())
    return msgspec.structs.replace(record, shadows=shadows)


def bound(seconds: float, node: str, *victims: VictimOutcome) -> Outcome:
    """Return the outcome of a preemptor that was bound."""
    return Outcome(State.BOUND, node, at(seconds), victims)


def gone(
    seconds: float, replacement: str = "", node: str = "", bound_at: float = 0
) -> VictimOutcome:
    """Return the outcome of a victim, and of the pod that took its place."""
    return VictimOutcome(at(seconds), replacement, node, at(bound_at) if node else 0)


async def write_ledger(path: Path, *records: LedgerRecord) -> str:
    """Write decisions, with what is known of them, to the ledger in a file; return its path."""
    database = await open_database(str(path), Access.WRITE)
    try:
        store = LedgerStore(database)
        await store.prepare()
        await store.write(LedgerBatch([each.entry for each in records]))
        outcomes = {each.entry.id: each.outcome for each in records}
        shadows = [ComparedShadow(each, one.entry) for one in records for each in one.shadows]
        await store.write(LedgerBatch(outcomes=outcomes, shadows=shadows))
    finally:
        await database.close()
    return str(path)


def example_records() -> Sequence[LedgerRecord]:
    """Return decisions in the cluster of the quick start."""
    urgent = prioritized_pod("urgent", 1000, priority_class="high", team="search")
    report = prioritized_pod(
        "report",
        100,
        priority_class="low",
        team="finance",
        owner="Job/report",
        requests={"cpu": 2000},
        run_seconds=5400,
    )
    backup = prioritized_pod(
        "backup",
        200,
        priority_class="low",
        team="storage",
        owner="Job/backup",
        requests={"cpu": 2000, "nvidia.com/gpu": 1},
        run_seconds=7200,
    )
    train = prioritized_pod("train", 1000, priority_class="high", team="search", owner="Job/train")
    on_node_3 = candidate("node-3", [backup], (0, 200), [prioritized_pod("tidy", 100)])
    return (
        decision(
            0,
            urgent,
            candidate("node-1", [report], (0, 100), [prioritized_pod("web-1", 500)]),
            on_node_3,
            candidates=3,
            outcome=bound(14, "node-1", gone(12, "report-x7k2p", "node-2", 42)),
        ),
        decision(
            60,
            train,
            msgspec.structs.replace(on_node_3, violated_pdbs=("default/backup",)),
            outcome=Outcome(State.OPEN, victims=(gone(63),)),
        ),
        decision(90, train, fallback="late: waited 0.5 s", policy="", release=""),
    )


def shadowed_records() -> Sequence[LedgerRecord]:
    """Return the decisions of docs/shadow.md, with those of two shadow policies."""

    def job(name: str, cores: int, gpus: int, hours: int) -> LedgerPod:
        requests = {"cpu": 1000 * cores, "nvidia.com/gpu": gpus}
        return prioritized_pod(f"ml/{name}", 100, requests=requests, run_seconds=3600 * hours)

    pretrain = prioritized_pod("ml/pretrain", 1000)
    urgent = prioritized_pod("shop/urgent", 1000)
    long_job = candidate("gpu-1", [job("train-0", 8, 8, 2)], (0, 100))
    short_jobs = candidate("gpu-2", [job(f"eval-{n}", 0, 0, 1) for n in range(2)], (0, 100))
    web = candidate("node-1", [prioritized_pod("shop/web", 10, run_seconds=18000)], (1, 10))
    web = msgspec.structs.replace(web, violated_pdbs=("shop/web",), num_pdb_violations=1)
    made = decision(0, pretrain, long_job, short_jobs), decision(60, urgent, web)
    choices = (
        {"kube-scheduler": long_job, "spare-long-jobs": short_jobs},
        {"kube-scheduler": web, "spare-long-jobs": web},
    )
    return [shadowed(each, **named) for each, named in zip(made, choices, strict=True)]
