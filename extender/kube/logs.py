"""The log of machinery that exists many times over: what is as it should be is not worth a line."""

from __future__ import annotations

from typing import Any, Final

import structlog

_WARNING: Final = 30
_REMEMBERED: Final = 4096


def quiet_log(**bound: object) -> Any:
    """Return a logger that says nothing below a warning."""
    wrapper = structlog.make_filtering_bound_logger(_WARNING)
    return structlog.wrap_logger(None, wrapper_class=wrapper).bind(**bound)


class OnceLog:
    """A log that says the same of the same object only once.

    What is looked at again and again is found faulty again and again.
    """

    def __init__(self, **bound: object) -> None:
        self._log = quiet_log(**bound)
        self._said: dict[tuple[str, str], str] = {}

    def warning(self, event: str, about: str, **details: object) -> None:
        """Warn of ``about`` (an object's name), unless this is what was last said of it."""
        said, details_said = (event, about), repr(details)
        if self._said.get(said) != details_said:
            self._said[said] = details_said
            self._log.warning(event, object=about, **details)
        while len(self._said) > _REMEMBERED:
            del self._said[next(iter(self._said))]
