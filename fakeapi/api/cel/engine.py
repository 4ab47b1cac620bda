"""The CEL library; an optional dependency that only schemas with rules need.

Its compiler reports syntax errors; it checks types only at run time.
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
