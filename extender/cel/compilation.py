"""Compiled expressions: their variables, their cost and their result."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

from extender.cel.kubernetes_functions import FUNCTIONS
from extender.cel.macros import expand_syntax
from extender.cel.native_errors import NATIVE_ERRORS
from extender.cel.parser import (
    ENGINE,
    MATCHES,
    limit_error,
    macro_depth,
    tokenize,
)

if TYPE_CHECKING:
    from extender.cel.native_evaluation import Evaluation

PER_CALL_LIMIT: Final = 1_000_000
OBJECT_BUDGET: Final = 10_000_000

_FAILED: Final = "Failed to parse expression"
_FUNCTION_ERROR: Final = re.compile(r"Function '\w+' error: Python function call failed: \w+: ")
_FUNCTION_HINT: Final = ". Check function arguments and their types."


NO_NAMES: Final = frozenset[str]()
NOT_NATIVE: Final = object()
"""The result of an evaluation that is left to the library."""


class ExpressionError(ValueError):
    """An expression cannot be compiled or evaluated; the message is upstream's."""


class CostError(ExpressionError):
    """The cost of an evaluation exceeds the limit per call."""


class Expression:
    """A compiled expression."""

    def __init__(self, source: str) -> None:
        """Compile the expression. Raise ExpressionError if that fails."""
        self.source = source
        self._native: Evaluation | None = None
        self._is_native = True
        if (problem := limit_error(source)) is not None:
            raise ExpressionError(f"compilation failed: ERROR: <input>:-1:0: {problem}")
        tokens = tokenize(source)
        self._names = frozenset(token.text for token in tokens if token.kind == "name")
        self._depth = macro_depth(tokens)
        try:
            self._program = ENGINE.compile(expand_syntax(source))
        except ValueError as error:
            message = str(error).replace(MATCHES, "matches")
            raise ExpressionError(_parse_error(message)) from None

    def uses(self, name: str) -> bool:
        """Return whether a name occurs in the expression."""
        return name in self._names

    def cost(self, value: Any) -> int:
        """Return the cost of an evaluation for a value. Raise CostError above the limit."""
        return self.cost_of_size(value_size(value) if self._depth else 0)

    @property
    def has_nested_macros(self) -> bool:
        """Whether the cost grows faster than the size of the value."""
        return self._depth > 1

    def cost_of_size(self, size: int) -> int:
        """Return the cost for values of a size. Raise CostError above the limit."""
        cost = 1 if self._depth == 0 else 1 + size**self._depth
        if cost > PER_CALL_LIMIT:
            raise CostError("operation cancelled: actual cost limit exceeded")
        return cost

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        """Return the value of the expression. Raise ExpressionError if the evaluation fails."""
        if (found := self.evaluate_natively({**variables})) is not NOT_NATIVE:
            return found
        context = _context(self._functions)
        try:
            for name, value in variables.items():
                context.add_variable(name, value)
        except ValueError as error:  # a text that is not valid Unicode
            raise ExpressionError(_evaluation_error(str(error))) from None
        return self.evaluate_in(context)

    @cached_property
    def _functions(self) -> frozenset[str]:
        """The functions that the library may call, of those that are not built into CEL."""
        tokens = tokenize(expand_syntax(self.source))
        names = {token.text for token in tokens if token.kind == "name"}
        return frozenset(each for each in known_functions() if each.rpartition(".")[2] in names)

    def evaluate_natively(self, scope: dict[str, Any], functions: frozenset[str] = NO_NAMES) -> Any:
        """Return the value in a scope, or NOT_NATIVE if the library must evaluate it.

        ``functions`` are those that every scope of this expression has.
        """
        if not self._is_native:
            return NOT_NATIVE
        if self._native is None:
            from extender.cel.native_evaluation import compile_natively

            self._native = compile_natively(self.source, functions)
            self._is_native = self._native is not None
        if self._native is None:
            return NOT_NATIVE
        try:
            return self._native(scope)
        except NATIVE_ERRORS:
            return NOT_NATIVE

    def evaluate_in(self, context: Any) -> Any:
        """Return the value in a context, see :func:`new_context`. Raise ExpressionError."""
        try:
            return self._program.execute(context)
        except KeyError as error:
            raise ExpressionError(f"no such key: {error.args[0]}") from None
        except ZeroDivisionError:
            raise ExpressionError("division by zero") from None
        except TypeError:
            raise ExpressionError("no such overload") from None
        except (ValueError, RuntimeError, IndexError, OverflowError) as error:
            raise ExpressionError(_evaluation_error(str(error))) from None


@lru_cache(maxsize=4096)
def compile_expression(source: str) -> Expression:
    """Compile an expression, or return it from the cache. Raise ExpressionError."""
    return Expression(source)


@lru_cache(maxsize=256)
def _context(functions: frozenset[str]) -> Any:
    """Return a context with some functions: an evaluation takes longer with each of them."""
    context = new_context()
    for name in functions:
        context.add_function(name, known_functions()[name])
    return context


def new_context() -> Any:
    """Return a context without variables and functions; both are added to it."""
    return ENGINE.Context()


@lru_cache(maxsize=1)
def known_functions() -> Mapping[str, Any]:
    """Return all functions that are not built into CEL, by name."""
    from cel.stdlib import STDLIB_FUNCTIONS

    return {**STDLIB_FUNCTIONS, **FUNCTIONS}


def _evaluation_error(message: str) -> str:
    """Return the error of an evaluation without what the library adds."""
    function = _FUNCTION_ERROR.match(message)
    return (
        message[function.end() :].removesuffix(_FUNCTION_HINT)
        if function
        else (message.partition(". ")[0].strip())
    )


def _parse_error(message: str) -> str:
    """Return the compiler's report without the prefix that the library adds."""
    at = message.find("ERROR:")
    report = message[at:] if message.startswith(_FAILED) and at >= 0 else message
    return "compilation failed: " + report.replace("\n| ", "\n | ").rstrip()


def value_size(value: Any) -> int:
    """Return the number of values in a value, itself included."""
    if isinstance(value, dict):
        return 1 + sum(map(value_size, value.values()))
    return 1 + sum(map(value_size, value)) if isinstance(value, list) else 1
