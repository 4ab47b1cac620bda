"""The output of the demo: lines for a file or pipe, one screen for a terminal."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from fakeapi.demo.command import print_outcome
from fakeapi.demo.driver import DemoOutcome
from fakeapi.demo.output import open_screen, output_console
from fakeapi.demo.steps import DemoStep
from tests.fakeapi.demo.observed_states import FULL, PREEMPTED, SMALL

LONG = "a long line " * 30


def shown_on(text: StringIO, *, terminal: bool | None = None) -> str:
    console = Console(file=text, width=140, height=40, _environ={}, force_terminal=terminal)
    with open_screen(console, SMALL) as screen:
        screen.show(DemoStep.FILLING, replace(FULL, seconds=1.0), ("one", LONG))
        screen.show(DemoStep.FILLING, replace(FULL, seconds=1.5), ())
        screen.show(DemoStep.BURST, replace(PREEMPTED, seconds=2.0), ("two",))
    return text.getvalue()


def test_a_pipe_gets_lines() -> None:
    assert shown_on(StringIO()).splitlines() == [
        f"  1.0 s  == {DemoStep.FILLING.value}",
        "  1.0 s  one",
        f"  1.0 s  {LONG}",
        f"  2.0 s  == {DemoStep.BURST.value}",
        "  2.0 s  two",
    ]


def test_a_terminal_gets_one_screen() -> None:
    text = shown_on(StringIO(), terminal=True)
    assert "\x1b[" in text
    last = text.rpartition(DemoStep.BURST.value)[2]
    for expected in ("web", "vip", "one", "two", "pending"):
        assert expected in last
    assert LONG not in text


def test_the_end_of_the_demo() -> None:
    text = StringIO()
    console = Console(file=text, width=140)
    print_outcome(console, DemoOutcome(FULL, DemoStep.END))
    assert "reprieve demo questions" in text.getvalue()
    print_outcome(console, DemoOutcome(FULL, DemoStep.BURST, ("[nobody] was preempted",)))
    assert text.getvalue().splitlines()[-2:] == [
        f"The demo did not complete. Step {DemoStep.BURST.value!r} is not complete:",
        "  [nobody] was preempted",
    ]


def test_a_pipe_is_140_columns_wide(capsys: pytest.CaptureFixture[str]) -> None:
    output_console().print("x" * 141)
    assert capsys.readouterr().out == "x" * 140 + "\nx\n"
