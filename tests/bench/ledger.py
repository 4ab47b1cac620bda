"""The cost of the ledger: of its writes, of its questions, of its file, and of answers meanwhile.

The extender with a ledger and one without are called in turns, so that both meet the same noise.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from extender.ledger.entry import LedgerRecord, Outcome
from extender.ledger.storage.location import open_database
from extender.ledger.storage.queries import Grouping, Kind, Ledger, Selection
from extender.ledger.storage.sqlite_database import Access
from extender.ledger.storage.store import LedgerBatch, LedgerStore
from tests.bench.budgets import Figure, NamedFigures, untimed
from tests.bench.clusters import cluster, preemptor, snapshot_of
from tests.bench.extender import NODES, preempt_body
from tests.bench.http import in_turns
from tests.bench.servers.processes import READY_SECONDS, loaded, reprieve
from tests.bench.timing import Effort, Latency, latency, milliseconds
from tests.builders.plausible_ledgers import NOW_NS, ledger_records
from tests.commands import wait_ready

QUICK: Final = 50_000
FULL: Final = 1_000_000
"""How many decisions the ledger has."""

_BATCH: Final = 1_000
_ROUNDS: Final = 20
_DAY_NS: Final = 24 * 3600 * 10**9
_OFFERED: Final = 500
_MIB: Final = 2**20
_CALLS: Final = Effort(nodes=(), rounds=1_000, seconds=30, events=0, contests=0)


def measure(count: int) -> dict[str, Figure]:
    """Measure everything with a ledger of ``count`` decisions."""
    return asyncio.run(_kept(count)) | asyncio.run(_answered())


async def _kept(count: int) -> dict[str, Figure]:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "ledger.db"
        database = await open_database(str(path), Access.WRITE)
        figures = await _written(LedgerStore(database), count)
        await database.close()
        size = path.stat().st_size
        figures["size"] = untimed(
            f"file of {count:,} decisions, by decision",
            f"{size / count:,.0f} B; {size / _MIB:,.0f} MiB in all",
            size / count,
        )
        reading = Ledger(await open_database(str(path), Access.READ))
        figures |= await _asked(reading)
        await reading.close()
    return figures


async def _written(store: LedgerStore, count: int) -> dict[str, Figure]:
    """Write decisions in batches, and their outcomes in batches of their own."""
    await store.prepare()
    records, took = ledger_records(count), 0.0
    while batch := list(islice(records, _BATCH)):
        begun = time.perf_counter()
        await store.write(LedgerBatch([each.entry for each in batch]))
        await store.write(LedgerBatch(outcomes=_outcomes(batch)))
        took += time.perf_counter() - begun
    shown = f"{count / took:,.0f} a second"
    return {"written": Figure("decisions written, with their outcomes", shown, took / count)}


def _outcomes(batch: list[LedgerRecord]) -> dict[int, Outcome]:
    return {each.entry.id: each.outcome for each in batch if each.entry.victims}


async def _asked(ledger: Ledger) -> dict[str, Figure]:
    newest = await ledger.records(Selection(kind=Kind.PREEMPTIONS), _ROUNDS)
    pods = iter([each.entry.victims[0] for each in newest])
    space = newest[0].entry.pod.namespace
    begin = NOW_NS - 30 * _DAY_NS
    questions: dict[str, tuple[str, Callable[[], Awaitable[object]]]] = {
        "why": ("the decisions of a pod", lambda: ledger.records_of_pod(next(pods).key, 20)),
        "days": (
            "victims by day and namespace, 30 days",
            lambda: ledger.totals(begin, NOW_NS, Grouping.NAMESPACE, 24),
        ),
        "list": (
            "the newest 50 preemptions of a namespace",
            lambda: ledger.records(Selection(namespace=space, kind=Kind.PREEMPTIONS), 50),
        ),
        "thrash": (
            "owners that preempt each other, a day",
            lambda: ledger.thrash(NOW_NS - _DAY_NS, 50),
        ),
    }
    figures = {}
    for name, (what, ask) in questions.items():
        taken = []
        for _ in range(_ROUNDS):
            begun = time.perf_counter()
            await ask()
            taken.append(time.perf_counter() - begun)
        p50 = latency(taken).p50
        figures[name] = Figure(f"ledger: {what}", milliseconds(p50), p50)
    return figures


async def _answered() -> dict[str, Figure]:
    """Ask an extender with a ledger, and one without."""
    with (
        TemporaryDirectory() as directory,
        loaded(NODES, 30, more=[preemptor("plain", NODES)]) as api,
        reprieve("serve", "--port", "0", "--server", api.url) as without,
        reprieve(
            "serve", "--port", "0", "--server", api.url, "--ledger", f"{directory}/ledger.db"
        ) as keeping,
    ):
        for each in (without, keeping):
            await wait_ready(each.url, READY_SECONDS)
        body = preempt_body(snapshot_of(cluster(NODES)), _OFFERED)
        with_ledger, bare = f"{keeping.url}/preempt", f"{without.url}/preempt"
        beside = await in_turns(with_ledger, bare, body, _CALLS)
    return dict(_ratios(beside.extender, beside.echo))


def _ratios(kept: Latency, bare: Latency) -> NamedFigures:
    for name, ours, theirs in (
        ("p50", kept.p50, bare.p50),
        ("p95", kept.p95, bare.p95),
        ("p99", kept.p99, bare.p99),
    ):
        shown = f"{ours / theirs:.3f}: {milliseconds(ours)} by {milliseconds(theirs)}"
        what = f"HTTP preempt with a ledger by one without: {name} of {kept.rounds}"
        yield f"answer-{name}", untimed(what, shown, ours / theirs)
