"""The page behind the project's own listener, with its limits on connections."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp

from extender.config.component_config import Config, ConnectionLimits
from extender.ledger.storage.queries import Ledger
from extender.ledger.storage.sqlite_database import Access, open_sqlite
from extender.ledger_page.app import PageOptions, build_ui_app
from extender.secure_serving.connection_limits import ConnectionRegistry
from extender.secure_serving.listener import serve_app
from tests.builders.plausible_ledgers import write_ledger
from tests.extender.ledger_page.conftest import TOKEN, PageClock
from tests.extender.ledger_page.records import DECISION, record


async def test_a_slow_answer_is_not_cut_off_and_an_idle_client_is(tmp_path: Path) -> None:
    await write_ledger(tmp_path / "ledger.db", [record()])
    ledger = Ledger(await open_sqlite(tmp_path / "ledger.db", Access.READ))
    clock, asked, answering = PageClock(), asyncio.Event(), asyncio.Event()

    async def slow(*_: object) -> list[str]:
        asked.set()
        await answering.wait()
        return ["an answer"]

    app = build_ui_app(ledger, PageOptions(TOKEN, counterfactuals=slow), clock)
    limits = ConnectionLimits()
    connections = ConnectionRegistry(limits, clock)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        serve_app(app, Config(port=0), connections, None) as listener,
        aiohttp.ClientSession(listener.url, headers=headers) as client,
    ):
        asking = asyncio.create_task(client.get(f"{DECISION}?spare=0"))
        await asked.wait()
        clock.seconds += limits.header_seconds + limits.idle_seconds
        connections.sweep()
        answering.set()
        response = await asking
        assert "an answer" in await response.text()
        clock.seconds += limits.idle_seconds + 1
        connections.sweep()
        assert len(connections) == 0
    await ledger.close()
