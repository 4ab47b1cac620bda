"""Errors of the event loop are log lines, except those that tell nothing."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Mapping
from typing import Any, Final

import pytest
from structlog.testing import capture_logs

from extender.terminal.loop_errors import log_loop_errors

EXHAUSTED: Final = {
    "message": "socket.accept() out of system resource",
    "exception": OSError(errno.EMFILE, "Too many open files"),
}
CLOSED: Final = {
    "message": "Exception in callback BaseSelectorEventLoop._start_serving(...)",
    "exception": ValueError("Invalid file descriptor: -1"),
}
OTHER: Final = {"message": "Exception in callback tick()", "exception": ValueError("x")}

ROWS: Final = (
    ("out of files, many times", (EXHAUSTED, EXHAUSTED, EXHAUSTED), ["connections_not_accepted"]),
    ("a socket closed while out of files", (EXHAUSTED, CLOSED), ["connections_not_accepted"]),
    ("an error of a callback", (OTHER, OTHER), ["event_loop_error", "event_loop_error"]),
)


@pytest.mark.parametrize(
    ("contexts", "events"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
async def test_the_errors_of_the_loop_are_logged(
    contexts: tuple[Mapping[str, Any], ...], events: list[str]
) -> None:
    loop = asyncio.get_running_loop()
    with capture_logs() as logged:
        log_loop_errors()
        for context in contexts:
            loop.call_exception_handler(dict(context))
    assert [line["event"] for line in logged] == events
