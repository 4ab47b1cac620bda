"""Every command of README and docs has arguments that the command line accepts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import typer
from typer.exceptions import TyperException

from extender.terminal.command_groups import LazyCommand, command_line
from fakeapi.cli.root_command import all_commands
from tests.commands import ROOT

_PROMPT = re.compile(r"(?:\$ )?(?:\.venv/bin/)?(?:kubectl )?reprieve ")
_INLINE = re.compile(r"`((?:\.venv/bin/)?(?:kubectl )?reprieve [^`]+)`")
_END = re.compile(r"\s{3,}|\s#|\s[|&>]|…")


class Typed(NamedTuple):
    """A command of a page: its arguments, and whether it is shown to be typed as it is."""

    page: str
    arguments: tuple[str, ...]
    is_whole: bool


def pages() -> Iterator[tuple[str, str]]:
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        yield path.name, path.read_text()


def arguments_of(text: str) -> tuple[str, ...]:
    return tuple(shlex.split(_END.split(text)[0]))


def commands() -> list[Typed]:
    found = set[Typed]()
    for page, text in pages():
        for line in re.sub(r" \\\n\s*", " ", text).splitlines():
            if prompt := _PROMPT.match(line.strip()):
                whole = line.startswith(("    ", "$ "))
                found.add(Typed(page, arguments_of(line.strip()[prompt.end() :]), whole))
        for inline in _INLINE.findall(" ".join(text.split())):
            arguments = arguments_of(_PROMPT.sub("", inline, count=1))
            found.add(Typed(page, arguments, is_whole=False))
    return sorted(found)


def parse(command: Any, arguments: list[str], name: str) -> None:
    """Parse arguments without running a command; raise an error of usage."""
    command = command.load() if isinstance(command, LazyCommand) else command
    if hasattr(command, "resolve_command") and arguments and not arguments[0].startswith("-"):
        context = typer.Context(command, info_name=name)
        found, below, rest = command.resolve_command(context, arguments)
        parse(below, rest, found)
    else:
        command.make_context(name, arguments)


def problem(typed: Typed) -> str:
    """Return why a command is not accepted; "" if it is, or if only an inline one lacks options."""
    root = typer.main.get_command(command_line(all_commands()))
    try:
        parse(root, list(typed.arguments), "reprieve")
    except (typer.Exit, SystemExit):  # --version and --help
        return ""
    except TyperException as error:
        text = error.format_message()
        return "" if text.startswith("Missing ") and not typed.is_whole else text
    return ""


@pytest.mark.parametrize("typed", commands(), ids=lambda typed: " ".join(typed.arguments)[:60])
def test_a_documented_command_is_accepted(typed: Typed) -> None:
    assert problem(typed) == ""


@pytest.mark.parametrize("arguments", [("serve", "--serch", "x"), ("explain", "preempt")])
def test_other_commands_are_not(arguments: tuple[str, ...]) -> None:
    assert problem(Typed("page", arguments, is_whole=True))


def test_the_pages_have_commands_of_every_group() -> None:
    shown = {typed.arguments[0] for typed in commands()}
    assert shown >= {command.name for command in all_commands()}
