"""The list of commands: complete, with summaries, and loaded without any of the commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from extender.terminal.command_groups import LazyCommand
from extender.terminal.program import program_version
from fakeapi.cli.root_command import all_commands

Run = Callable[..., int]


def every_command() -> Iterator[tuple[str, LazyCommand]]:
    for command in all_commands():
        yield str(command.name), command
        for name, inner in getattr(command.load(), "commands", {}).items():
            yield f"{command.name} {name}", inner


COMMANDS = dict(every_command())


@pytest.mark.parametrize("name", COMMANDS)
def test_a_summary_is_the_first_line_of_the_help(name: str) -> None:
    assert COMMANDS[name].short_help == COMMANDS[name].load().help.splitlines()[0]


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_every_command_has_help_with_an_example(
    name: str, option: str, command_line: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line(*name.split(), option) == 0
    out, err = capsys.readouterr()
    assert (out.startswith(f"Usage: {' '.join(['reprieve', *name.split()])} "), err) == (True, "")
    assert f"Example: reprieve {name}" in " ".join(out.split())


def test_the_version_is_that_of_the_package(
    command_line: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line("--version") == 0
    assert capsys.readouterr() == (f"reprieve {program_version()}\n", "")


def test_a_plugin_of_kubectl_names_itself_as_users_call_it(
    command_line: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line("explain", "preempt", "-h", program="kubectl-reprieve") == 0
    usage, example = (
        "Usage: kubectl reprieve explain preempt ",
        "Example: kubectl reprieve explain ",
    )
    out, _ = capsys.readouterr()
    assert (out.startswith(usage), example in out) == (True, True)
    assert command_line("explain", "preempt", program="kubectl-reprieve") == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line == (
        "kubectl reprieve: Missing option '--pod'; see kubectl reprieve explain preempt --help"
    )


def test_completion_lists_commands(
    command_line: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_REPRIEVE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "reprieve explain s")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert command_line() == 0
    assert capsys.readouterr().out.split() == ["scaledown", "spread"]


def test_a_misspelled_command_is_one_line(
    command_line: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line("checkconfig") == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line == (
        "reprieve: No such command 'checkconfig'. Did you mean 'check-config'; see reprieve --help"
    )
