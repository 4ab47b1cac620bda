"""Writes decisions to a ledger in batches, off the path of the answers.

An answer only adds an entry to a list in memory. A task writes what was added, twice a
second, in one transaction. If that fails, the entries wait, up to a limit; what exceeds it is
dropped and counted. So a full disk or a server that is away delays no answer, and fails none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Final

import msgspec
import structlog

from extender.kube.decoders.typed_decoder import Unreadable
from extender.kube.rest.clock import Clock
from extender.ledger.entry import LedgerEntry, LedgerShadow, Outcome, first_id
from extender.ledger.inputs.call_inputs import CallInputs
from extender.ledger.inputs.input_encoder import MOST_WAITING, EncodedInputs, InputEncoder
from extender.ledger.outcomes import FOLLOWED_NS, OutcomeTracker
from extender.ledger.storage.database import Database, LedgerError
from extender.ledger.storage.queries import Ledger
from extender.ledger.storage.schema import HOUR_NS
from extender.ledger.storage.store import Blob, ComparedShadow, LedgerBatch, LedgerStore, Limits
from policies.kubernetes.snapshot import Pod

FLUSH_SECONDS: Final = 0.5
"""Between two batches; together with the time that one takes it stays below a second."""

_MOST_WAITING: Final = 10_000
_MOST_AT_ONCE: Final = 100
"""Entries are encoded and resumed in the event loop, in about 0.1 ms each: answers wait for few."""

_RETRY_SECONDS: Final = (1.0, 2.0, 5.0, 10.0)
_PRUNE_SECONDS: Final = 10.0
_LEAST_PRUNED: Final = 1_000
_MOST_BLOB_BYTES: Final = 64 * 2**20


@dataclass(slots=True)
class WriteCounts:
    """How many entries were written and dropped, and how many batches failed, since the start."""

    written: int = 0
    dropped: int = 0
    failures: int = 0


class LedgerWriter:
    """Writes to the ledger that ``open_database`` opens, and keeps it within ``limits``.

    ``pods`` are those that exist, by key.
    """

    def __init__(
        self,
        open_database: Callable[[], Awaitable[Database]],
        tracker: OutcomeTracker,
        limits: Limits,
        clock: Clock,
        pods: Mapping[str, Pod | Unreadable],
    ) -> None:
        self.counts = WriteCounts()
        self._open_database = open_database
        self._tracker = tracker
        self._limits = limits
        self._clock = clock
        self._pods = pods
        self._flushing = asyncio.Lock()
        self._closed = False
        self._unpruned = 0
        self._prune_at = 0.0
        self._database: Database | None = None
        self._store: LedgerStore | None = None
        self._entries: list[LedgerEntry] = []
        self._outcomes: dict[int, Outcome] = {}
        self._shadows: list[ComparedShadow] = []
        self._encoder = InputEncoder()
        self._inputs: dict[int, CallInputs] = {}
        self._blobs: dict[bytes, bytes] = {}
        self._resume_before = 0
        self._error = ""
        self._log = structlog.get_logger()

    def add(self, entry: LedgerEntry, inputs: CallInputs | None = None) -> None:
        """Write an entry with the next batch, and follow what becomes of its pods.

        ``inputs`` are kept with it, unless too many wait.
        """
        if len(self._entries) >= _MOST_WAITING:
            self.counts.dropped += 1
            return
        self._entries.append(entry)
        if inputs is not None and len(self._inputs) < MOST_WAITING:
            self._inputs[entry.id] = inputs
        self._tracker.follow(entry)

    def add_shadow(self, shadow: LedgerShadow, live: LedgerEntry) -> None:
        """Write what a shadow policy would have chosen, after the entry of the decision."""
        if len(self._shadows) < _MOST_WAITING:
            self._shadows.append(ComparedShadow(shadow, live))

    @property
    def waiting(self) -> int:
        """The number of entries that are not written yet."""
        return len(self._entries)

    def warning(self) -> str:
        """Return why entries wait, "" if none have to."""
        if not self._error:
            return ""
        dropped = f", {self.counts.dropped} were dropped" if self.counts.dropped else ""
        return f"ledger: {self._error}; {self.waiting} entries wait{dropped}"

    async def run(self) -> None:
        """Write batches until the task is cancelled; begin when the pods are known."""
        failures = 0
        while True:
            await self._clock.sleep(FLUSH_SECONDS)
            failures = 0 if await self.flush() else failures + 1
            if failures:
                delays = len(_RETRY_SECONDS)
                await self._clock.sleep(_RETRY_SECONDS[min(failures, delays) - 1])

    async def flush(self) -> bool:
        """Write what waits; return whether all of it could be written.

        An error that was not foreseen is a failure like others: it ends neither the loop, and with
        it the extender, nor the shutdown.
        """
        async with self._flushing:
            try:
                while not self._closed:
                    store = await self._opened()
                    self._outcomes |= self._tracker.changes()
                    if not self._entries and not self._outcomes and not self._shadows:
                        break
                    await self._write_some(store)
                await self._resume_some()
            except LedgerError as error:
                self._fail(str(error))
                return False
            except Exception as error:  # noqa: BLE001 - outermost: of the loop and of close
                self._fail(f"not written: {type(error).__name__}: {error}", error)
                return False
            self._succeed()
            return True

    async def close(self) -> None:
        """Write what waits, once, and close the database."""
        await self.flush()
        self._closed = True
        async with self._flushing:
            if self._database is not None:
                await self._database.close()
                self._database = None

    async def _write_some(self, store: LedgerStore) -> None:
        hour = self._clock.now_ns() // HOUR_NS
        await self._encode_inputs(hour)
        entries, outcomes = self._entries[:_MOST_AT_ONCE], self._outcomes
        later = {each.id for each in self._entries[_MOST_AT_ONCE:]}
        written = {number: each for number, each in outcomes.items() if number not in later}
        blobs = [Blob(digest, body) for digest, body in self._blobs.items()]
        written_shadows = takewhile(lambda each: each.live.id not in later, self._shadows)
        shadows = list(islice(written_shadows, _MOST_AT_ONCE))
        await store.write(LedgerBatch(entries, written, shadows, blobs, hour))
        self._blobs = {}
        self.counts.written += len(entries)
        del self._entries[: len(entries)]
        del self._shadows[: len(shadows)]
        self._outcomes = {number: each for number, each in outcomes.items() if number in later}
        self._unpruned += len(entries)
        now = self._clock.monotonic()
        if now >= self._prune_at:
            # Twice as many as were written, so that a ledger that is too large becomes smaller.
            most = max(_LEAST_PRUNED, 2 * self._unpruned)
            await store.prune(self._clock.now_ns(), self._limits, most)
            self._unpruned, self._prune_at = 0, now + _PRUNE_SECONDS

    async def _encode_inputs(self, hour: int) -> None:
        """Encode the inputs that wait, in a thread: the first ones take a second."""
        waiting, self._inputs = self._inputs, {}
        if not waiting:
            return
        found = await asyncio.to_thread(self._encoder.encode, waiting, hour)
        self._blobs.update(found.blobs)
        if sum(map(len, self._blobs.values())) > _MOST_BLOB_BYTES:
            self._encoder.reset()
            self._blobs = {}
            found = EncodedInputs({each.id: b"" for each in self._entries}, {})
        self._entries = [
            msgspec.structs.replace(each, snapshot=found.digests[each.id].hex())
            if each.id in found.digests
            else each
            for each in self._entries
        ]

    async def _resume_some(self) -> None:
        """Follow some more entries of earlier processes, after what waits is written."""
        if self._resume_before and self._database is not None:
            since, before = self._clock.now_ns() - FOLLOWED_NS, self._resume_before
            self._resume_before = 0  # an entry that cannot be read does not hold up the next batch
            found = await Ledger(self._database).open_records(since, before, _MOST_AT_ONCE)
            self._tracker.resume(found, self._pods)
            self._resume_before = found[-1].entry.id if found else 0

    async def _opened(self) -> LedgerStore:
        if self._store is None:
            database = await self._open_database()
            store = LedgerStore(database)
            try:
                await store.prepare()
            except LedgerError:
                await database.close()
                raise
            self._database, self._store = database, store
            self._resume_before = first_id(self._clock.now_ns())
        return self._store

    def _fail(self, problem: str, defect: Exception | None = None) -> None:
        self.counts.failures += 1
        if problem != self._error:
            self._log.error("ledger_not_written", problem=problem, exc_info=defect)
        self._error = problem

    def _succeed(self) -> None:
        if self._error:
            self._log.info("ledger_written_again", dropped=self.counts.dropped)
        self._error = ""
