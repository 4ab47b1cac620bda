"""What every command line of the project says on stderr: its log, and what it refuses."""

from __future__ import annotations

import sys
from typing import NoReturn

import msgspec
import structlog


def say(line: str) -> None:
    """Say a line on stderr, where it is in nobody's way: stdout may be an answer."""
    print(f"reprieve: {line}", file=sys.stderr)  # noqa: T201 - the command line's voice


def refuse(*problems: str) -> NoReturn:
    """Say in one line each what the user got wrong, and exit with 2."""
    for problem in problems:
        say(" ".join(problem.split()))
    sys.exit(2)


def log_to_stderr() -> None:
    """Send the log, one JSON line for each event, to stderr: stdout belongs to the commands."""
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
