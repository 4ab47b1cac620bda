"""Validation of node selector terms and tolerations, with the error texts of the core API.

Source: kubernetes/pkg/apis/core/validation/validation.go, v1.32 (ValidateNodeSelectorTerm,
ValidatePreferredSchedulingTerms, ValidateTolerations), which openkruise/kruise calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from policies.kubernetes.name_validation import (
    invalid_subdomain,
    label_key_errors,
    label_value_errors,
)
from policies.workloadspread.model import Expression, NodeTerm, Preference, SubsetToleration

INVALID: Final = "Invalid value"
REQUIRED: Final = "Required value"
FORBIDDEN: Final = "Forbidden"
UNSUPPORTED: Final = "Unsupported value"

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATORS: Final = ("Equal", "Exists")
_NAME: Final = "metadata.name"
_MAX_WEIGHT: Final = 100


@dataclass(frozen=True, slots=True)
class FieldValidationError:
    """A validation error: the field, the type of the error, and upstream's detail, which can be "".

    ``field`` is written as in ``spec.subsets[0].name``.
    """

    field: str
    type: str
    detail: str = ""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.field, self.type, self.detail) if part)


def required_term_errors(term: NodeTerm, path: str) -> Iterator[FieldValidationError]:
    """Validate the required node selector term of a subset."""
    yield from _term_errors(term, path)
    for index, expression in enumerate(term.expressions):
        for place, value in enumerate(expression.values):
            where = f"{path}.matchExpressions[{index}].values[{place}]"
            yield from _invalid(where, label_value_errors(value))


def preference_errors(
    preferences: Iterable[Preference], path: str
) -> Iterator[FieldValidationError]:
    """Validate the preferred terms of a subset; the values of labels are not checked."""
    for index, preference in enumerate(preferences):
        if not 0 < preference.weight <= _MAX_WEIGHT:
            yield FieldValidationError(
                f"{path}[{index}].weight", INVALID, "must be in the range 1-100"
            )
        yield from _term_errors(preference.term, f"{path}[{index}].preference")


def toleration_errors(
    tolerations: Iterable[SubsetToleration], path: str
) -> Iterator[FieldValidationError]:
    """Validate the tolerations of a subset."""
    for index, each in enumerate(tolerations):
        yield from _toleration_errors(each, f"{path}[{index}]")


def _term_errors(term: NodeTerm, path: str) -> Iterator[FieldValidationError]:
    for index, expression in enumerate(term.expressions):
        yield from _expression_errors(expression, f"{path}.matchExpressions[{index}]")
    for index, expression in enumerate(term.fields):
        yield from _field_errors(expression, f"{path}.matchFields[{index}]")


def _expression_errors(expression: Expression, path: str) -> Iterator[FieldValidationError]:
    values = expression.values
    match expression.operator:
        case "In" | "NotIn":
            if not values:
                rule = "must be specified when `operator` is 'In' or 'NotIn'"
                yield FieldValidationError(f"{path}.values", REQUIRED, rule)
        case "Exists" | "DoesNotExist":
            if values:
                rule = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield FieldValidationError(f"{path}.values", FORBIDDEN, rule)
        case "Gt" | "Lt":
            if len(values) != 1:
                rule = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                yield FieldValidationError(f"{path}.values", REQUIRED, rule)
        case _:
            yield FieldValidationError(f"{path}.operator", INVALID, "not a valid selector operator")
    yield from _invalid(f"{path}.key", label_key_errors(expression.key))


def _field_errors(expression: Expression, path: str) -> Iterator[FieldValidationError]:
    if expression.operator not in ("In", "NotIn"):
        yield FieldValidationError(f"{path}.operator", INVALID, "not a valid selector operator")
    elif len(expression.values) != 1:
        rule = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield FieldValidationError(f"{path}.values", REQUIRED, rule)
    if expression.key != _NAME:
        yield FieldValidationError(f"{path}.key", INVALID, "not a valid field selector key")
        return
    for index, value in enumerate(expression.values):
        wrong = invalid_subdomain(value)
        if wrong:
            yield FieldValidationError(f"{path}.values[{index}]", INVALID, wrong)


def _toleration_errors(each: SubsetToleration, path: str) -> Iterator[FieldValidationError]:
    toleration = each.toleration
    if toleration.key:
        yield from _invalid(f"{path}.key", label_key_errors(toleration.key))
    if not toleration.key and toleration.operator != "Exists":
        rule = (
            'operator must be Exists when `key` is empty, which means "match all values and all '
            'keys"'
        )
        yield FieldValidationError(f"{path}.operator", INVALID, rule)
    if each.bounded and toleration.effect != "NoExecute":
        rule = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield FieldValidationError(f"{path}.effect", INVALID, rule)
    yield from _operator_errors(toleration.operator, toleration.value, f"{path}.operator")
    if toleration.effect and toleration.effect not in _EFFECTS:
        yield FieldValidationError(f"{path}.effect", UNSUPPORTED, _supported(_EFFECTS))


def _operator_errors(operator: str, value: str, path: str) -> Iterator[FieldValidationError]:
    match operator:
        case "Equal" | "":
            wrong = label_value_errors(value)
            if wrong:
                yield FieldValidationError(path, INVALID, ";".join(wrong))
        case "Exists":
            if value:
                yield FieldValidationError(
                    path, INVALID, "value must be empty when `operator` is 'Exists'"
                )
        case _:
            yield FieldValidationError(path, UNSUPPORTED, _supported(_OPERATORS))


def _supported(values: Iterable[str]) -> str:
    return "supported values: " + ", ".join(f'"{value}"' for value in values)


def _invalid(path: str, rules: Iterable[str]) -> Iterator[FieldValidationError]:
    for rule in rules:
        yield FieldValidationError(path, INVALID, rule)
