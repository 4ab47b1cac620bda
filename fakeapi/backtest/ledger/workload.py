"""A ledger as a workload: the preempt decisions whose inputs it keeps, in the order of time.

A ledger with snapshots keeps the inputs of each preempt call that led to victims. Decisions without
inputs are left out. Parts of a workload can be read by several processes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from extender.config.ledger_location import is_postgresql
from extender.ledger.entry import LedgerEntry, format_id, time_of_id
from extender.ledger.inputs.call_inputs import CallInputs, InputsReader
from extender.ledger.inputs.snapshot_codec import BlobError
from extender.ledger.storage.database import LedgerError
from extender.ledger.storage.location import open_database
from extender.ledger.storage.queries import NEWEST_ID, Ledger
from extender.ledger.storage.sqlite_database import Access
from fakeapi.backtest.results import LeftOut, WorkloadSummary
from fakeapi.backtest.simulation.resource_use import amounts_of
from fakeapi.backtest.statistics import (
    Amounts,
)
from policies.kubernetes.snapshot import Snapshot

MEASURES: Final = ("disruptions", "lostHours", "preemptions", "violations", "refusedAttempts")
"""The measures that decisions have without a simulation."""

_STATES: Final = (
    "each decision is made again on its recorded state, which does not depend on the policy: "
    "there are no cascades, and several decisions may name the same pod"
)
_LOST_WORK: Final = (
    "lost work is what a victim requests, times its time since its start, or since the last "
    "checkpoint if the policy of the ledger names its annotation"
)
_REFUSED: Final = (
    "a refused attempt is one for which the policy names no victims; attempts that were refused "
    "before have no inputs"
)
_NODES: Final = "nodes and capacity are those of the first decision"
ASSUMPTIONS: Final = (_STATES, _LOST_WORK, _REFUSED, _NODES)
_ROWS: Final = 1000
_PREFETCHED: Final = 500
"""The most blobs that are fetched at once: more than two decisions differ by."""

_SUFFIX: Final = ".db"
_SQLITE: Final = b"SQLite format 3\0"
"""The first bytes of a SQLite file."""


class StoredDecision(NamedTuple):
    """A decision by the ID of its entry, the digest of its inputs, and the attempt of its pod."""

    id: int
    inputs: bytes
    attempt: int


@dataclass(frozen=True, slots=True)
class LedgerWorkload:
    """The decisions of a ledger, or a part of them, in the order of time.

    ``summary`` is that of the whole ledger, ``start_ns`` the time of its first decision;
    ``duration_ns`` is that of the part.
    """

    location: str
    summary: WorkloadSummary
    decisions: tuple[StoredDecision, ...]
    start_ns: int
    duration_ns: int


def is_ledger(address: str) -> bool:
    """Return whether an address is of a database: a URL of PostgreSQL, or a SQLite file."""
    if is_postgresql(address) or address.endswith(_SUFFIX):
        return True
    try:
        with Path(address).open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def open_ledger_workload(location: str) -> LedgerWorkload:
    """Return the workload of the ledger in a file or a PostgreSQL database.

    Raise LedgerError if there is no ledger, or none with inputs of decisions.
    """
    with open_ledger(location) as ledger:
        found, left_out = ledger.stored_decisions()
        if not found:
            raise LedgerError(
                f"{ledger.location}: no decision has inputs; expected a ledger that was kept with"
                " ledger.snapshots: true, or serve --ledger-snapshots"
            )
        first = ledger.inputs(found[0]).snapshot
    start_ns = time_of_id(found[0].id)
    duration_ns = time_of_id(found[-1].id) - start_ns
    summary = WorkloadSummary(
        ledger.location,
        len(first.nodes),
        0,
        duration_ns,
        _capacity(first),
        ASSUMPTIONS,
        left_out,
        len(found),
        MEASURES,
    )
    return LedgerWorkload(location, summary, found, start_ns, duration_ns)


def ledger_segments(workload: LedgerWorkload, number: int) -> tuple[LedgerWorkload, ...]:
    """Cut a workload by time into at most ``number`` parts of about as many decisions each."""
    known, number = workload.decisions, min(number, len(workload.decisions))
    bounds = [len(known) * place // number for place in range(number + 1)]
    parts = [known[begin:end] for begin, end in pairwise(bounds)]
    starts = [time_of_id(part[0].id) for part in parts]
    ends = (*starts[1:], starts[0] + workload.duration_ns)
    return tuple(
        replace(workload, decisions=part, duration_ns=end - start)
        for part, start, end in zip(parts, starts, ends, strict=True)
    )


class StoredDecisions(NamedTuple):
    """The decisions that can be made again, and the others."""

    decisions: tuple[StoredDecision, ...]
    left_out: tuple[LeftOut, ...]


async def _stored_decisions(ledger: Ledger) -> StoredDecisions:
    found: list[StoredDecision] = []
    left_out: dict[str, LeftOut] = {}
    attempts: Counter[str] = Counter()
    last = 0
    while records := await ledger.records_after(last, NEWEST_ID, _ROWS):
        last = records[-1].entry.id
        for entry in (each.entry for each in records if each.entry.verb == "preempt"):
            if entry.snapshot:
                attempt = attempts[entry.pod.uid]
                found.append(StoredDecision(entry.id, bytes.fromhex(entry.snapshot), attempt))
            else:
                reason = _reason_left_out(entry)
                known = left_out.get(reason, LeftOut(reason, 0, f"entry {format_id(entry.id)}"))
                left_out[reason] = msgspec.structs.replace(known, count=known.count + 1)
            attempts[entry.pod.uid] += 1
    return StoredDecisions(tuple(found), tuple(left_out.values()))


def _reason_left_out(entry: LedgerEntry) -> str:
    if entry.fallback:
        return "a fallback answer"
    if entry.victims:
        return "its inputs were not kept"
    return "it named no victims, so its inputs were not kept"


def _capacity(snapshot: Snapshot) -> Amounts:
    total: Counter[str] = Counter()
    for state in snapshot.nodes.values():
        total.update(amounts_of(state.node.allocatable))
    return dict(total)


class OpenLedger:
    """A ledger that is open, and a loop to read it in."""

    def __init__(self, ledger: Ledger, runner: asyncio.Runner) -> None:
        self.location = ledger.location
        self._ledger = ledger
        self._runner = runner
        self._reader = InputsReader(self._blob, self._prefetch)
        self._fetched: dict[bytes, bytes] = {}

    def stored_decisions(self) -> StoredDecisions:
        """Return the decisions that can be made again, and the others. Raise LedgerError."""
        return self._runner.run(_stored_decisions(self._ledger))

    @property
    def changed(self) -> frozenset[str]:
        """The names of the nodes that differ in the inputs that were read last and before."""
        return self._reader.changed

    def inputs(self, stored: StoredDecision) -> CallInputs:
        """Return the inputs of a decision. Raise LedgerError."""
        try:
            found = self._reader.read(stored.inputs)
        except BlobError as error:
            raise self.error(stored, error) from None
        if found.snapshot.now_ns:
            return found
        # The policy of the ledger did not read the time; another one may.
        now_ns = time_of_id(stored.id)
        return replace(found, snapshot=replace(found.snapshot, now_ns=now_ns))

    def error(self, stored: StoredDecision, error: Exception) -> LedgerError:
        """Return the error of a decision in one line."""
        line = " ".join(str(error).split())
        return LedgerError(f"{self.location}: entry {format_id(stored.id)}: {line}")

    def _blob(self, digest: bytes) -> bytes:
        found = self._fetched.pop(digest, None) or self._runner.run(self._ledger.blob(digest))
        if found is None:
            raise KeyError(digest)
        return found

    def _prefetch(self, digests: Sequence[bytes]) -> None:
        if len(digests) > 1:
            fetched = self._ledger.blobs(digests[:_PREFETCHED])
            self._fetched = {**self._runner.run(fetched)}


@contextmanager
def open_ledger(location: str) -> Iterator[OpenLedger]:
    """Open a ledger to read. Raise LedgerError."""
    with asyncio.Runner() as runner:
        ledger = Ledger(runner.run(open_database(location, Access.READ)))
        try:
            runner.run(ledger.require())
            yield OpenLedger(ledger, runner)
        finally:
            runner.run(ledger.close())
