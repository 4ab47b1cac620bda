"""A browser, and a page over a generated ledger."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

import pytest
from aiohttp.test_utils import TestServer

from extender.kube.rest.clock import Clock, SystemClock
from extender.ledger.entry import LedgerRecord
from extender.ledger.storage.queries import Ledger
from extender.ledger.storage.sqlite_database import Access, open_sqlite
from extender.ledger_page.app import PageOptions, build_ui_app
from extender.ledger_page.nodes_view import NodeUse
from tests.browser.devtools import Browser, Tab, executable, start_browser
from tests.builders.plausible_ledgers import ledger_records, write_ledger

TOKEN: Final = "a-token-of-a-test"
NODES: Final = 5000
WIDTH: Final = 1280


@pytest.fixture
async def browser(tmp_path: Path) -> AsyncIterator[Browser]:
    path = executable()
    assert path is not None, "install Chromium: apt-get install chromium"
    async with start_browser(path, tmp_path / "profile") as found:
        yield found


@pytest.fixture
def decisions() -> int:
    """Return the number of decisions in the ledger; a test may override it."""
    return 2000


@pytest.fixture
def clock() -> Clock:
    """Return the clock of the page; a test may override it."""
    return SystemClock()


@pytest.fixture
async def base(tmp_path: Path, decisions: int, clock: Clock) -> AsyncIterator[str]:
    """Serve the page over a ledger that ends now, and return its URL."""
    path = tmp_path / "ledger.db"
    await write_ledger(path, ledger_records(decisions, until_ns=clock.now_ns()))
    ledger = Ledger(await open_sqlite(path, Access.READ))
    options = PageOptions(TOKEN, counterfactuals=counterfactuals, nodes=nodes)
    async with TestServer(build_ui_app(ledger, options, clock)) as server:
        yield str(server.make_url("/")).rstrip("/")
    await ledger.close()


@pytest.fixture
async def tab(browser: Browser, base: str) -> AsyncIterator[Tab]:
    """Return a tab that is signed in; at its end, nothing but the page's server was asked."""
    async with browser.tab() as found:
        await found.resize(WIDTH)
        await found.open(f"{base}/ui/")
        await found.evaluate(f"document.getElementById('token').value = '{TOKEN}'")
        await found.follow("document.querySelector('form.login').requestSubmit()")
        found.console.clear()  # the answer 401 is reported there
        yield found
        assert found.console == []
        assert {url for url in found.requests if not url.startswith(f"{base}/")} == set()


async def counterfactuals(record: LedgerRecord, uid: str) -> Sequence[str]:
    victim = next(each for each in record.entry.victims if each.uid == uid)
    return [f"With a priority of {record.entry.pod.priority:,}, {victim.name} stays."]


async def nodes(since_ns: int, until_ns: int) -> Sequence[NodeUse]:
    rng = random.Random(since_ns % 2 + until_ns % 2)
    return [
        NodeUse(f"node-{place:04}", rng.betavariate(5, 1.5), max(0, round(rng.gauss(-1, 2))))
        for place in range(NODES)
    ]
