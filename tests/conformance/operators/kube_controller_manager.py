"""A whole kube-controller-manager: its default controllers, each with its own service account."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.conformance.clusters.logged_process import LoggedProcess
from tests.conformance.operators.cluster import OperatorCluster
from tests.conformance.operators.injected_faults import ALL_CALLS
from tests.conformance.operators.logs import DELETED, KnownErrors

PROGRAM: Final = "operators/kube-controller-manager"
USER: Final = "system:kube-controller-manager"
LEASE: Final = ("kube-system", "kube-controller-manager")
CLIENTS: Final = {"kube-controller-manager*": ALL_CALLS}

KNOWN_ERRORS: Final[KnownErrors] = {
    "The manifest file is empty, ignoring": "there is no --allow-metric-labels-manifest",
    "read version: .* is not as new as written version": "its cache waits for its own write",
    "the object has been modified; please apply your changes": "two controllers write at a time",
    "because it is being terminated": "workloads of a namespace are deleted after their pods",
    "unexpected items still remain in namespace": "pods of a namespace have a grace period",
    "Precondition failed: UID in precondition": "a Job was deleted and created again",
    "does not match the ResourceVersion in record": "it collects an object that changes meanwhile",
    "Error getting updated StatefulSet from lister": "one is deleted after a failed update",
    DELETED: "it works on an object that is deleted meanwhile",
    "horizontal.go.*unable to fetch metrics from resource metrics API": "there are no metrics",
}

IMPATIENT: Final = ("--node-monitor-period=1s", "--node-monitor-grace-period=15s")
"""Flags with which a silent node is noticed soon."""

_FLAGS: Final = (
    "--use-service-account-credentials",
    "--secure-port=0",
    *("--kube-api-qps=1000", "--kube-api-burst=2000"),
)


def kube_controller_manager(cluster: OperatorCluster, program: Path, *flags: str) -> LoggedProcess:
    """Return the process, which has not been started; it signs in as its user."""
    kubeconfig = cluster.kubeconfig(USER)
    files = [f"--{use}kubeconfig={kubeconfig}" for use in ("", "authentication-", "authorization-")]
    return LoggedProcess([str(program), *files, *_FLAGS, *flags], cluster.directory / "manager.log")
