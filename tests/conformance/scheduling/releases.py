"""The releases of kube-scheduler that scenarios are played with, and of what else is real."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.conformance.build import EARLIER_SCHEDULERS, NoGoError, program

RELEASES: Final[Mapping[str, str]] = {"1.37": "scheduler", "1.30": "scheduler-1.30"}
"""Release → the program that is built for it."""
ALL_RELEASES: Final[Mapping[str, str]] = {
    **RELEASES,
    **{name.partition("-")[2]: name for name in EARLIER_SCHEDULERS},
}
"""The same with the releases that only ``make conformance-all`` builds."""


def scheduler(release: str) -> Path:
    """Return the kube-scheduler of a release; skip the test if there is no Go, but not in CI."""
    return built(ALL_RELEASES[release])


def built(name: str) -> Path:
    """Return a program; skips the test where there is no Go, but not in CI."""
    try:
        return program(name)
    except NoGoError as error:
        if "CI" in os.environ:
            raise
        pytest.skip(str(error))
