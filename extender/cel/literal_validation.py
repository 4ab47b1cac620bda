"""Validation of literals in checked expressions: durations, times, patterns, lists and maps.

Source: github.com/google/cel-go/cel/validator.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from extender.cel.cel_types import CelType, unwrap_optional
from extender.cel.source_errors import SourceError
from extender.cel.string_formats import FORMATS
from extender.cel.syntax_tree import (
    Call,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    walk,
)
from policies.kubernetes.regular_expressions import compile_pattern

_DURATION: Final = re.compile(
    r"[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)", re.ASCII
)
_TIMESTAMP: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)T([01]\d|2[0-3])(:[0-5]\d){2}(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)


def literal_errors(root: Node, types: Mapping[Node, CelType]) -> list[SourceError]:
    """Return the errors of the literals of an expression."""
    nodes = list(walk(root))
    errors = [error for node in nodes if isinstance(node, Call) for error in _call_errors(node)]
    for node in nodes:
        if isinstance(node, ListLiteral):
            errors += list(_mismatches(node.elements, node.optional, types))[:1]
        elif isinstance(node, MapLiteral):
            keys, values = zip(*node.entries, strict=True) if node.entries else ((), ())
            errors += _mismatches(keys, frozenset(), types)
            errors += _mismatches(values, node.optional, types)
    return errors


def _call_errors(call: Call) -> Iterator[SourceError]:
    is_valid = _CHECKS.get(call.function)
    argument = call.arguments[0] if call.arguments else None
    if is_valid is None or not isinstance(argument, Literal):
        return
    if isinstance(argument.value, str) and not is_valid(argument.value):
        yield SourceError(argument.at, f"invalid {call.function} argument")


def _is_timestamp(text: str) -> bool:
    match = _TIMESTAMP.fullmatch(text)
    return match is not None and FORMATS["date"](match[1])


def _is_pattern(text: str) -> bool:
    try:
        compile_pattern(text)
    except ValueError:
        return False
    return True


_CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {
    "duration": lambda text: _DURATION.fullmatch(text) is not None,
    "matches": _is_pattern,
    "timestamp": _is_timestamp,
}


def _mismatches(
    nodes: Sequence[Node], optional: frozenset[int], types: Mapping[Node, CelType]
) -> Iterator[SourceError]:
    """Yield an error for each node whose type differs from that of the first."""
    expected: CelType | None = None
    for index, node in enumerate(nodes):
        found = types[node]
        found = unwrap_optional(found)[0] if index in optional else found
        if expected is None:
            expected = found
        elif found != expected:
            message = f"expected type '{expected}' but found '{found}'"
            yield SourceError(node.at, message)
