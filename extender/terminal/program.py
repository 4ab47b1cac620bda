"""The program: its name, its version, and its messages on stderr.

It is called ``reprieve``, or ``kubectl reprieve`` as a plugin of kubectl, whose executable is
``kubectl-reprieve``.
"""

from __future__ import annotations

import sys
from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn

_NAME = "reprieve"
_PLUGIN = "kubectl-reprieve"
_MAX_WARNINGS = 20
_MAX_WARNING = 500


def program_name() -> str:
    """Return the name that users type: ``reprieve`` or ``kubectl reprieve``."""
    executable = sys.argv[0].rpartition("/")[2]
    return _PLUGIN.replace("-", " ") if executable == _PLUGIN else _NAME


def program_version() -> str:
    """Return the version of the installed package."""
    from importlib.metadata import version  # imported on use: start-up time

    return version(_NAME)


def usage_example(arguments: str) -> str:
    """Return the epilog of a command's help."""
    return f"Example: {program_name()} {arguments}"


def log_line(line: str) -> None:
    """Print a line on stderr, since stdout may hold an answer."""
    print(f"{program_name()}: {line}", file=sys.stderr)  # noqa: T201 - output of the command line


def log_warnings(warnings: Iterable[str], others: str) -> None:
    """Print each of the first warnings in one line, and the number of the ``others``."""
    left = iter(warnings)
    for warning in islice(left, _MAX_WARNINGS):
        log_line(f"warning: {' '.join(warning.split())[:_MAX_WARNING]}")
    more = sum(1 for _ in left)
    if more:
        log_line(f"warning: {more} more {others}")


def exit_with_errors(*errors: str) -> NoReturn:
    """Print one line for each usage error, and exit with 2."""
    for problem in errors:
        log_line(" ".join(problem.split()))
    sys.exit(2)
