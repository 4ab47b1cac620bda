"""Compiled expressions: their variables, their cost and their result."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from fakeapi.api.cel.engine import ENGINE
from fakeapi.api.cel.library import FUNCTIONS
from fakeapi.api.cel.optionals import expand_optional_syntax
from fakeapi.api.cel.tokens import macro_depth, tokenize

PER_CALL_LIMIT: Final = 1_000_000
OBJECT_BUDGET: Final = 10_000_000

_FAILED: Final = "Failed to parse expression"


class ExpressionError(ValueError):
    """An expression cannot be compiled or evaluated; the message is upstream's."""


class CostError(ExpressionError):
    """The cost of an evaluation exceeds the limit per call."""


class Expression:
    """A compiled expression."""

    def __init__(self, source: str) -> None:
        """Compile the expression. Raise ExpressionError if that fails."""
        self.source = source
        tokens = tokenize(source)
        self.uses_old = any(t.kind == "name" and t.text == "oldSelf" for t in tokens)
        self._depth = macro_depth(tokens)
        try:
            self._program = ENGINE.compile(expand_optional_syntax(source))
        except ValueError as error:
            raise ExpressionError(_parse_error(str(error))) from None

    def cost(self, value: Any) -> int:
        """Return the cost of an evaluation for a value. Raise CostError above the limit."""
        cost = 1 if self._depth == 0 else 1 + _size(value) ** self._depth
        if cost > PER_CALL_LIMIT:
            raise CostError("operation cancelled: actual cost limit exceeded")
        return cost

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        """Return the value of the expression. Raise ExpressionError if the evaluation fails."""
        context = _context()
        for name, value in variables.items():
            context.add_variable(name, value)
        try:
            return self._program.execute(context)
        except KeyError as error:
            raise ExpressionError(f"no such key: {error.args[0]}") from None
        except ZeroDivisionError:
            raise ExpressionError("division by zero") from None
        except TypeError:
            raise ExpressionError("no such overload") from None
        except (ValueError, RuntimeError, IndexError, OverflowError) as error:
            raise ExpressionError(_first_sentence(str(error))) from None


@lru_cache(maxsize=4096)
def compile_expression(source: str) -> Expression:
    """Compile an expression, or return it from the cache. Raise ExpressionError."""
    return Expression(source)


@lru_cache(maxsize=1)
def _context() -> Any:
    """Return the evaluation context with all functions."""
    context = ENGINE.Context()
    for name, function in known_functions().items():
        context.add_function(name, function)
    return context


@lru_cache(maxsize=1)
def known_functions() -> Mapping[str, Any]:
    """Return all functions that are not built into CEL, by name."""
    from cel.stdlib import STDLIB_FUNCTIONS

    return {**STDLIB_FUNCTIONS, **FUNCTIONS}


def _parse_error(message: str) -> str:
    """Return the compiler's report without the prefix that the library adds."""
    at = message.find("ERROR:")
    report = message[at:] if message.startswith(_FAILED) and at >= 0 else message
    return "compilation failed: " + report.replace("\n| ", "\n | ").rstrip()


def _first_sentence(message: str) -> str:
    return message.partition(". ")[0].strip()


def _size(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(_size, value.values()))
    return 1 + sum(map(_size, value)) if isinstance(value, list) else 1
