"""The releases of kube-scheduler that scenarios are played with, and of what else is real."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.conformance.build import EARLIER_SCHEDULERS, NoGoError, program

_USUAL: Final[Mapping[str, str]] = {"1.37": "scheduler", "1.30": "scheduler-1.30"}
ALL_RELEASES: Final[Mapping[str, str]] = {
    **_USUAL,
    **{name.partition("-")[2]: name for name in EARLIER_SCHEDULERS},
}
"""Release → the program that is built for it."""
RELEASES: Final = ALL_RELEASES if "ALL_RELEASES" in os.environ else _USUAL
"""The releases that tests run with: all of them in ``make conformance-all``."""


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
