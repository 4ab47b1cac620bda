"""The tests of other clients, as their packages carry them, against this server.

What cannot pass is listed with the reason in ``suites/*.yaml``.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from fakeapi import FakeCluster
from tests.builders import manifest
from tests.e2e.suites.suite_runner import run_suite


def package(name: str) -> Path:
    """Return the directory of an installed package without importing it."""
    spec = importlib.util.find_spec(name)
    assert spec is not None, f"{name} is not installed; run make e2e"
    assert spec.origin is not None, f"{name} is not a package"
    return Path(spec.origin).parent


RecordProperty = Callable[[str, object], None]
RUN: Final = "gc,namespaces,scheduler,kubelet"
NODE: Final = manifest("Node", "node", metadata={"labels": {"kubernetes.io/os": "linux"}})
SIMULATION_SCRIPT: Final = {"pods": [{"match": {}, "start": 0, "stop": 0}]}
"""Every pod runs at once and stops at once."""
SYSTEM_POD: Final = manifest(
    "Pod",
    "coredns",
    namespace="kube-system",
    metadata={"labels": {"k8s-app": "kube-dns"}},
    spec={"nodeName": "node", "containers": [{"name": "coredns", "image": "coredns"}]},
    status={},
)


@pytest.mark.parametrize("part", ["api", "auth", "config", "data_utils", "gen", "io", "objects"])
async def test_kr8s(part: str, tmp_path: Path, record_property: RecordProperty) -> None:
    async with FakeCluster(run=RUN, kubelet=SIMULATION_SCRIPT, tls=True) as cluster:
        cluster.load([NODE, SYSTEM_POD])
        counts = await run_suite(
            [str(package("kr8s") / f"tests/test_{part}.py"), "-p", "tests.e2e.suites.kr8s_cluster"],
            "kr8s.yaml",
            {"KUBECONFIG": str(cluster.kubeconfig_path)},
            tmp_path,
        )
    record_property("kr8s", counts)


async def test_the_dynamic_client_of_kubernetes_asyncio(
    tmp_path: Path, record_property: RecordProperty
) -> None:
    dynamic = package("kubernetes_asyncio") / "dynamic"
    async with FakeCluster(run=RUN, kubelet=SIMULATION_SCRIPT) as cluster:
        cluster.load([NODE])
        counts = await run_suite(
            [
                str(dynamic / "client_test.py"),
                str(dynamic / "discovery_test.py"),
                "-p",
                "tests.e2e.suites.e2e_base",
                "--timeout=60",  # it waits for twelve seconds itself
            ],
            "kubernetes_asyncio.yaml",
            {"KUBECONFIG": str(cluster.kubeconfig_path), "SERVER": cluster.url},
            tmp_path,
        )
    record_property("kubernetes_asyncio", counts)
