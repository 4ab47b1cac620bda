"""The page about the command line: every command with its arguments and options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import typer
from typer.core import TyperGroup

from docs.reference.tables import code, table
from extender.terminal.command_groups import LazyCommand, command_line
from fakeapi.cli.root_command import all_commands

PAGE: Final = "reference/commands.md"
PROGRAM: Final = "reprieve"

_TEXT: Final = """# Commands

`reprieve COMMAND --help` prints the same. As a plugin of kubectl, the program is
`kubectl reprieve`. A usage error is one line on stderr, and the exit code is 2.

{options}
{index}
"""


class Command(NamedTuple):
    """A command by its words, such as ``reprieve explain preempt``, and how typer runs it."""

    name: str
    summary: str
    command: Any


def page() -> str:
    """Return the page."""
    every = list(commands())
    index = ((f"[{code(each.name)}](#{_anchor(each.name)})", each.summary) for each in every)
    text = _TEXT.format(
        options=_options(PROGRAM, typer.main.get_command(command_line(all_commands()))),
        index=table(("command", "meaning"), index),
    )
    return text + "".join(map(_section, every))


def commands(of: Iterable[LazyCommand] | None = None, prefix: str = PROGRAM) -> Iterator[Command]:
    """Yield the commands and those of their groups; a group itself runs nothing."""
    for lazy in all_commands() if of is None else of:
        name, loaded = f"{prefix} {lazy.name}", lazy.load()
        if isinstance(loaded, TyperGroup):
            members = loaded.commands.values()
            yield from commands((each for each in members if isinstance(each, LazyCommand)), name)
        else:
            yield Command(name, lazy.short_help or "", loaded)


def _section(each: Command) -> str:
    context = each.command.make_context(each.name, [], resilient_parsing=True)
    usage = " ".join((each.name, *each.command.collect_usage_pieces(context)))
    example = (each.command.epilog or "").removeprefix("Example: ")
    lines = (
        f"\n## {each.name}\n",
        f"{each.command.help}\n",
        f"    {usage}\n",
        _options(each.name, each.command),
        f"For example:\n\n    {example}\n" if example else "",
    )
    return "\n".join(lines)


def _options(name: str, command: Any) -> str:
    """Return the arguments and options of a command, as its help has them."""
    context = command.make_context(name, [], resilient_parsing=True)
    records = (each.get_help_record(context) for each in command.get_params(context))
    rows = [(code(record[0]), record[1]) for record in records if record is not None]
    return table(("option", "meaning"), rows)


def _anchor(name: str) -> str:
    return name.replace(" ", "-")
