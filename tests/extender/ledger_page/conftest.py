"""Pages over a small ledger, requested as a client with the token does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from extender.ledger.entry import LedgerRecord
from extender.ledger.storage.queries import Ledger
from extender.ledger.storage.sqlite_database import Access, open_sqlite
from extender.ledger_page.app import PageOptions, build_ui_app
from extender.ledger_page.nodes_view import NodeUse
from tests.builders.plausible_ledgers import NOW_NS, write_ledger

TOKEN = "a-token-of-a-test"


class PageClock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now_ns(self) -> int:
        return NOW_NS + int(self.seconds * 10**9)

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@dataclass
class PageClient:
    """Requests pages; ``http`` sends no token."""

    http: TestClient[Any, Any]
    clock: PageClock

    async def html(self, path: str, status: int = 200) -> str:
        return await self._text(path, status, {"Accept": "text/html"})

    async def json(self, path: str, status: int = 200) -> Any:
        async with self.http.get(path, headers=_authorized(Accept="application/json")) as response:
            assert response.status == status, await response.text()
            return await response.json()

    async def _text(self, path: str, status: int, headers: dict[str, str]) -> str:
        async with self.http.get(path, headers=_authorized(**headers)) as response:
            text: str = await response.text()
            assert response.status == status, text
            return text


def _authorized(**headers: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKEN}", **headers}


async def counterfactuals(record: LedgerRecord, uid: str) -> Sequence[str] | None:
    victim = next(each for each in record.entry.victims if each.uid == uid)
    return [f"{victim.name} with a priority of {record.entry.pod.priority}"]


async def nodes(since_ns: int, until_ns: int) -> Sequence[NodeUse]:
    assert since_ns < until_ns
    return [NodeUse("node-2", 0.5, 0), NodeUse("node-1", 1.0, 3)]


OpenPage = Callable[..., AbstractAsyncContextManager[PageClient]]
"""Serves the records as a page with some options."""


@pytest.fixture
def open_page(tmp_path: Path) -> OpenPage:
    return partial(_open_page, tmp_path / "ledger.db")


@asynccontextmanager
async def _open_page(
    path: Path, records: Iterable[LedgerRecord] = (), **options: Any
) -> AsyncIterator[PageClient]:
    await write_ledger(path, records)
    ledger, clock = Ledger(await open_sqlite(path, Access.READ)), PageClock()
    server = TestServer(build_ui_app(ledger, PageOptions(TOKEN, **options), clock))
    async with TestClient(server) as client:
        yield PageClient(client, clock)
    await ledger.close()
