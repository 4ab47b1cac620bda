"""Plausible ledgers: decisions of a cluster with teams, classes, budgets and workloads that thrash.

The values of the criteria are computed from the victims, and the chosen candidate is the best by
them, so an explanation never contradicts its numbers. The same seed gives the same ledger.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from extender.ledger.entry import (
    LedgerCandidate,
    LedgerEntry,
    LedgerPod,
    LedgerRecord,
    Outcome,
    State,
    VictimOutcome,
    entry_id,
)
from extender.ledger.storage.location import open_database
from extender.ledger.storage.sqlite_database import Access
from extender.ledger.storage.store import ComparedShadow, LedgerBatch, LedgerStore

NOW_NS: Final = 1_790_000_000 * 10**9
"""The time at which the ledgers of tests end: 2026-09-21T14:13:20Z."""
SECOND: Final = 10**9
GIB: Final = 2**30
CRITERIA: Final = (
    "fewest PDB violations",
    "lowest priority of the first victim",
    "smallest sum of priorities",
    "fewest victims",
    "latest start of the most important victims",
)

_DAY_SECONDS: Final = 86400
_BATCH: Final = 1000
_SUFFIX: Final = "bcdfghjklmnpqrstvwxz2456789"
_CLASSES: Final = {
    "scavenger": -10,
    "batch": 100,
    "standard": 1000,
    "service": 5000,
    "urgent": 9000,
}
_TEAMS: Final = ("search", "ads", "vision", "billing", "platform", "research", "maps", "mail")
_STATES: Final = (
    (State.BOUND, 84),
    (State.OPEN, 4),
    (State.DELETED, 5),
    (State.SUPERSEDED, 5),
    (State.UNKNOWN, 2),
)
_UNSCHEDULABLE: Final = "0/5000 nodes are available: 5000 Insufficient cpu. preemption:"
_KEPT: Final = 4
_FALLBACKS: Final = (
    "late: waited 0.48 s; answered with kube-scheduler's first candidate",
    "overloaded: 64 calls wait; answered with an error",
)


@dataclass(frozen=True, slots=True)
class Workload:
    """An owner of pods; ``classes`` are those that its pods may have."""

    namespace: str
    team: str
    owner: str
    classes: tuple[str, ...]
    cpu: int
    memory: int
    gpus: int = 0


def ledger_records(
    count: int, seed: int = 1, until_ns: int = NOW_NS, days: int = 30
) -> Iterator[LedgerRecord]:
    """Yield ``count`` records, the oldest first, of the days before ``until_ns``."""
    rng = random.Random(seed)
    workloads = _workloads(rng)
    last = 0
    for at_ns in _times(rng, count, until_ns, days):
        last = entry_id(at_ns, 1, last)
        yield _record(rng, last, workloads)


async def write_ledger(path: Path, records: Iterable[LedgerRecord]) -> None:
    """Write records to a new ledger."""
    database = await open_database(str(path), Access.WRITE)
    store = LedgerStore(database)
    await store.prepare()
    remaining = iter(records)
    while batch := list(islice(remaining, _BATCH)):
        outcomes = {each.entry.id: each.outcome for each in batch if each.entry.victims}
        await store.write(LedgerBatch([each.entry for each in batch]))
        shadows = [ComparedShadow(each, one.entry) for one in batch for each in one.shadows]
        await store.write(LedgerBatch(outcomes=outcomes, shadows=shadows))
    await database.close()


def _times(rng: random.Random, count: int, until_ns: int, days: int) -> Sequence[int]:
    """Return times that are denser by day than by night, with a burst now and then."""
    hours = [
        (3 if 8 <= hour % 24 < 19 else 1)
        * rng.uniform(0.5, 1.5)
        * (4 if rng.random() < 0.02 else 1)
        for hour in range(days * 24)
    ]
    begin = until_ns - days * _DAY_SECONDS * SECOND
    chosen = rng.choices(range(len(hours)), hours, k=count)
    return sorted(begin + hour * 3600 * SECOND + rng.randrange(3600 * SECOND) for hour in chosen)


def _workloads(rng: random.Random) -> Sequence[Workload]:
    found = [
        Workload("vision-train", "vision", "Job/segment", ("batch", "urgent"), 8000, 64 * GIB, 2),
        Workload("research-train", "research", "Job/sweep", ("batch", "urgent"), 8000, 64 * GIB, 2),
    ]
    for team in _TEAMS:
        for number in range(6):
            kind = rng.choice(("ReplicaSet", "Job", "StatefulSet"))
            name = f"{rng.choice(('api', 'index', 'report', 'worker', 'cache', 'import'))}-{number}"
            low = ("scavenger", "batch", "standard")
            classes = (rng.choice(low if kind == "Job" else ("standard", "service", "urgent")),)
            cpu, memory = rng.choice((500, 1000, 2000, 4000)), rng.choice((1, 2, 4, 8)) * GIB
            gpus = rng.choice((0, 0, 0, 1)) if team in ("vision", "research") else 0
            space = f"{team}-{rng.choice(('prod', 'batch', 'dev'))}"
            found.append(Workload(space, team, f"{kind}/{name}", classes, cpu, memory, gpus))
    return found


def _pod(rng: random.Random, workload: Workload, priority_class: str) -> LedgerPod:
    suffix = "".join(rng.choices(_SUFFIX, k=5))
    requests = {"cpu": workload.cpu, "memory": workload.memory, "nvidia.com/gpu": workload.gpus}
    return LedgerPod(
        workload.namespace,
        f"{workload.owner.partition('/')[2]}-{suffix}",
        f"{rng.getrandbits(32):08x}-{rng.getrandbits(16):04x}-4000-8000-{rng.getrandbits(48):012x}",
        _CLASSES[priority_class],
        priority_class,
        workload.team,
        workload.owner,
        {name: amount for name, amount in requests.items() if amount},
        int(rng.lognormvariate(8, 1.6)),
    )


def _record(rng: random.Random, number: int, workloads: Sequence[Workload]) -> LedgerRecord:
    if rng.random() < 0.25:  # two workloads that preempt each other
        preempting, lower = rng.sample(workloads[:2], 2)
        pod, victims_of = _pod(rng, preempting, "urgent"), [(lower, "batch")]
    else:
        preempting = rng.choice(workloads[2:])
        pod = _pod(rng, preempting, preempting.classes[0])
        victims_of = [
            (each, each.classes[0])
            for each in workloads[2:]
            if _CLASSES[each.classes[0]] < pod.priority
        ]
    pod = msgspec.structs.replace(pod, run_seconds=0)
    entry = _entry(rng, number, pod)
    if rng.random() < 0.01:
        return LedgerRecord(
            msgspec.structs.replace(entry, fallback=rng.choice(_FALLBACKS)), Outcome()
        )
    if not victims_of or rng.random() < 0.03:
        message = f"{_UNSCHEDULABLE} 0/5000 nodes are available: 5000 No preemption victims found."
        return LedgerRecord(msgspec.structs.replace(entry, message=message), Outcome())
    entry = _decided(rng, entry, victims_of)
    return LedgerRecord(entry, _outcome(rng, entry))


def _entry(rng: random.Random, number: int, pod: LedgerPod) -> LedgerEntry:
    return LedgerEntry(
        number,
        "preempt",
        pod,
        rejected={
            "No preemption victims found for incoming pod": rng.randrange(1000, 4000),
            "node(s) had untolerated taint(s)": rng.randrange(1, 200),
        },
        policy="kube-scheduler",
        release="1.38",
        request_id=f"call-{rng.randrange(10**6)}",
        generation=rng.randrange(10**6),
        pods_version=str(rng.randrange(10**8)),
        digest=f"{rng.getrandbits(64):016x}",
        took_microseconds=int(rng.lognormvariate(7.2, 0.6)),
    )


def _decided(
    rng: random.Random, entry: LedgerEntry, victims_of: Sequence[tuple[Workload, str]]
) -> LedgerEntry:
    places = rng.sample(range(5000), 1 if rng.random() < 0.1 else rng.randint(2, 6))
    ranked = sorted(
        (_candidate(rng, entry, f"node-{place:04}", victims_of) for place in places),
        key=lambda each: (each.criteria, each.node),
    )
    best = ranked[0]
    compared = zip(
        CRITERIA, best.criteria, ranked[-1 if len(ranked) == 1 else 1].criteria, strict=True
    )
    decided_by = next((name for name, one, other in compared if one != other), "node name")
    rival = [
        msgspec.structs.replace(each, victims=tuple(_brief(pod) for pod in each.victims))
        for each in ranked[1:2]
    ]
    others = [*rival, *(_other(each) for each in ranked[2:_KEPT])]
    return msgspec.structs.replace(
        entry,
        node=best.node,
        decided_by=decided_by if others else None,
        kept=(best if others else msgspec.structs.replace(best, criteria=()), *others),
        criteria=CRITERIA if others else (),
        candidates=len(ranked) if len(ranked) < 6 else rng.randrange(6, 900),
        message=f"{_UNSCHEDULABLE} found a potential placement for pod on node {best.node}",
    )


def _candidate(
    rng: random.Random, entry: LedgerEntry, node: str, victims_of: Sequence[tuple[Workload, str]]
) -> LedgerCandidate:
    """Return a node that is nearly full, with victims that free what the preemptor requests."""
    needed, victims = entry.pod.requests["cpu"], list[LedgerPod]()
    while needed > 0 and len(victims) < 8:
        victims.append(_pod(rng, *rng.choice(victims_of)))
        needed -= victims[-1].requests["cpu"]
    victims.sort(key=lambda pod: (-pod.priority, -pod.run_seconds))
    spared = tuple(_brief(_pod(rng, *rng.choice(victims_of))) for _ in range(rng.randint(0, 3)))
    violations = 1 if rng.random() < 0.15 else 0
    owner = victims[0].owner.partition("/")[2]
    oldest = max(pod.run_seconds for pod in victims if pod.priority == victims[0].priority)
    free = rng.randrange(0, 500)
    gpus = (
        {"nvidia.com/gpu": 8}
        if any("nvidia.com/gpu" in pod.requests for pod in (entry.pod, *victims))
        else {}
    )
    return LedgerCandidate(
        node,
        tuple(victims),
        spared,
        violations,
        (f"{victims[0].namespace}/{owner}",) if violations else (),
        (
            violations,
            victims[0].priority,
            sum(pod.priority + 2**31 for pod in victims),
            len(victims),
            oldest * SECOND - entry.at_ns,
        ),
        {"cpu": 64000, "memory": 512 * GIB, **gpus},
        {"cpu": 64000 - free, "memory": rng.randrange(300, 480) * GIB, **gpus},
    )


def _other(candidate: LedgerCandidate) -> LedgerCandidate:
    """Return what is kept of a candidate that is neither the chosen one nor the runner-up."""
    return LedgerCandidate(
        candidate.node,
        tuple(LedgerPod(pod.namespace, pod.name, "", pod.priority) for pod in candidate.victims),
        num_pdb_violations=candidate.num_pdb_violations,
    )


def _brief(pod: LedgerPod) -> LedgerPod:
    return LedgerPod(pod.namespace, pod.name, "", pod.priority, requests=pod.requests)


def _outcome(rng: random.Random, entry: LedgerEntry) -> Outcome:
    (state,) = rng.choices([each for each, _ in _STATES], [weight for _, weight in _STATES])
    ended = entry.at_ns + int(rng.uniform(1, 45) * SECOND)
    victims = []
    for pod in entry.victims:
        gone = entry.at_ns + int(rng.uniform(0.5, 31) * SECOND)
        name = f"{pod.name[:-5]}{''.join(rng.choices(_SUFFIX, k=5))}"
        bound = gone + int(rng.uniform(2, 600) * SECOND)
        if rng.random() < 0.1:
            victims.append(VictimOutcome(gone_ns=gone))
        else:
            victims.append(VictimOutcome(gone, name, f"node-{rng.randrange(5000):04}", bound))
    if state is State.OPEN:
        return Outcome(State.OPEN, victims=tuple(VictimOutcome() for _ in victims))
    node = (entry.node or "") if state is State.BOUND else ""
    return Outcome(state, node, ended, tuple(victims))
