"""A real etcd and kube-apiserver from given binaries, on free ports of 127.0.0.1."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import aiohttp

TOKEN: Final = "administrator"
_GATES: Final = (
    "GenericWorkload",
    "TopologyAwareWorkloadScheduling",
    "CompositePodGroup",
    "DRAWorkloadResourceClaims",
)
POD_GROUPS: Final = (
    f"--feature-gates={','.join(f'{gate}=true' for gate in _GATES)}",
    "--runtime-config=scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true",
)
"""Flags of kube-apiserver 1.37 with which it serves pod groups, as fakeapi always does."""

_ADMIN: Final = f'{TOKEN},admin,admin,"system:masters"\n'
_START_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class RealServer:
    """The URL of the server (TLS, self-signed), and a directory of its files."""

    url: str
    directory: Path


@asynccontextmanager
async def real_server(
    etcd: Path, apiserver: Path, *flags: str, serving: Sequence[str] = ()
) -> AsyncIterator[RealServer]:
    """Run a pair of them on free ports, with an empty store, until the block ends.

    ``flags`` are for etcd, ``serving`` for kube-apiserver. Raises TimeoutError if the server does
    not become ready.
    """
    with TemporaryDirectory(prefix="real-") as name:
        directory = Path(name)
        _make_keys(directory)
        client_port, peer_port, port = _free_ports(3)
        store = f"http://127.0.0.1:{client_port}"
        commands = [
            [*_etcd_command(etcd, directory, store, peer_port), *flags],
            [*_apiserver_command(apiserver, directory, store, port), *serving],
        ]
        running = [_start(command, directory / "log") for command in commands]
        try:
            url = f"https://127.0.0.1:{port}"
            await _ready(url)
            yield RealServer(url, directory)
        finally:
            for process in reversed(running):
                process.terminate()
                process.wait()


def _start(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as file:
        return subprocess.Popen(command, stdout=file, stderr=file)


def _etcd_command(etcd: Path, directory: Path, url: str, peer_port: int) -> list[str]:
    peers = f"http://127.0.0.1:{peer_port}"
    flags = {
        "data-dir": directory / "etcd",
        "listen-client-urls": url,
        "advertise-client-urls": url,
        "listen-peer-urls": peers,
        "initial-advertise-peer-urls": peers,
        "initial-cluster": f"default={peers}",
    }
    return [str(etcd), *(f"--{flag}={value}" for flag, value in flags.items())]


def _apiserver_command(apiserver: Path, directory: Path, store: str, port: int) -> list[str]:
    flags = {
        "etcd-servers": store,
        "bind-address": "127.0.0.1",
        "secure-port": port,
        "cert-dir": directory / "certs",
        "token-auth-file": directory / "tokens.csv",
        "authorization-mode": "AlwaysAllow",
        "disable-admission-plugins": "ServiceAccount",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": directory / "sa.pub",
        "service-account-signing-key-file": directory / "sa.key",
        "service-cluster-ip-range": "10.96.0.0/16",
    }
    return [str(apiserver), *(f"--{flag}={value}" for flag, value in flags.items())]


def _make_keys(directory: Path) -> None:
    (directory / "tokens.csv").write_text(_ADMIN)
    private, public = directory / "sa.key", directory / "sa.pub"
    for arguments in (
        ("genrsa", "-out", private, "2048"),
        ("rsa", "-in", private, "-pubout", "-out", public),
    ):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


async def _ready(url: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with aiohttp.ClientSession(url, headers=headers) as session:
        for _ in range(int(_START_SECONDS * 10)):
            if await _is_ready(session):
                return
            await asyncio.sleep(0.1)
    raise TimeoutError(f"{url} did not become ready")


async def _is_ready(session: aiohttp.ClientSession) -> bool:
    try:
        async with (
            session.get("/readyz", ssl=False) as readyz,
            session.get("/api/v1/namespaces/default", ssl=False) as namespace,
        ):
            return (readyz.status, namespace.status) == (200, 200)
    except aiohttp.ClientError:
        return False
