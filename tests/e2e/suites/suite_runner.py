"""Suites of other projects in processes of their own: pytest, and schemathesis."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.suites.expectations import VARIABLE

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[2]
PATIENCE_SECONDS: Final = 300.0
_COUNT: Final = re.compile(r"(\d+) (passed|xfailed|failed)")


async def run_suite(
    tests: Sequence[str], expectations: str, environment: Mapping[str, str], home: Path
) -> tuple[int, int, int]:
    """Run a pytest suite, and fail with its report unless its results are as expected.

    Return how many tests passed, failed as listed, and failed otherwise.
    """
    own = {
        **environment,
        "HOME": str(home),
        "TMPDIR": str(home),
        "PYTHONDONTWRITEBYTECODE": "1",
        VARIABLE: str(HERE / expectations),
    }
    command = (sys.executable, "-m", "pytest", "-c", str(HERE / "pytest.ini"), *tests)
    report = await _run(command, own, home)
    counts = {result: int(number) for number, result in _COUNT.findall(report)}
    return counts.get("passed", 0), counts.get("xfailed", 0), counts.get("failed", 0)


async def run_schemathesis(document: str, *flags: str, home: Path, hooks: str = "") -> None:
    """Send requests generated from an OpenAPI document, and fail with the report of errors."""
    fixed = ("--generation-deterministic", "--warnings=off", "--no-color")
    program = Path(sys.executable).with_name("schemathesis")
    environment = {"SCHEMATHESIS_HOOKS": hooks} if hooks else {}
    await _run((str(program), "run", document, *flags, *fixed), environment, home)


async def _run(command: Sequence[str], environment: Mapping[str, str], home: Path) -> str:
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=home,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            report, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode != 0:
        pytest.fail(report.decode(), pytrace=False)
    return report.decode()
