"""Fixtures of all tests, and Hypothesis profiles.

The profiles quick (``make test``) and ci repeat the same examples, dev draws new ones in each run,
and nightly and fuzz draw more of them.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

from fakeapi import FakeCluster
from fakeapi.cli.root_command import main

# A job in the background ignores it, and so would the processes that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "dev", max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=15)
settings.register_profile("nightly", settings.get_profile("dev"), max_examples=2000)
settings.register_profile("fuzz", settings.get_profile("dev"), max_examples=2_500)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if "CI" in os.environ else "dev")
)


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with FakeCluster() as running:
        yield running


@pytest.fixture
def command_line(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., int]]:
    """Return a function that runs a short command in this process, since a new one takes a second.

    The function returns the exit code.
    """

    def run(*arguments: str, program: str = "reprieve") -> int:
        monkeypatch.setattr(sys, "argv", [program, *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code is None or isinstance(ended.value.code, int)
        return ended.value.code or 0

    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # typer puts its own there
    yield run
    structlog.reset_defaults()
