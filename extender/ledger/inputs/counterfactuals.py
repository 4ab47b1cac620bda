"""What would have spared a victim of a decision whose inputs the ledger keeps."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Final, NamedTuple

from extender.config.rules_source import build_rules
from extender.config.strict_decoding import ConfigError
from extender.ledger.entry import format_id
from extender.ledger.inputs.call_inputs import decode_inputs
from extender.ledger.inputs.snapshot_codec import BlobError
from extender.ledger.storage.database import LedgerError
from extender.ledger.storage.location import open_database
from extender.ledger.storage.queries import Ledger
from extender.ledger.storage.sqlite_database import Access
from extender.protocol.preempt_verb import decision_inputs
from policies.engine_selection import build_engine
from policies.kubernetes.releases import UnknownReleaseError
from policies.preemption.counterfactuals.reproduction import IrreproducibleDecisionError
from policies.preemption.counterfactuals.search import find_counterfactuals
from policies.preemption.time_limit import DeadlineExceededError

SECONDS: Final = 30.0
"""For so long counterfactuals are searched for; those that take longer are left out."""


class SparingChange(NamedTuple):
    """A change that would have spared a victim, and what would have been decided then."""

    change: str
    outcome: str

    def __str__(self) -> str:
        return f"{self.change}: {self.outcome}"


async def find_sparing_changes(
    ledger: Ledger, number: int, victim_uid: str, seconds: float = SECONDS
) -> tuple[SparingChange, ...] | None:
    """Return the smallest changes that would have spared the victim of an entry.

    Return None if the ledger does not keep the inputs of the decision. Raise LedgerError if it
    has no such entry, or if the inputs cannot be decided again.
    """
    record = await ledger.record(number)
    if record is None:
        raise LedgerError(f"{ledger.location}: there is no entry {format_id(number)}")
    if not record.entry.snapshot:
        return None
    loop = asyncio.get_running_loop()

    def get(digest: bytes) -> bytes:
        found = asyncio.run_coroutine_threadsafe(ledger.blob(digest), loop).result()
        if found is None:
            raise BlobError(f"blob {digest.hex()} is not in the ledger any more")
        return found

    def search() -> tuple[SparingChange, ...]:
        stored = decode_inputs(bytes.fromhex(record.entry.snapshot), get)
        deadline = time.monotonic() + seconds
        engine = build_engine(build_rules(stored.rules)).for_preemptor(stored.args.pod)
        inputs = decision_inputs(stored.args, stored.context(engine))
        found = find_counterfactuals(
            victim_uid, inputs, lambda: time.monotonic() < deadline, build_engine
        )
        return tuple(SparingChange(each.change, str(each.outcome)) for each in found)

    try:
        return await asyncio.to_thread(search)
    except (BlobError, ConfigError, UnknownReleaseError, IrreproducibleDecisionError) as error:
        line = " ".join(str(error).split())
        raise LedgerError(f"{ledger.location}: entry {format_id(number)}: {line}") from None
    except DeadlineExceededError:
        text = f"the decision could not be made again in {seconds:g} s"
        raise LedgerError(f"{ledger.location}: entry {format_id(number)}: {text}") from None


class CounterfactualProcess:
    """Searches in a process of its own, one search at a time, so that no decision waits for it."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._turn = asyncio.Lock()

    async def find(self, number: int, victim_uid: str) -> tuple[SparingChange, ...] | None:
        """Do the same as :func:`find_sparing_changes`."""
        async with self._turn:
            with ProcessPoolExecutor(1, get_context("spawn")) as process:
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(
                    process, _search, self._location, number, victim_uid
                )


def _search(location: str, number: int, victim_uid: str) -> tuple[SparingChange, ...] | None:
    async def search() -> tuple[SparingChange, ...] | None:
        database = await open_database(location, Access.READ)
        try:
            return await find_sparing_changes(Ledger(database), number, victim_uid)
        finally:
            await database.close()

    return asyncio.run(search())
