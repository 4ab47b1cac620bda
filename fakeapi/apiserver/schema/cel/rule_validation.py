"""Validation of a schema's rules: their fields, their expressions and the types of these.

Source: ValidateCustomResourceDefinitionOpenAPISchema in k8s.io/apiextensions-apiserver/pkg/apis/
apiextensions/validation/validation.go; compileRule in pkg/apiserver/schema/cel/compilation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from extender.cel.cel_types import BOOL, STRING, CelType, optional_of
from extender.cel.type_checker import CheckedExpression, check_expression
from fakeapi.apiserver.schema.cel.declared_types import DeclaredType
from fakeapi.apiserver.schema.cel.field_paths import FieldPathError, find_field
from fakeapi.apiserver.schema.structural.schema_tree import Json, SchemaNode
from fakeapi.apiserver.wire.errors import (
    Cause,
    GoFormattedValue,
    go_formatted,
    invalid_value,
    required,
    unsupported_value,
)

SELF_TYPE: Final = "selfType0"
"""The name of the type of ``self``; upstream's has a number that differs each time."""

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
    rule: Json, declared: DeclaredType, path: str, *, uncorrelated: str
) -> Iterator[Cause]:
    """Return the errors of a rule's expressions, for values of a type.

    ``uncorrelated`` is the path of the enclosing list whose elements cannot be correlated with
    those of the old object, so that ``oldSelf`` is not available ("": there is none).
    """
    old = optional_of(declared.type) if rule.get("optionalOldSelf") else declared.type
    variables = {"self": declared.type, "oldSelf": old}
    checked = check_expression(rule["rule"], variables)
    if isinstance(checked, CheckedExpression) and checked.result != BOOL:
        checked = "cel expression must evaluate to a bool"
    if isinstance(checked, str):
        yield invalid_value(f"{path}.rule", _rule_value(rule), checked)
        uses_old = False
    else:
        yield from _message_errors(rule, variables, path)
        uses_old = checked.uses("oldSelf")
    if uses_old and uncorrelated:
        detail = "oldSelf cannot be used on the uncorrelatable portion of the schema within"
        yield invalid_value(f"{path}.rule", rule["rule"], f"{detail} {uncorrelated}")
    elif not uses_old and "optionalOldSelf" in rule:
        detail = "may not be set if oldSelf is not used in rule"
        yield invalid_value(f"{path}.optionalOldSelf", rule["optionalOldSelf"], detail)


def _message_errors(rule: Json, variables: Mapping[str, CelType], path: str) -> Iterator[Cause]:
    worded = rule.get("messageExpression")
    checked = check_expression(worded, variables) if worded else None
    if isinstance(checked, CheckedExpression) and checked.result != STRING:
        checked = "messageExpression must evaluate to a string"
    if isinstance(checked, str):
        message = checked.replace("compilation failed", "messageExpression compilation failed")
        yield invalid_value(f"{path}.messageExpression", _rule_value(rule), message)


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
