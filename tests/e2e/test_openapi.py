"""schemathesis makes requests out of our own OpenAPI documents: none may be answered with a 5xx.

Left out are bindings: a kube-apiserver, too, answers 500 to one that names no node.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Final

import pytest

from fakeapi import FakeCluster
from tests.e2e.suites.suite_runner import ROOT

PROGRAM: Final = Path(sys.executable).with_name("schemathesis")
BUDGET_SECONDS: Final = "20"
HOOKS: Final = "tests.e2e.suites.short_watches"


@pytest.mark.parametrize(
    "version", ["api/v1", "apis/apps/v1", "apis/policy/v1", "apis/scheduling.k8s.io/v1"]
)
async def test_no_request_breaks_the_server(version: str, tmp_path: Path) -> None:
    async with FakeCluster() as cluster:
        process = await asyncio.create_subprocess_exec(
            str(PROGRAM),
            "run",
            f"{cluster.url}/openapi/v3/{version}",
            f"--url={cluster.url}",
            "--checks=not_a_server_error",
            "--exclude-path-regex=/bindings?$",
            "--phases=fuzzing",
            "--max-examples=20",
            f"--max-time={BUDGET_SECONDS}",
            "--request-timeout=5",
            "--generation-deterministic",
            "--warnings=off",
            "--no-color",
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "SCHEMATHESIS_HOOKS": HOOKS},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        report, _ = await process.communicate()
    if process.returncode != 0:
        pytest.fail(report.decode(), pytrace=False)
