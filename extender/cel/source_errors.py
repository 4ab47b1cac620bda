"""Errors at places of an expression, as cel-go prints them.

    ERROR: <input>:1:6: undefined field 'size'
     | self.size > 1
     | ....^

Source: github.com/google/cel-go/common (error.go, errors.go).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_MOST: Final = 100
_WIDE_DOT: Final = "\uff0e"
_WIDE_MARK: Final = "\uff3e"


@dataclass(frozen=True, slots=True)
class SourceError:
    """An error at an offset of the source."""

    at: int
    message: str


def format_errors(source: str, errors: Sequence[SourceError]) -> str:
    """Return the report of errors, in the order of their places."""
    ordered = sorted(errors, key=lambda error: error.at)
    reports = [_format(source, error) for error in ordered[:_MOST]]
    if len(ordered) > _MOST:
        reports.append(f"{len(ordered) - _MOST} more errors were truncated")
    return "\n".join(reports)


def _format(source: str, error: SourceError) -> str:
    start = source.rfind("\n", 0, error.at) + 1
    line, column = source.count("\n", 0, error.at) + 1, error.at - start
    text = source[start:].partition("\n")[0].replace("\t", " ")
    dots = "".join("." if each.isascii() else _WIDE_DOT for each in text[:column])
    mark = "^" if text[column : column + 1].isascii() else _WIDE_MARK
    return f"ERROR: <input>:{line}:{column + 1}: {error.message}\n | {text}\n | {dots}{mark}"
