"""What would have spared a victim of a decision that the ledger keeps with its inputs."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest

from extender.cluster.scheduler_cache import SchedulerCache
from extender.config.component_config import Config, LedgerConfig
from extender.ledger.entry import LedgerRecord, format_id
from extender.ledger.inputs.counterfactuals import CounterfactualProcess, find_sparing_changes
from extender.ledger.storage.database import LedgerError, Statement
from extender.ledger.storage.location import open_database
from extender.ledger.storage.queries import Kind, Ledger, Selection
from extender.ledger.storage.sqlite_database import Access
from extender.protocol.verb_context import Search
from extender.server.ledger_use import build_recorder
from tests.builders import budget, node, pod, pod_json
from tests.extender.conftest import HandClock, live_cluster, preempt_body, served

VIP: Final = pod_json("vip", cpu="2", priority=100)
FITS: Final = "no preemption needed: the preemptor fits node-"
EXPECTED: Final = [
    "priority of default/web + 11 (to 12): victims on node-2: default/api",
    "PodDisruptionBudget default/web allows 1 disruption fewer (0): victims on node-2: default/api",
    f"one more node like node-1: {FITS}1-copy",
    f"cpu request of the preemptor smaller by 1000m (1000m): {FITS}3",
    "preemptionPolicy: Never on the preemptor: the preemptor stays pending",
]
AMONG_OFFERED: Final = [each for each in EXPECTED if "request" not in each]
"""The third node was not offered, so that no smaller request fits it."""


def full_nodes() -> SchedulerCache:
    """Build two full nodes, of which the second has the more important pod, and a small one."""
    return live_cluster(
        node("node-1", cpu="2"),
        node("node-2", cpu="2"),
        node("node-3", cpu="1"),
        pod("web", on="node-1", cpu="2", priority=1, labels={"app": "web"}),
        pod("api", on="node-2", cpu="2", priority=11),
        budget("web", match={"app": "web"}, allowed=1),
        pod("vip", cpu="2", priority=100),
    )


@asynccontextmanager
async def decided(
    path: Path, settings: Config, cluster: SchedulerCache | None = None
) -> AsyncIterator[tuple[Ledger, LedgerRecord]]:
    """Decide about the pod vip, and yield the ledger with the record of the decision."""
    clock, cluster = HandClock(), cluster or full_nodes()
    clock.seconds = 1000.0
    kept = LedgerConfig(str(path), snapshots=settings.ledger is not None)
    async with served(cluster, clock) as extender:
        recorder = build_recorder(settings, kept, cluster.pods, clock, random.Random(1))
        extender.service.ledger = recorder
        extender.service.search = settings.search
        body = preempt_body(VIP, node_1=["web"], node_2=["api"])
        assert (await extender.post("/preempt", body)).status == 200
        assert await recorder.writer.flush()
        await recorder.writer.close()
    ledger = Ledger(await open_database(str(path), Access.READ))
    [record] = await ledger.records(Selection(kind=Kind.PREEMPTIONS), 10)
    yield ledger, record
    await ledger.close()


KEPT: Final = Config(ledger=LedgerConfig("kept"))


@pytest.mark.parametrize("search", list(Search))
async def test_the_changes_are_those_of_the_inputs_that_are_kept(
    search: Search, tmp_path: Path
) -> None:
    settings = msgspec.structs.replace(KEPT, search=search)
    async with decided(tmp_path / "ledger.db", settings) as (ledger, record):
        changes = await find_sparing_changes(ledger, record.entry.id, "web")
        assert changes is not None
        assert [str(each) for each in changes] == (
            EXPECTED if search is Search.CLUSTER else AMONG_OFFERED
        )


async def test_a_process_of_its_own_finds_the_same(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    async with decided(path, KEPT) as (_, record):
        changes = await CounterfactualProcess(str(path)).find(record.entry.id, "web")
        assert changes is not None
        assert [str(each) for each in changes] == EXPECTED


async def test_without_inputs_none_are_offered(tmp_path: Path) -> None:
    async with decided(tmp_path / "ledger.db", Config()) as (ledger, record):
        assert record.entry.snapshot == ""
        assert await find_sparing_changes(ledger, record.entry.id, "web") is None


async def test_a_pod_that_was_no_victim_is_an_error(tmp_path: Path) -> None:
    async with decided(tmp_path / "ledger.db", KEPT) as (ledger, record):
        with pytest.raises(LedgerError, match="api"):
            await find_sparing_changes(ledger, record.entry.id, "api")


async def test_an_unknown_entry_is_an_error(tmp_path: Path) -> None:
    async with decided(tmp_path / "ledger.db", KEPT) as (ledger, record):
        unknown = record.entry.id + 1
        with pytest.raises(LedgerError, match=f"there is no entry {format_id(unknown)}"):
            await find_sparing_changes(ledger, unknown, "web")


async def test_inputs_that_are_gone_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    async with decided(path, KEPT) as (ledger, record):
        database = await open_database(str(path), Access.WRITE)
        await database.write([Statement("DELETE FROM blob")])
        await database.close()
        with pytest.raises(LedgerError, match="not in the ledger any more"):
            await find_sparing_changes(ledger, record.entry.id, "web")
