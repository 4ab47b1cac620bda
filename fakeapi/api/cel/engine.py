"""The CEL library, which only those need who write rules.

Its compiler finds faults of syntax; types it knows at run time only.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

ENGINE: Final[Any] = import_module("cel") if find_spec("cel") else None

MISSING: Final = (
    "CEL rules need the library common-expression-language: pip install 'reprieve[cel]'"
)


def is_installed() -> bool:
    """Return whether rules can be compiled."""
    return ENGINE is not None
