"""The extender answers each request that schemathesis generates as its OpenAPI document says."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fakeapi.testing.fake_cluster import FakeCluster
from tests.e2e.faults.extender_processes import Extender, extender, objects, start_extender
from tests.e2e.suites.suite_runner import run_schemathesis
from tests.faults.table import ANY_REQUEST

CONFORMANCE: Final = (
    "status_code_conformance,content_type_conformance,response_schema_conformance,"
    "response_headers_conformance"
)


async def call_everything(running: Extender, home: Path, checks: str) -> None:
    """Send requests to all endpoints, and fail with the report of errors."""
    await run_schemathesis(
        f"{running.url}/openapi.json",
        f"--checks={checks}",
        "--phases=coverage,fuzzing",
        f"--max-examples={ANY_REQUEST.times}",
        "--request-timeout=10",
        home=home,
    )


async def test_an_extender_that_is_ready(tmp_path: Path) -> None:
    async with FakeCluster(run="none") as cluster:
        cluster.load(objects())
        async with extender(tmp_path, cluster.url) as running:
            await call_everything(running, tmp_path, f"not_a_server_error,{CONFORMANCE}")
            assert '"internal_error"' not in running.log.read_text()


async def test_an_extender_that_is_not_ready(tmp_path: Path) -> None:
    running = await start_extender(tmp_path, "--server", "http://127.0.0.1:9")
    await call_everything(running, tmp_path, CONFORMANCE)
    assert '"internal_error"' not in await running.end()
