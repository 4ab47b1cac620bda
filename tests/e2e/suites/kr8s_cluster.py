"""The fixture that kr8s's own tests ask for: a cluster that is already there."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True, slots=True)
class RunningCluster:
    """What kr8s's tests know of a cluster."""

    kubeconfig_path: Path
    kubectl_path: str

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl and give what it printed; raises CalledProcessError if it failed."""
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig_path)}
        command = [self.kubectl_path, *arguments]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        return done.stdout


@pytest.fixture(scope="session", autouse=True)
def k8s_cluster() -> RunningCluster:
    """Return the cluster that KUBECONFIG leads to."""
    kubectl = str(Path(sys.executable).with_name("kubectl"))
    return RunningCluster(Path(os.environ["KUBECONFIG"]), kubectl)


@pytest.fixture
def ensure_gc() -> Iterator[None]:
    """Collect what a test left behind, so that its sockets' warnings fall into that test."""
    yield
    gc.collect()
