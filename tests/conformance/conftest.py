"""Fixtures of real Kubernetes processes; without Go there is nothing to compare with."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import yaml

from tests.conformance.clusters.controller_processes import Controllers, real
from tests.conformance.clusters.workloadspread_cluster import SIMULATION_SCRIPT
from tests.conformance.scheduling.kube_apiserver import RealApi, real_api
from tests.conformance.scheduling.releases import built
from tests.conformance.scheduling.servers import Opening, fake_server


@pytest.fixture(scope="session")
def real_controllers() -> Controllers:
    """Controllers of a real kube-controller-manager; skips where there is no Go, but not in CI."""
    return real(built("controllers"))


@pytest.fixture(scope="session")
def real_server() -> Iterator[RealApi]:
    """A real kube-apiserver; skips where there is no Go, but not in CI."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        pair = real_api(built("etcd"), built("apiserver"))
        yield runner.run(stack.enter_async_context(pair))
        runner.run(stack.aclose())


@pytest.fixture
def opening(request: pytest.FixtureRequest) -> Opening:
    """Return what starts the API server that the parameter names: ``fakeapi`` or ``real``."""
    if request.param == "fakeapi":
        return fake_server
    found: RealApi = request.getfixturevalue("real_server")
    return found.opened


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Return the simulation script of the kubelets that run spread pods."""
    file = tmp_path / "book.yaml"
    file.write_text(yaml.safe_dump(SIMULATION_SCRIPT))
    return file
