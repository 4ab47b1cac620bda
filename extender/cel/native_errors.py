"""The errors of evaluations in Python, which are then left to the CEL library."""

from __future__ import annotations

from typing import Final


class NotNativeError(Exception):
    """An expression, or one of its values, is left to the library."""


NATIVE_ERRORS: Final = (
    NotNativeError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""The errors of an evaluation that the library then does."""
