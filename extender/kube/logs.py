"""The log of machinery that exists many times over: what is as it should be is not worth a line."""

from __future__ import annotations

from typing import Any, Final

import structlog

_WARNING: Final = 30


def quiet_log(**bound: object) -> Any:
    """Give a logger that says nothing below a warning."""
    wrapper = structlog.make_filtering_bound_logger(_WARNING)
    return structlog.wrap_logger(None, wrapper_class=wrapper).bind(**bound)
