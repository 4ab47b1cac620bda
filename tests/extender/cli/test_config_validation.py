"""A server that is started without the vectorized engine logs one line."""

from __future__ import annotations

import pytest

from extender.cli import config_validation
from extender.cli.config_validation import log_engine_warning

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
