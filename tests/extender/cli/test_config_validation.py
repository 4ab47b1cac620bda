"""Intervals that are too short, and an engine that is missing, are logged in one line."""

from __future__ import annotations

import pytest

from extender.cli import config_validation
from extender.cli.config_validation import log_engine_warning, log_interval_warnings
from extender.config.component_config import Config

MISSING = (
    "reprieve: the vectorized engine needs the extra 'vectorized': "
    "pip install 'reprieve[vectorized]'; "
    "without it, a decision over 1,000 nodes takes about a second\n"
)


def test_no_line_where_the_engine_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    log_engine_warning()
    assert capsys.readouterr().err == ""


def test_one_line_where_it_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(config_validation, "VECTORIZED", False)
    log_engine_warning()
    assert capsys.readouterr().err == MISSING


SHORT = (
    "reprieve: {} is short: API servers send bookmarks about once a minute, so that the extender "
    "{} between two of them; expected at least 75\n"
)
INTERVALS: dict[str, tuple[Config, str]] = {
    "the defaults": (Config(), ""),
    "the least": (Config(stale_seconds=75, watch_silence_seconds=75), ""),
    "stale between bookmarks": (
        Config(stale_seconds=74.5),
        SHORT.format("staleSeconds: 74.5", "is not ready"),
    ),
    "watches that end between bookmarks": (
        Config(watch_silence_seconds=30),
        SHORT.format("watchSilenceSeconds: 30", "restarts its watches"),
    ),
}


@pytest.mark.parametrize(("config", "lines"), INTERVALS.values(), ids=INTERVALS)
def test_intervals_that_are_shorter_than_those_of_bookmarks(
    config: Config, lines: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log_interval_warnings(config)
    assert capsys.readouterr().err == lines
