"""Errors of asyncio's event loop as log lines, where asyncio prints a traceback for each.

If the process may open no more files, the loop reports an error for each connection in the queue of
the socket, and again each second. That is one log line in ten seconds. A server that ends within
such a second has closed the socket on which the loop listens again; that is no error.
"""

from __future__ import annotations

import asyncio
import errno
from typing import Any, Final

import structlog

INTERVAL_SECONDS: Final = 10.0
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_LISTENING_AGAIN: Final = "_start_serving"
"""The callback of asyncio that fails if the socket was closed."""


def log_loop_errors() -> None:
    """Log the errors of the running event loop from now on."""
    asyncio.get_running_loop().set_exception_handler(_LoopErrorLog())


class _LoopErrorLog:
    """An exception handler of an event loop."""

    def __init__(self) -> None:
        self._log = structlog.get_logger()
        self._quiet_until = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, ValueError) and _LISTENING_AGAIN in context["message"]:
            return
        if not isinstance(error, OSError) or error.errno not in _EXHAUSTED:
            self._log.error("event_loop_error", problem=context["message"], exc_info=error)
        elif loop.time() >= self._quiet_until:
            self._quiet_until = loop.time() + INTERVAL_SECONDS
            self._log.error("connections_not_accepted", problem=error.strerror)
