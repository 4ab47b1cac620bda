"""The example of docs/how-it-decides.md is what ``reprieve explain preempt`` prints."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Callable

import pytest

from tests.commands import ROOT

PAGE = (ROOT / "docs" / "how-it-decides.md").read_text()


def test_the_example_is_true(
    monkeypatch: pytest.MonkeyPatch,
    command_line: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = re.search(r"^    \$ reprieve (.*)\n((?:    .*\n)+)", PAGE, re.MULTILINE)
    assert found is not None
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "200")
    assert command_line(*shlex.split(found[1])) == 0
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert printed == textwrap.dedent(found[2]).splitlines()
