"""KWOK as the kubelet of nodes, with the stages that it comes with."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.builders import Document, manifest
from tests.conformance.build import downloaded
from tests.conformance.clusters.logged_process import LoggedProcess
from tests.conformance.operators.cluster import OperatorCluster
from tests.conformance.operators.logs import DELETED, KnownErrors
from tests.conformance.operators.objects import WORKERS

PROGRAM: Final = "operators/kwok"
CLIENTS: Final = {"kwok*": ("get", "list", "create", "update")}
"""It gives up a stage after a 500 or a reset (shouldRetry in pkg/kwok/controllers/utils.go)."""

KNOWN_ERRORS: Final[KnownErrors] = {
    DELETED: "its delete of a pod shortens the grace period, which it takes for news",
    "Failed to run server.*context canceled": "the end of its own HTTP server, when it is stopped",
}

_ACCOUNT: Final = "system:serviceaccount:kube-system:kwok-controller"
_MANIFESTS: Final = ("crd", "rbac", "stage/fast")
_MANAGED: Final = "kwok.x-k8s.io/node"


NODES: Final = tuple(f"node-{number}" for number in range(WORKERS))


def nodes() -> list[Document]:
    """Return nodes that KWOK manages."""
    return [manifest("Node", name, metadata={"annotations": {_MANAGED: "fake"}}) for name in NODES]


async def kwok(cluster: OperatorCluster, program: Path) -> LoggedProcess:
    """Install KWOK, and return its process, which has not been started."""
    for manifests in _MANIFESTS:
        await cluster.apply(downloaded(PROGRAM, "sigs.k8s.io/kwok") / "kustomize" / manifests)
    flags = (
        f"--kubeconfig={cluster.kubeconfig(_ACCOUNT)}",
        f"--manage-nodes-with-annotation-selector={_MANAGED}=fake",
        *("--enable-crds=Stage", "--server-address=127.0.0.1:0"),
        "--node-lease-duration-seconds=40",
    )
    return LoggedProcess([str(program), *flags], cluster.directory / "kwok.log")
