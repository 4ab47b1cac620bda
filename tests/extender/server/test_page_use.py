"""Pages of the ledger beside the extender: over TLS and plain HTTP, and a port that is in use."""

from __future__ import annotations

import random
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from extender.config.access_token import VARIABLE
from extender.config.component_config import Config, LedgerConfig, PageConfig, TlsConfig
from extender.config.strict_decoding import ConfigError
from extender.kube.rest.clock import SystemClock
from extender.server.process import run_server
from fakeapi.testing.fake_cluster import FakeCluster
from tests.commands import reprieve
from tests.extender.conftest import preempt_body
from tests.extender.secure_serving.conftest import TlsFiles, files
from tests.extender.server.test_ledger import OBJECTS, OFFER, VIP

__all__ = ["files"]

TOKEN = "0123456789abcdef"
BEARER = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json"}


@asynccontextmanager
async def page(
    folder: Path, location: Path, tls: TlsConfig | None = None, port: int = 0
) -> AsyncIterator[tuple[str, str]]:
    """Serve an extender with a page; yield the URLs of both."""
    token = folder / "token"
    token.write_text(f"{TOKEN}\n")
    config = Config(
        port=0,
        tls=tls,
        ledger=LedgerConfig(str(location)),
        page=PageConfig(port=port, token_file=str(token)),
    )
    async with FakeCluster() as cluster:
        cluster.load(OBJECTS)
        serving = run_server(config, cluster.local_transport(), SystemClock(), random.Random(0))
        async with serving as extender:
            await extender.wait_synced()
            yield extender.url, extender.page_url


@pytest.fixture
def busy() -> Iterator[int]:
    """Return a port of 127.0.0.1 that is in use."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


@pytest.mark.parametrize("serving", ["plain", "tls", "mutual"])
async def test_a_decision_is_shown_with_the_token(
    serving: str, files: TlsFiles, tmp_path: Path
) -> None:
    """Where callers of the verbs need a certificate, readers do not."""
    tls = {"plain": None, "tls": files.tls, "mutual": files.mutual}[serving]
    scheme = "http" if tls is None else "https"
    secure: ssl.SSLContext | bool = True if tls is None else files.client()
    caller = files.client("scheduler") if serving == "mutual" else secure
    ledger = tmp_path / "ledger.db"
    body = preempt_body(VIP, **OFFER)
    async with aiohttp.ClientSession() as session:
        async with (
            page(tmp_path, ledger, tls) as (url, _),
            session.post(f"{url}/preempt", data=body, ssl=caller) as answer,
        ):
            assert answer.status == 200
        async with page(tmp_path, ledger, tls) as (url, shown):
            assert shown.startswith(f"{scheme}://127.0.0.1:")
            assert shown.endswith("/ui/")
            async with session.get(shown, ssl=secure, headers=BEARER) as found:
                assert found.status == 200
                assert VIP["metadata"]["name"] in await found.text()
            for headers in ({}, {"Authorization": f"Bearer {TOKEN}0"}):
                async with session.get(shown, ssl=secure, headers=headers) as refused:
                    assert refused.status == 401
            async with session.get(f"{url}/ui/", ssl=caller, headers=BEARER) as elsewhere:
                assert elsewhere.status == 404


async def test_a_page_over_tls_answers_no_plain_http(files: TlsFiles, tmp_path: Path) -> None:
    async with (
        page(tmp_path, tmp_path / "ledger.db", files.tls) as (_, shown),
        aiohttp.ClientSession() as session,
    ):
        with pytest.raises(aiohttp.ClientError):
            await session.get(shown.replace("https:", "http:"), headers=BEARER)


async def test_without_its_ledger_the_page_answers_in_one_line(tmp_path: Path) -> None:
    location = tmp_path / "none" / "ledger.db"
    async with (
        page(tmp_path, location) as (url, shown),
        aiohttp.ClientSession() as session,
    ):
        async with session.get(shown, headers=BEARER) as found:
            assert found.status == 503
            assert list(await found.json()) == ["error"]
        async with session.get(f"{url}/livez") as alive:
            assert alive.status == 200


async def test_a_busy_port_is_reported_as_that_of_the_page(busy: int, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"^page: 127.0.0.1:{busy}: "):
        async with page(tmp_path, tmp_path / "ledger.db", port=busy):
            pass


@pytest.mark.slow
async def test_a_busy_port_ends_the_command_with_one_line(
    busy: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, TOKEN)
    where = ("--embedded", "demo", "--port", "0", "--ledger", str(tmp_path / "ledger.db"))
    done = await reprieve("serve", *where, "--ui-port", str(busy))
    assert (done.code, done.out) == (2, "")
    line = done.err.splitlines()[-1]
    assert line.startswith(f"reprieve: page: 127.0.0.1:{busy}: ")
    assert line.endswith((": address already in use", "] address already in use"))  # 3.13
    assert "Traceback" not in done.err
