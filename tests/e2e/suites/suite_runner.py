"""Running a suite that others wrote, in a pytest of its own, against a served fakeapi."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.suites.expectations import VARIABLE

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[2]
PATIENCE_SECONDS: Final = 300.0


async def run_suite(
    tests: Sequence[str], expectations: str, environment: Mapping[str, str], home: Path
) -> None:
    """Run a suite, and fail with its report unless all goes as expected."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "pytest",
        "-c",
        str(HERE / "pytest.ini"),
        *tests,
        cwd=home,
        env={
            **os.environ,
            **environment,
            "HOME": str(home),
            "TMPDIR": str(home),
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            VARIABLE: str(HERE / expectations),
        },
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
