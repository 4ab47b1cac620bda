"""The fixture that kr8s's own tests ask for: a cluster that is already there."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

# They list the pods of all namespaces, and then expect each of them to be there still. But kr8s
# does not wait for the namespaces of earlier tests to end, and the namespace controller empties
# a namespace only five seconds after it was deleted, as in a real cluster.
SEVERAL_READS: Final = frozenset(
    {
        "test_list_and_ensure",
        "test_pod_list",
        "test_pod_list_sync",
        "test_sync_api_returns_sync_objects",
        "test_sync_get_returns_sync_objects",
    }
)
LASTING: Final = "metadata.namespace!=default,metadata.namespace!=kube-system"


@dataclass(frozen=True, slots=True)
class RunningCluster:
    """The cluster fixture of kr8s's tests."""

    kubeconfig_path: Path
    kubectl_path: str

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl and give what it printed; raises CalledProcessError if it failed."""
        try:
            return self._run(arguments)
        except subprocess.CalledProcessError as error:
            if arguments[0] != "create" or "object is being deleted" not in error.stderr:
                raise
        # kr8s names a namespace by four random digits, and earlier ones may still be terminating.
        self._run(("wait", *arguments[1:], "--for=delete"))
        return self._run(arguments)

    def _run(self, arguments: Sequence[str]) -> str:
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig_path)}
        command = [self.kubectl_path, *arguments]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        return done.stdout


@pytest.fixture(scope="session", autouse=True)
def k8s_cluster() -> RunningCluster:
    """Return the cluster that KUBECONFIG leads to."""
    kubectl = str(Path(sys.executable).with_name("kubectl"))
    return RunningCluster(Path(os.environ["KUBECONFIG"]), kubectl)


@pytest.fixture(autouse=True)
def settled(request: pytest.FixtureRequest, k8s_cluster: RunningCluster) -> None:
    """Wait until the pods of earlier tests are gone, if the test is one of ``SEVERAL_READS``."""
    if request.function.__name__ in SEVERAL_READS:
        where = ("--all-namespaces", f"--field-selector={LASTING}")
        k8s_cluster.kubectl("wait", "pods", *where, "--for=delete")


@pytest.fixture
def ensure_gc() -> Iterator[None]:
    """Collect what a test left behind, so that its sockets' warnings fall into that test."""
    yield
    gc.collect()
