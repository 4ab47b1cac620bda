"""The log on stderr: its level, and its lines for machines or for people."""

from __future__ import annotations

import logging
import os
import sys
from enum import Enum

import msgspec
import structlog
from structlog.typing import Processor

from extender.terminal.log_limits import bound_event


class LogLevel(Enum):
    """The least severe events that are logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(Enum):
    """The lines of the log: a JSON object for each event, or columns for people."""

    JSON = "json"
    TEXT = "text"


def log_to_stderr(level: LogLevel = LogLevel.DEBUG, log_format: LogFormat = LogFormat.JSON) -> None:
    """Send the log to stderr, one line for each event; stdout is for the commands."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            bound_event,
            _renderer(log_format),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.name]
        ),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def _renderer(log_format: LogFormat) -> Processor:
    if log_format is LogFormat.JSON:
        return structlog.processors.JSONRenderer(serializer=_as_json)
    return structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty() and not os.environ.get("NO_COLOR"),
        exception_formatter=structlog.dev.plain_traceback,
        repr_native_str=True,  # a text that a client sends does not begin a line of its own
    )


def _as_json(event: object, **_: object) -> str:
    return msgspec.json.encode(event, enc_hook=repr).decode()
