"""``reprieve policy``: check a policy file, show a policy with its defaults, print the schema."""

from __future__ import annotations

import sys
from typing import Annotated, Final

import msgspec
import typer
from rich.console import RenderableType

from extender.cli.field_rows import field_rows
from extender.config.policy_file import PolicyFile, policy_schema
from extender.config.preemption_policy import InvalidPolicyError, load_policy_file
from extender.terminal.command_line import OutputOption
from extender.terminal.output import Answer, OutputFormat, print_answer
from extender.terminal.plain_tables import plain_table

CHECK_EXAMPLE: Final = "policy check policy.yaml"
SHOW_EXAMPLE: Final = "policy show kube-scheduler -o yaml"
SCHEMA_EXAMPLE: Final = "policy schema"


def check_policy(
    file: Annotated[str, typer.Argument(metavar="F", help="A policy file.")],
) -> None:
    """Validate a policy file, and print all of its errors.

    Each is a line FILE:LINE: FIELD: ERROR; then the exit code is 1.
    """
    try:
        load_policy_file(file)
    except InvalidPolicyError as error:
        sys.stdout.writelines(f"{' '.join(line.split())}\n" for line in error.errors)
        raise typer.Exit(1) from None
    sys.stdout.write(f"{file}: valid\n")


def show_policy(
    policy: Annotated[
        str, typer.Argument(metavar="NAME|F", help="A built-in policy, or a policy file.")
    ],
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show a policy with all of its defaults.

    -o yaml prints a policy file.
    """
    file = load_policy_file(policy)
    print_answer(output, Answer(lambda: file, lambda _: _policy_table(file)))


def print_policy_schema() -> None:
    """Print the JSON Schema of policy files."""
    sys.stdout.write(policy_schema())


def _policy_table(file: PolicyFile) -> RenderableType:
    table = plain_table("rule", "field", "value")
    for rule in file.rules:
        for path, value in field_rows(msgspec.to_builtins(rule)):
            shown = rule.name if path == "name" else ""
            table.add_row(shown, path, value)
    return table
