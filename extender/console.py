"""What all commands print on stderr: the log and usage errors."""

from __future__ import annotations

import sys
from typing import NoReturn

import msgspec
import structlog


def log_line(line: str) -> None:
    """Print a line on stderr, since stdout may hold an answer."""
    print(f"reprieve: {line}", file=sys.stderr)  # noqa: T201 - output of the command line


def exit_with_errors(*errors: str) -> NoReturn:
    """Print one line for each usage error, and exit with 2."""
    for problem in errors:
        log_line(" ".join(problem.split()))
    sys.exit(2)


def log_to_stderr() -> None:
    """Send the log to stderr, one JSON line for each event; stdout is for the commands."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(serializer=_as_json),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def _as_json(event: object, **_: object) -> str:
    return msgspec.json.encode(event, enc_hook=repr).decode()
