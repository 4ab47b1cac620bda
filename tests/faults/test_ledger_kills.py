"""SIGKILL under load: the ledger has each decision that was received a second before, once, whole.

One cluster and one ledger outlive many extenders. These are forks of one process that has imported
all modules, so that each of them starts in a fraction of a second.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Final

import aiohttp
import pytest

from extender.ledger.choice_cost import lost_work
from extender.ledger.entry import LedgerEntry
from extender.ledger.storage.queries import NEWEST_ID, Grouping, Ledger
from extender.ledger.storage.schema import HOUR_NS, Role
from extender.ledger.storage.sqlite_database import Access, open_sqlite
from fakeapi import FakeCluster
from tests.builders import encoded, node_json, pdb_json, pod_json
from tests.commands import ROOT, wait_ready
from tests.extender.conftest import preempt_body
from tests.faults.table import LEDGER_KILLED, noted

DEFAULT_KILLS: Final = 3
KILLS_AT_ONCE: Final = 50
CALLERS: Final = 4
WRITTEN_SECONDS: Final = 1.0
LATEST_MOMENT: Final = 2.0
NODES: Final = [f"node-{number}" for number in range(8)]
FORKING: Final = """
import os, sys
import extender.cli.serve_command, extender.server.process, fakeapi.testing.fake_cluster
import extender.ledger.storage.location, extender.kube.rest.connection, policies.engine_selection
from fakeapi.cli.root_command import main
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        sys.argv = ["reprieve", *line.split()]
        main()
    print("started", child, flush=True)
    os.waitpid(child, 0)
    print("ended", flush=True)
"""

OBJECTS: Final = [
    *(node_json(name, cpu="2") for name in NODES),
    *(
        pod_json(f"{app}-{name}", on=name, cpu="1", priority=1 + number % 3, labels={"app": app})
        for number, name in enumerate(NODES)
        for app in ("web", "batch")
    ),
    pdb_json("batch", match={"app": "batch"}, allowed=0),
]


@dataclass
class Received:
    """The answers that callers have received: the time and the victims by the ID of the call."""

    answers: dict[str, tuple[float, frozenset[str]]] = field(default_factory=dict)

    async def call_on(self, url: str, name: str) -> None:
        """Call without a pause until the connection breaks."""
        async with aiohttp.ClientSession() as session:
            for number in count():
                request_id, vip = f"{name}-{number}", pod_json(f"vip-{name}", cpu="2", priority=9)
                nodes = NODES if number % 2 else NODES[:1]
                offers = {n.replace("-", "_"): [f"web-{n}", f"batch-{n}"] for n in nodes}
                body, headers = preempt_body(vip, **offers), {"X-Request-Id": request_id}
                try:
                    async with session.post(f"{url}/preempt", data=body, headers=headers) as reply:
                        text = await reply.text()
                except aiohttp.ClientError:
                    return
                assert reply.status == 200, text
                [named] = json.loads(text)["NodeNameToMetaVictims"].values()
                victims = frozenset(each["UID"] for each in named["Pods"])
                self.answers[request_id] = time.monotonic(), victims


@asynccontextmanager
async def forking_process() -> AsyncIterator[Process]:
    """Run the process that starts extenders."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", FORKING, cwd=ROOT, stdin=PIPE, stdout=PIPE
    )
    assert process.stdin is not None
    try:
        yield process
    finally:
        process.stdin.close()
        await process.wait()


async def started(process: Process, arguments: Sequence[str]) -> tuple[int, str]:
    """Start an extender; return its process ID and its URL once it is ready."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{' '.join(arguments)}\n".encode())
    found: dict[str, str] = {}
    while len(found) < 2:
        async with asyncio.timeout(60):
            word, *_, value = (await process.stdout.readline()).decode().split()
        found[word] = value
    await wait_ready(found["listening"])
    return int(found["started"]), found["listening"]


async def kill_under_load(process: Process, arguments: Sequence[str], seed: int) -> Received:
    """Kill an extender at a random moment; return the answers that are to be in its ledger."""
    pid, url = await started(process, arguments)
    received = Received()
    callers = [received.call_on(url, f"{seed}-{number}") for number in range(CALLERS)]
    calling = asyncio.gather(*callers)
    await asyncio.sleep(Random(seed).uniform(0, LATEST_MOMENT))
    killed = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    await calling
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ended\n"
    due = killed - WRITTEN_SECONDS
    return Received({number: each for number, each in received.answers.items() if each[0] <= due})


async def entries_after(path: Path, number: int) -> Sequence[LedgerEntry]:
    """Return the entries with a greater ID; each of them is decoded."""
    ledger = Ledger(await open_sqlite(path, Access.READ))
    try:
        return [each.entry for each in await ledger.records_after(number, 2**62, 10**6)]
    finally:
        await ledger.close()


async def check_tables(path: Path) -> int:
    """Compare the rows of victims, the totals and the budgets with the bodies; count the bodies."""
    entries = await entries_after(path, 0)
    database = await open_sqlite(path, Access.READ)
    ledger = Ledger(database)
    try:
        rows = await database.fetch("SELECT decision, count(*) FROM victim GROUP BY 1")
        totals = await ledger.totals(0, 2**62, Grouping.NAMESPACE)
        budgets = await ledger.budgets(0, 2**62)
        integrity = await database.fetch("PRAGMA integrity_check")
    finally:
        await ledger.close()
    assert [list(row) for row in integrity] == [["ok"]]
    counts = {row[0]: row[1] for row in rows}
    assert counts == {each.id: len(each.victims) for each in entries if each.victims}
    found = {(each.hour, each.role): (each.pods, each.cpu) for each in totals}
    assert found == dict(summed(entries))
    violated = Counter(key for e in entries if e.chosen for key in e.chosen.violated_pdbs)
    assert budgets == violated
    return len(entries)


def summed(entries: Iterable[LedgerEntry]) -> Mapping[tuple[int, Role], tuple[int, int]]:
    """Return the pods and the lost work by hour and role."""
    pods, work = Counter[tuple[int, Role]](), Counter[tuple[int, Role]]()
    for entry in entries:
        hour = entry.at_ns // HOUR_NS
        pods[hour, Role.PREEMPTOR] += bool(entry.victims)
        pods[hour, Role.VICTIM] += len(entry.victims)
        work[hour, Role.VICTIM] += sum(lost_work(victim)[0] for victim in entry.victims)
    return {key: (number, work[key]) for key, number in pods.items()}


CHUNKS: Final = [
    range(DEFAULT_KILLS),
    *(
        pytest.param(range(first, first + KILLS_AT_ONCE), marks=pytest.mark.slow)
        for first in range(0, LEDGER_KILLED.runs, KILLS_AT_ONCE)
    ),
]


@pytest.mark.parametrize("seeds", CHUNKS, ids=lambda seeds: f"{seeds.start}-{seeds.stop}")
async def test_a_ledger_survives_every_kill(tmp_path: Path, seeds: range) -> None:
    path, config = tmp_path / "ledger.db", tmp_path / "config.json"
    settings = {"promiseSeconds": 0, "deadlineMilliseconds": {"preempt": 60_000}, "port": 0}
    config.write_bytes(encoded({**settings, "log": {"level": "error"}}))
    seen, last, due_answers = Counter[str](), 0, 0
    async with FakeCluster(run="none") as cluster, forking_process() as process:
        cluster.load(OBJECTS)
        files = ("--config", str(config), "--ledger", str(path))
        arguments = ("serve", "--server", cluster.url, *files)
        for seed in seeds:
            with noted(seed):
                due = await kill_under_load(process, arguments, seed)
                entries = await entries_after(path, last) if path.exists() else []
                assert all(last < each.id < NEWEST_ID for each in entries)
                last = max((each.id for each in entries), default=last)
                by_request = {each.request_id: each for each in entries}
                for number, (_, victims) in due.answers.items():
                    assert number in by_request
                    assert {each.uid for each in by_request[number].victims} == victims
                seen.update(each.request_id for each in entries)
                due_answers += len(due.answers)
    assert set(seen.values()) == {1}
    assert await check_tables(path) == len(seen) >= due_answers > 0
