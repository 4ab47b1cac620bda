"""A server of the session, and an empty database of each test."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final

import pytest

from tests.e2e.postgresql.server import PostgresqlServer, postgresql_server

_NUMBERS: Final = count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresqlServer]:
    with postgresql_server() as running:
        yield running


@pytest.fixture
async def location(server: PostgresqlServer) -> str:
    return await server.make_database(f"ledger_{next(_NUMBERS)}")
