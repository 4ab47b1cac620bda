"""Validation of a schema's rules: their fields, and the compilation of their expressions.

Source: ValidateCustomResourceDefinitionOpenAPISchema in k8s.io/apiextensions-apiserver/pkg/apis/
apiextensions/validation/validation.go; compileRule in pkg/apiserver/schema/cel/compilation.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fakeapi.api.causes import (
    GoFormattedValue,
    forbidden_field,
    go_formatted,
    invalid_value,
    required,
    unsupported_value,
)
from fakeapi.api.cel.engine import MISSING, is_installed
from fakeapi.api.cel.expressions import ExpressionError, compile_expression, known_functions
from fakeapi.api.cel.fieldpaths import FieldPathError, find_field
from fakeapi.api.cel.natives import with_metadata
from fakeapi.api.cel.optionals import OPTIONAL_FIELD, expand_optional_syntax
from fakeapi.api.cel.references import Scope, reference_error
from fakeapi.api.errors import Cause
from fakeapi.api.structural.nodes import Json, SchemaNode

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
        why = "message must be specified if rule contains line breaks"
        yield required(f"{path}.message", why)
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
    seen = with_metadata(node) if is_resource else node
    scope: Scope = {"self": seen, "oldSelf": None if rule.get("optionalOldSelf") else seen}
    fault = expression_error(rule["rule"], scope, "boolean")
    if fault is not None:
        yield invalid_value(f"{path}.rule", _shown(rule), fault)
        return
    worded = rule.get("messageExpression")
    fault = expression_error(worded, scope, "string") if worded else None
    if fault is not None:
        words = fault.replace("compilation failed", "messageExpression compilation failed")
        yield invalid_value(f"{path}.messageExpression", _shown(rule), words)
    if compile_expression(rule["rule"].strip()).uses_old:
        if uncorrelated:
            why = "oldSelf cannot be used on the uncorrelatable portion of the schema within"
            yield invalid_value(f"{path}.rule", rule["rule"], f"{why} {uncorrelated}")
    elif "optionalOldSelf" in rule:
        why = "may not be set if oldSelf is not used in rule"
        yield invalid_value(f"{path}.optionalOldSelf", rule["optionalOldSelf"], why)


def expression_error(source: str, scope: Scope, result_type: str) -> str | None:
    """Return the error of an expression that must have a type; None if it is valid."""
    try:
        compile_expression(source.strip())
    except ExpressionError as error:
        return str(error)
    functions = {**known_functions(), OPTIONAL_FIELD: None}
    return reference_error(expand_optional_syntax(source.strip()), scope, functions, result_type)


def _shown(rule: Json) -> GoFormattedValue:
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
