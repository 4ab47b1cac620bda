"""Logs of components with many instances: no routine events, and repeated warnings once."""

from __future__ import annotations

from typing import Any, Final

import structlog

_WARNING: Final = 30
_REMEMBERED: Final = 4096


def quiet_log(**bound: object) -> Any:
    """Return a logger with level warning."""
    wrapper = structlog.make_filtering_bound_logger(_WARNING)
    return structlog.wrap_logger(None, wrapper_class=wrapper).bind(**bound)


class OnceLog:
    """A log that writes the same message about the same object only once.

    Periodic syncs find the same error again each time.
    """

    def __init__(self, **bound: object) -> None:
        self._log = quiet_log(**bound)
        self._logged: dict[tuple[str, str], str] = {}

    def warning(self, event: str, object_name: str, **details: object) -> None:
        """Log a warning about an object, unless it equals the last one about that object."""
        key, text = (event, object_name), repr(details)
        if self._logged.get(key) != text:
            self._logged[key] = text
            self._log.warning(event, object=object_name, **details)
        while len(self._logged) > _REMEMBERED:
            del self._logged[next(iter(self._logged))]
