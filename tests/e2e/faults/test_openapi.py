"""schemathesis makes requests out of the extender's OpenAPI document: each answer is documented."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Final

import pytest

from fakeapi.testing.fake_cluster import FakeCluster
from tests.e2e.faults.extender_processes import Extender, begun, extender, objects
from tests.faults.table import ANY_REQUEST

PROGRAM: Final = Path(sys.executable).with_name("schemathesis")
CONFORMING: Final = (
    "status_code_conformance,content_type_conformance,response_schema_conformance,"
    "response_headers_conformance"
)


async def asked_of_everything(running: Extender, home: Path, checks: str) -> None:
    """Ask, and fail with the report of what went wrong."""
    process = await asyncio.create_subprocess_exec(
        str(PROGRAM),
        "run",
        f"{running.url}/openapi.json",
        f"--checks={checks}",
        "--phases=coverage,fuzzing",
        f"--max-examples={ANY_REQUEST.times}",
        "--request-timeout=10",
        "--generation-deterministic",
        "--warnings=off",
        "--no-color",
        cwd=home,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    report, _ = await process.communicate()
    if process.returncode != 0:
        pytest.fail(report.decode(), pytrace=False)


async def test_of_one_that_is_ready(tmp_path: Path) -> None:
    async with FakeCluster(run="none") as cluster:
        cluster.load(objects())
        async with extender(tmp_path, cluster.url) as running:
            await asked_of_everything(running, tmp_path, f"not_a_server_error,{CONFORMING}")
            assert '"internal_error"' not in running.log.read_text()


async def test_of_one_that_is_not(tmp_path: Path) -> None:
    running = await begun(tmp_path, "--server", "http://127.0.0.1:9")
    await asked_of_everything(running, tmp_path, CONFORMING)
    assert '"internal_error"' not in await running.end()
