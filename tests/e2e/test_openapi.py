"""No request that schemathesis generates from fakeapi's OpenAPI documents is answered with a 5xx.

Bindings are excluded: a kube-apiserver also answers 500 to one that names no node.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fakeapi import FakeCluster
from tests.e2e.suites.suite_runner import run_schemathesis


@pytest.mark.parametrize(
    "version", ["api/v1", "apis/apps/v1", "apis/policy/v1", "apis/scheduling.k8s.io/v1"]
)
async def test_no_request_breaks_the_server(version: str, tmp_path: Path) -> None:
    async with FakeCluster() as cluster:
        await run_schemathesis(
            f"{cluster.url}/openapi/v3/{version}",
            f"--url={cluster.url}",
            "--checks=not_a_server_error",
            "--exclude-path-regex=/bindings?$",
            "--phases=fuzzing",
            "--max-examples=20",
            "--max-time=20",
            "--request-timeout=5",
            home=tmp_path,
            hooks="tests.e2e.suites.short_watches",
        )
