"""``reprieve serve`` and ``check-config`` as processes: configured from a file, over TLS."""

from __future__ import annotations

import asyncio
import signal
import ssl
from pathlib import Path

import aiohttp
import pytest

from fakeapi.testing.fake_cluster import FakeCluster
from tests.commands import reprieve, serving, start
from tests.extender.secure_serving.conftest import TlsFiles


def configuration(files: TlsFiles) -> str:
    path = files.folder / "reprieve.yaml"
    mounted = files.folder / "data"
    path.write_text(
        f"""
port: 0
tls:
  certificate: {mounted}/tls.crt
  key: {mounted}/tls.key
  clientCA: {mounted}/ca.crt
  allowedClientNames: [system:kube-scheduler]
"""
    )
    return str(path)


async def test_the_command_serves_over_tls_and_exits_with_0(files: TlsFiles) -> None:
    arguments = ("--config", configuration(files))
    async with (
        FakeCluster(run="none") as cluster,
        serving("serve", "--server", cluster.url, *arguments, scheme="https") as url,
        aiohttp.ClientSession() as session,
    ):

        async def status(path: str, context: ssl.SSLContext) -> int:
            async with session.get(f"{url}{path}", ssl=context) as response:
                return response.status

        assert await status("/livez", files.client()) == 200
        assert await status("/metrics", files.client()) == 403
        assert await status("/metrics", files.client("system:kube-scheduler")) == 200


@pytest.mark.slow
async def test_the_demo_serves_no_tls(files: TlsFiles) -> None:
    done = await reprieve("serve", "--embedded", "demo", "--config", configuration(files))
    assert (done.code, done.out) == (2, "")
    problem = "--embedded serves plain HTTP; expected no tls"
    assert done.err == f"reprieve: {problem}\n"


@pytest.mark.slow
async def test_a_valid_configuration_is_reported(files: TlsFiles) -> None:
    path = configuration(files)
    done = await reprieve("check-config", path)
    assert (done.code, done.out, done.err) == (0, f"{path}: valid\n", "")


@pytest.mark.slow
async def test_a_feature_gate_without_effect_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "reprieve.yaml"
    path.write_text('upstream: "1.34"\nfeatureGates: {GenericWorkload: true}\n')
    done = await reprieve("check-config", str(path))
    assert (done.code, done.out) == (0, f"{path}: valid\n")
    assert done.err == (
        "reprieve: featureGates: GenericWorkload does not exist in 1.34; it is ignored\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code"),
    [(["check-config"], 1), (["serve", "--embedded", "demo", "--config"], 2)],
)
async def test_all_errors_are_reported_in_a_line_each_and_nothing_starts(
    tmp_path: Path, command: list[str], code: int
) -> None:
    path = tmp_path / "reprieve.yaml"
    path.write_text("port: many\nhost: 0.0.0.0\nlimits: {connections: 0}\n")
    done = await reprieve(*command, str(path))
    assert (done.code, done.out) == (code, "")
    assert [line.split(": ")[:3] for line in done.err.splitlines()] == [
        ["reprieve", f"{path}:1", "port"],
        ["reprieve", f"{path}:3", "limits.connections"],
        ["reprieve", f"{path}:2", "host"],
    ]


@pytest.mark.slow
async def test_started_requests_are_finished_before_the_process_ends() -> None:
    process = await start("serve", "--embedded", "demo", "--port", "0")
    assert process.stdout is not None
    port = int((await process.stdout.readline()).decode().rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{")
    await writer.drain()
    # One more answer on another connection: by then the first one's header has been read.
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}/livez") as response,
    ):
        assert response.status == 200
    process.send_signal(signal.SIGTERM)
    while True:
        try:
            _, other = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionError:
            break
        other.close()
    writer.write(b"}")
    answer = await reader.readuntil(b"\r\n\r\n")
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 503"))
    writer.close()
    _, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
