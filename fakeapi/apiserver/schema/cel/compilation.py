"""Compilation of a schema's rules: expressions with their variables, their cost and their result.

Errors of rules, fields and expressions are found when a definition is written.

Source: ValidateCustomResourceDefinitionOpenAPISchema in k8s.io/apiextensions-apiserver/pkg/apis/
apiextensions/validation/validation.go; compileRule in pkg/apiserver/schema/cel/compilation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from fakeapi.apiserver.schema.cel.field_references import (
    FieldPathError,
    Scope,
    find_field,
    reference_error,
)
from fakeapi.apiserver.schema.cel.kubernetes_functions import FUNCTIONS
from fakeapi.apiserver.schema.cel.macros import expand_syntax
from fakeapi.apiserver.schema.cel.parser import (
    ENGINE,
    MATCHES,
    MISSING,
    OPTIONAL_FIELD,
    expand_optional_syntax,
    is_installed,
    limit_error,
    macro_depth,
    tokenize,
)
from fakeapi.apiserver.schema.cel.values import with_metadata
from fakeapi.apiserver.schema.structural.schema_tree import Json, SchemaNode
from fakeapi.apiserver.wire.errors import (
    Cause,
    GoFormattedValue,
    forbidden_field,
    go_formatted,
    invalid_value,
    required,
    unsupported_value,
)

PER_CALL_LIMIT: Final = 1_000_000
OBJECT_BUDGET: Final = 10_000_000

_FAILED: Final = "Failed to parse expression"
_FUNCTION_ERROR: Final = re.compile(r"Function '\w+' error: Python function call failed: \w+: ")
_FUNCTION_HINT: Final = ". Check function arguments and their types."


class ExpressionError(ValueError):
    """An expression cannot be compiled or evaluated; the message is upstream's."""


class CostError(ExpressionError):
    """The cost of an evaluation exceeds the limit per call."""


class Expression:
    """A compiled expression."""

    def __init__(self, source: str) -> None:
        """Compile the expression. Raise ExpressionError if that fails."""
        self.source = source
        if (problem := limit_error(source)) is not None:
            raise ExpressionError(f"compilation failed: ERROR: <input>:-1:0: {problem}")
        tokens = tokenize(source)
        self.uses_old = any(t.kind == "name" and t.text == "oldSelf" for t in tokens)
        self._depth = macro_depth(tokens)
        try:
            self._program = ENGINE.compile(expand_syntax(source))
        except ValueError as error:
            message = str(error).replace(MATCHES, "matches")
            raise ExpressionError(_parse_error(message)) from None

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
        context = _context()
        for name, value in variables.items():
            context.add_variable(name, value)
        return self.evaluate_in(context)

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


@lru_cache(maxsize=1)
def _context() -> Any:
    context = new_context()
    for name, function in known_functions().items():
        context.add_function(name, function)
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


_REASONS: Final = (
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
)
_NO_BREAKS: Final = "must not contain line breaks"
_NOT_EMPTY: Final = "must be non-empty if specified"


def rule_errors(rule: Json, node: SchemaNode, path: str) -> Iterator[Cause]:
    """Return the errors of a rule's fields, except those of its expressions."""
    source = (rule.get("rule") or "").strip()
    message = rule.get("message") or ""
    if not source:
        yield required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield invalid_value(f"{path}.message", message, _NOT_EMPTY)
    elif _breaks(message.strip()):
        yield invalid_value(f"{path}.message", message, _NO_BREAKS)
    elif _breaks(source) and not message.strip():
        detail = "message must be specified if rule contains line breaks"
        yield required(f"{path}.message", detail)
    worded = rule.get("messageExpression")
    if worded and not worded.strip():
        yield required(
            f"{path}.messageExpression", "messageExpression must be non-empty if specified"
        )
    if rule.get("reason") and rule["reason"] not in _REASONS:
        yield unsupported_value(f"{path}.reason", rule["reason"], _REASONS)
    yield from _field_path_errors(rule.get("fieldPath") or "", node, f"{path}.fieldPath")


def _field_path_errors(field: str, node: SchemaNode, path: str) -> Iterator[Cause]:
    if not field:
        return
    if not field.strip():
        yield invalid_value(path, field, _NOT_EMPTY)
    if _breaks(field):
        yield invalid_value(path, field, _NO_BREAKS)
    try:
        find_field(field, node)
    except FieldPathError:
        yield invalid_value(path, field, "must be a valid path")


def _breaks(text: str) -> bool:
    return "\n" in text or "\r" in text


def expression_errors(
    rule: Json, node: SchemaNode, path: str, *, is_resource: bool, uncorrelated: str
) -> Iterator[Cause]:
    """Return the errors of a rule's expressions.

    ``uncorrelated`` is the path of the enclosing list whose elements cannot be correlated with
    those of the old object, so that ``oldSelf`` is not available ("": there is none).
    """
    if not is_installed():
        yield forbidden_field(f"{path}.rule", MISSING)
        return
    visible = with_metadata(node) if is_resource else node
    scope: Scope = {"self": visible, "oldSelf": None if rule.get("optionalOldSelf") else visible}
    fault = expression_error(rule["rule"], scope, "boolean")
    if fault is not None:
        yield invalid_value(f"{path}.rule", _rule_value(rule), fault)
        return
    worded = rule.get("messageExpression")
    fault = expression_error(worded, scope, "string") if worded else None
    if fault is not None:
        message = fault.replace("compilation failed", "messageExpression compilation failed")
        yield invalid_value(f"{path}.messageExpression", _rule_value(rule), message)
    if compile_expression(rule["rule"].strip()).uses_old:
        if uncorrelated:
            detail = "oldSelf cannot be used on the uncorrelatable portion of the schema within"
            yield invalid_value(f"{path}.rule", rule["rule"], f"{detail} {uncorrelated}")
    elif "optionalOldSelf" in rule:
        detail = "may not be set if oldSelf is not used in rule"
        yield invalid_value(f"{path}.optionalOldSelf", rule["optionalOldSelf"], detail)


def expression_error(source: str, scope: Scope, result_type: str) -> str | None:
    """Return the error of an expression that must have a type; None if it is valid."""
    try:
        compile_expression(source.strip())
    except ExpressionError as error:
        return str(error)
    functions = {**known_functions(), OPTIONAL_FIELD: None}
    return reference_error(expand_optional_syntax(source.strip()), scope, functions, result_type)


def _rule_value(rule: Json) -> GoFormattedValue:
    """Return a rule as Go prints upstream's internal type."""
    fields = {
        "Rule": rule.get("rule", ""),
        "Message": rule.get("message", ""),
        "MessageExpression": rule.get("messageExpression", ""),
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath", ""),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }
    return go_formatted(fields)
