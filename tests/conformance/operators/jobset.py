"""JobSet: a controller-runtime manager with a CRD, and webhooks whose certificate it rotates."""

from __future__ import annotations

import asyncio
import base64
import fcntl
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from socket import create_server
from typing import Final

import aiohttp
import yaml

from tests.conformance.build import downloaded
from tests.conformance.clusters.logged_process import LoggedProcess, logged
from tests.conformance.clusters.watched_cluster import PATIENCE_SECONDS
from tests.conformance.operators.cluster import OperatorCluster
from tests.conformance.operators.logs import DELETED, KnownErrors

PROGRAM: Final = "operators/jobset"
CLIENTS: Final = {"jobset*": ("get", "list", "create", "patch", "delete")}
"""It drops the error of a status update (Reconcile in pkg/controllers/jobset_controller.go)."""

LEASE: Final = ("jobset-system", "6d4f6a47.jobset.x-k8s.io")
SERVICE: Final = "jobset-system/jobset-webhook-service"
KNOWN_ERRORS: Final[KnownErrors] = {
    "the object has been modified; please apply your changes": "two of its controllers write",
    "Cert secret is not well-formed": "the secret is empty until it has issued a certificate",
    "jobs.batch .* already exists": "its cache does not have the Jobs yet that it has created",
    DELETED: "it works on a JobSet that is deleted meanwhile",
}

_ACCOUNT: Final = "system:serviceaccount:jobset-system:jobset-controller-manager"
_SECRET: Final = ("Secret", "jobset-webhook-server-cert", "jobset-system")
_PROBE_SECONDS: Final = 0.1
_MOUNT: Final = Path("/tmp/k8s-webhook-server/serving-certs")  # noqa: S108 - JobSet cannot be told
"""Where the volume with the certificate is mounted in JobSet's container."""


def free_port() -> int:
    """Return a port of the loopback interface that is free now."""
    with create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


async def install(cluster: OperatorCluster) -> None:
    """Apply JobSet's manifests."""
    await cluster.apply(downloaded(PROGRAM, "sigs.k8s.io/jobset") / "config" / "default")
    cluster.world.follow("JobSet")


@asynccontextmanager
async def jobset(
    cluster: OperatorCluster, program: Path, port: int
) -> AsyncIterator[LoggedProcess]:
    """Run JobSet, its webhooks at a port, until the block ends; it is ready when they are."""
    config = cluster.directory / "jobset.yaml"
    probes = f"127.0.0.1:{free_port()}"
    config.write_text(yaml.safe_dump(_configuration(port, probes)))
    kubeconfig = cluster.kubeconfig(_ACCOUNT)
    command = [str(program), f"--config={config}", f"--kubeconfig={kubeconfig}"]
    with _volume() as volume:
        async with logged(LoggedProcess(command, cluster.directory / "jobset.log")) as process:
            await _mount(cluster, volume)
            await _ready(f"http://{probes}/readyz")
            yield process


def _configuration(port: int, probes: str) -> dict[str, object]:
    return {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": True, "resourceNamespace": LEASE[0]},
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(_MOUNT)},
        "health": {"healthProbeBindAddress": probes},
        "metrics": {"bindAddress": "0"},
        "internalCertManagement": {"enable": True},
    }


@contextmanager
def _volume() -> Iterator[Path]:
    """Reserve the mount point; two tests cannot have it at a time."""
    _MOUNT.parent.mkdir(exist_ok=True)
    with (_MOUNT.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(_MOUNT, ignore_errors=True)
        _MOUNT.mkdir()
        try:
            yield _MOUNT
        finally:
            shutil.rmtree(_MOUNT)


async def _mount(cluster: OperatorCluster, volume: Path) -> None:
    """Write the certificate's files, as a kubelet does, once JobSet has issued it."""
    world = cluster.world
    await world.until(lambda: "tls.key" in ((world.get(*_SECRET) or {}).get("data") or {}))
    for name, content in (world.get(*_SECRET) or {})["data"].items():
        (volume / name).write_bytes(base64.b64decode(content))


async def _ready(url: str) -> None:
    """Probe it, as a kubelet does, until it is ready."""
    async with asyncio.timeout(PATIENCE_SECONDS), aiohttp.ClientSession() as session:
        while True:
            with suppress(aiohttp.ClientError):
                async with session.get(url) as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(_PROBE_SECONDS)
