"""Groups of commands that are imported when they run, and the command line as a whole.

The help of a group lists names and summaries, and loads no command. So help and completion are
fast, and a command imports only what it needs. Garbage collection is disabled while a command is
imported, because its modules stay loaded.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from extender.terminal.program import (
    exit_with_errors,
    program_name,
    program_version,
    usage_example,
)
from policies.kubernetes.input_error import InputError


class LazyCommand(TyperCommand):
    """A command or a group: its name, the first line of its help, and what imports it."""

    def __init__(self, name: str, summary: str, load: Callable[[], typer.Typer]) -> None:
        super().__init__(name, short_help=summary, rich_markup_mode=None)
        self._load = load

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Import the command, and parse its arguments; its log is sent to stderr."""
        from extender.terminal.log_output import log_to_stderr  # imported on use: start-up time

        gc.disable()
        log_to_stderr()
        command = self.load()
        gc.freeze()
        gc.enable()
        return command.make_context(info_name, args, parent=parent, **extra)

    def load(self) -> Any:
        """Import the command, and return it as typer runs it."""
        return typer.main.get_command(self._load())


def single_command(run: Callable[..., None], example: str) -> typer.Typer:
    """Return a command; ``example`` are arguments of the program that run it."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(epilog=usage_example(example))(run)
    return app


def command_group(help_text: str, example: str, commands: Iterable[LazyCommand]) -> typer.Typer:
    """Return a group of commands; ``example`` are arguments of the program that run one of them."""
    return typer.Typer(
        cls=_group_class(commands),
        callback=_no_options,
        help=help_text,
        epilog=usage_example(example),
        add_completion=False,
        rich_markup_mode=None,
    )


def command_line(commands: Iterable[LazyCommand]) -> typer.Typer:
    """Return the command line with these commands.

    kubectl completes its plugins by other means, so only ``reprieve`` itself installs completion.
    """
    return typer.Typer(
        cls=_group_class(commands),
        callback=_root_options,
        epilog=usage_example("explain preempt --cluster c.yaml --pod p.yaml"),
        context_settings={"help_option_names": ["-h", "--help"]},
        add_completion=" " not in program_name(),
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )


def run_command_line(app: typer.Typer) -> None:
    """Run a command line; an error in its input is one line on stderr and exit code 2."""
    try:
        code = app(prog_name=program_name(), standalone_mode=False)
    except TyperException as error:
        context = getattr(error, "ctx", None)
        command = program_name() if context is None else context.command_path
        exit_with_errors(f"{error.format_message().rstrip('.?')}; see {command} --help")
    except InputError as error:
        exit_with_errors(*error.errors)
    sys.exit(code)


def _group_class(commands: Iterable[LazyCommand]) -> type[TyperGroup]:
    class Group(TyperGroup):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            for command in commands:
                self.add_command(command)

    return Group


def _no_options() -> None:
    pass


def _print_version(requested: bool) -> None:  # noqa: FBT001 - a flag of the command line
    if requested:
        print(f"{program_name()} {program_version()}")  # noqa: T201 - the answer
        raise typer.Exit


def _root_options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Take and explain scheduling decisions of Kubernetes, and serve a Kubernetes API."""
