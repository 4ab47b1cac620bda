"""Limits on what one log line and one kept decision hold, whatever a caller sends.

Texts that callers and API servers send appear in messages. Each text of a log line has at most
``MAX_TEXT`` characters, or ``MAX_TRACEBACK`` for a traceback; each list or mapping has at most
``MAX_ITEMS`` entries. So a line has a bounded size, and a flood of requests cannot fill a disk
faster than by its number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Final, TypeVar

from structlog.typing import EventDict, WrappedLogger

T = TypeVar("T")
U = TypeVar("U")

MAX_TEXT: Final = 1_000
MAX_TRACEBACK: Final = 16_000
MAX_ITEMS: Final = 100
_TRACEBACK: Final = "exception"


def shortened(text: str, limit: int = MAX_TEXT) -> str:
    """Return ``text`` with at most ``limit`` characters of it, and the number of the rest."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit} more characters)"


def shortened_list(texts: Sequence[str]) -> Sequence[str]:
    """Return the first ``MAX_ITEMS`` texts, shortened, and the number of the rest."""
    return tuple(_bounded_items(texts, shortened))


def bound_event(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Return a log event within the limits; a processor of structlog."""
    return {
        name: shortened(value, MAX_TRACEBACK) if name == _TRACEBACK else _bounded(value)
        for name, value in event.items()
    }


def _bounded(value: object) -> object:
    match value:
        case str():
            return shortened(value)
        case Mapping():
            listed = islice(value.items(), MAX_ITEMS)
            found = {shortened(str(key)): _bounded(each) for key, each in listed}
            return found if len(value) <= MAX_ITEMS else {**found, "…": len(value) - MAX_ITEMS}
        case list() | tuple():
            return _bounded_items(value, _bounded)
    return value


def _bounded_items(items: Sequence[T], bound: Callable[[T], U]) -> list[U | str]:
    found: list[U | str] = [bound(each) for each in items[:MAX_ITEMS]]
    rest = len(items) - MAX_ITEMS
    return found if rest <= 0 else [*found, f"… ({rest} more)"]
