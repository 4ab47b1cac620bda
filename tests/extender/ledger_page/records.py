"""Records of the tests: web/b preempts batch/a-1, unless a test changes it."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

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
    format_id,
)
from tests.builders.plausible_ledgers import CRITERIA, GIB, NOW_NS, SECOND

HOUR: Final = 3600 * SECOND
AT: Final = NOW_NS - HOUR
ID: Final = entry_id(AT, 1)
DECISION: Final = f"/ui/decisions/{format_id(ID)}"
VICTIM: Final = LedgerPod(
    "batch",
    "a-1",
    "uid-a-1",
    10,
    "low",
    owner="ReplicaSet/a",
    requests={"cpu": 2000, "memory": GIB},
    run_seconds=7200,
)
PREEMPTOR: Final = LedgerPod(
    "web", "b", "uid-b", 1000, "high", owner="ReplicaSet/b", requests={"cpu": 3000}
)
RESOURCES: Final = {"cpu": 8000, "memory": 16 * GIB}
CHOSEN: Final = LedgerCandidate(
    "node-7",
    (VICTIM,),
    (LedgerPod("batch", "a-2", "", 10, requests={"cpu": 1000}),),
    criteria=(0, 10, 10 + 2**31, 1, -(AT - HOUR)),
    allocatable=RESOURCES,
    requested={"cpu": 7000, "memory": 4 * GIB},
)
RIVAL: Final = LedgerCandidate(
    "node-9",
    (LedgerPod("db", "c-1", "", 10, requests={"cpu": 4000}),),
    num_pdb_violations=1,
    violated_pdbs=("db/c",),
    criteria=(1, 10, 10 + 2**31, 1, -AT),
    allocatable=RESOURCES,
    requested=RESOURCES,
)


def record(
    *,
    at: int = AT,
    outcome: Outcome | None = None,
    pod: LedgerPod = PREEMPTOR,
    victim: LedgerPod = VICTIM,
    **changes: Any,
) -> LedgerRecord:
    """Return a record; the victim is gone after 2 s, and the preemptor bound after 3 s."""
    entry = LedgerEntry(
        entry_id(at, 1),
        "preempt",
        pod,
        "node-7",
        CRITERIA[0],
        (replace(CHOSEN, victims=(victim,)), RIVAL),
        CRITERIA,
        candidates=2,
        rejected={"Insufficient cpu": 4},
        policy="kube-scheduler",
        release="1.38",
    )
    followed = Outcome(
        State.BOUND,
        "node-7",
        at + 3 * SECOND,
        (VictimOutcome(at + 2 * SECOND, "a-1x", "node-5", at + 60 * SECOND),),
    )
    return LedgerRecord(replace(entry, **changes), followed if outcome is None else outcome)


def with_shadows(found: LedgerRecord) -> LedgerRecord:
    """Return a record with three shadow policies, two of which make another choice."""
    live = found.entry
    other = replace(live, node=RIVAL.node, kept=(RIVAL,))
    refusing = replace(live, node=None, kept=(), refused_attempt="preemptionDelay")
    choices = {"careful": refusing, "equal": live, "other": other}
    shadows = tuple(LedgerShadow(name, entry) for name, entry in choices.items())
    return replace(found, shadows=shadows)


def without_victims(**changes: Any) -> LedgerRecord:
    """Return the record of a decision that names no node."""
    none: dict[str, Any] = {"node": None, "decided_by": None, "kept": (), "criteria": ()}
    return record(outcome=Outcome(), **{**none, "candidates": 0, **changes})
