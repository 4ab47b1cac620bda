"""The pages on policies and explanations have the output that their commands print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

import pytest

from docs.hooks import ROOT
from tests.commands import reprieve

_BLOCK = re.compile(r"(?:^ {4}.*\n|^\n(?= {4}))+", re.MULTILINE)


class Session(NamedTuple):
    """A command of a page, and the output that the page shows."""

    command: str
    output: str


def code_of(page: str) -> list[str]:
    """Return the code blocks of a page."""
    return [dedent(block).strip() for block in _BLOCK.findall((ROOT / "docs" / page).read_text())]


def sessions() -> list[Session]:
    blocks = [block for page in ("policies.md", "explain.md") for block in code_of(page)]
    shown = [block.removeprefix("$ ").partition("\n") for block in blocks if block[:2] == "$ "]
    return [Session(command, output) for command, _, output in shown]


@pytest.mark.parametrize("session", sessions(), ids=lambda session: session.command[:30])
async def test_a_command_prints_what_the_page_shows(session: Session, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(next(block for block in code_of("policies.md") if block[:5] == "name:"))
    program, *arguments = shlex.split(session.command)
    done = await reprieve(*(str(policy) if each == policy.name else each for each in arguments))
    assert (program, done.code, done.err) == ("reprieve", 0, "")
    assert done.out.split() == session.output.split()


def test_both_pages_have_commands_with_output() -> None:
    assert len(sessions()) == 2
