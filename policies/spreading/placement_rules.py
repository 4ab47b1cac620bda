"""Validation of node selector terms and tolerations, with the error texts of the core API.

Source: kubernetes/pkg/apis/core/validation/validation.go, v1.32 (ValidateNodeSelectorTerm,
ValidatePreferredSchedulingTerms, ValidateTolerations), which openkruise/kruise calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from policies.naming import label_key_faults, label_value_faults, wrong_subdomain
from policies.spreading.model import Expression, NodeTerm, Preference, SubsetToleration

INVALID: Final = "Invalid value"
REQUIRED: Final = "Required value"
FORBIDDEN: Final = "Forbidden"
UNSUPPORTED: Final = "Unsupported value"

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATING: Final = ("Equal", "Exists")
_NAME: Final = "metadata.name"
_MOST_WEIGHT: Final = 100


@dataclass(frozen=True, slots=True)
class Fault:
    """A validation error: the field, the type of the error, and upstream's detail, which can be "".

    ``field`` is written as in ``spec.subsets[0].name``.
    """

    field: str
    sort: str
    detail: str = ""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.field, self.sort, self.detail) if part)


def required_term_faults(term: NodeTerm, path: str) -> Iterator[Fault]:
    """Validate the required node selector term of a subset."""
    yield from _term_faults(term, path)
    for index, expression in enumerate(term.expressions):
        for place, value in enumerate(expression.values):
            where = f"{path}.matchExpressions[{index}].values[{place}]"
            yield from _invalid(where, label_value_faults(value))


def preference_faults(preferences: Iterable[Preference], path: str) -> Iterator[Fault]:
    """Validate the preferred terms of a subset; the values of labels are not checked."""
    for index, preference in enumerate(preferences):
        if not 0 < preference.weight <= _MOST_WEIGHT:
            yield Fault(f"{path}[{index}].weight", INVALID, "must be in the range 1-100")
        yield from _term_faults(preference.term, f"{path}[{index}].preference")


def toleration_faults(tolerations: Iterable[SubsetToleration], path: str) -> Iterator[Fault]:
    """Validate the tolerations of a subset."""
    for index, each in enumerate(tolerations):
        yield from _toleration_faults(each, f"{path}[{index}]")


def _term_faults(term: NodeTerm, path: str) -> Iterator[Fault]:
    for index, expression in enumerate(term.expressions):
        yield from _expression_faults(expression, f"{path}.matchExpressions[{index}]")
    for index, expression in enumerate(term.fields):
        yield from _field_faults(expression, f"{path}.matchFields[{index}]")


def _expression_faults(expression: Expression, path: str) -> Iterator[Fault]:
    values = expression.values
    match expression.operator:
        case "In" | "NotIn":
            if not values:
                rule = "must be specified when `operator` is 'In' or 'NotIn'"
                yield Fault(f"{path}.values", REQUIRED, rule)
        case "Exists" | "DoesNotExist":
            if values:
                rule = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield Fault(f"{path}.values", FORBIDDEN, rule)
        case "Gt" | "Lt":
            if len(values) != 1:
                rule = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                yield Fault(f"{path}.values", REQUIRED, rule)
        case _:
            yield Fault(f"{path}.operator", INVALID, "not a valid selector operator")
    yield from _invalid(f"{path}.key", label_key_faults(expression.key))


def _field_faults(expression: Expression, path: str) -> Iterator[Fault]:
    if expression.operator not in ("In", "NotIn"):
        yield Fault(f"{path}.operator", INVALID, "not a valid selector operator")
    elif len(expression.values) != 1:
        rule = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield Fault(f"{path}.values", REQUIRED, rule)
    if expression.key != _NAME:
        yield Fault(f"{path}.key", INVALID, "not a valid field selector key")
        return
    for index, value in enumerate(expression.values):
        wrong = wrong_subdomain(value)
        if wrong:
            yield Fault(f"{path}.values[{index}]", INVALID, wrong)


def _toleration_faults(each: SubsetToleration, path: str) -> Iterator[Fault]:
    toleration = each.toleration
    if toleration.key:
        yield from _invalid(f"{path}.key", label_key_faults(toleration.key))
    if not toleration.key and toleration.operator != "Exists":
        rule = (
            'operator must be Exists when `key` is empty, which means "match all values and all '
            'keys"'
        )
        yield Fault(f"{path}.operator", INVALID, rule)
    if each.bounded and toleration.effect != "NoExecute":
        rule = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield Fault(f"{path}.effect", INVALID, rule)
    yield from _operator_faults(toleration.operator, toleration.value, f"{path}.operator")
    if toleration.effect and toleration.effect not in _EFFECTS:
        yield Fault(f"{path}.effect", UNSUPPORTED, _supported(_EFFECTS))


def _operator_faults(operator: str, value: str, path: str) -> Iterator[Fault]:
    match operator:
        case "Equal" | "":
            wrong = label_value_faults(value)
            if wrong:
                yield Fault(path, INVALID, ";".join(wrong))
        case "Exists":
            if value:
                yield Fault(path, INVALID, "value must be empty when `operator` is 'Exists'")
        case _:
            yield Fault(path, UNSUPPORTED, _supported(_TOLERATING))


def _supported(values: Iterable[str]) -> str:
    return "supported values: " + ", ".join(f'"{value}"' for value in values)


def _invalid(path: str, rules: Iterable[str]) -> Iterator[Fault]:
    for rule in rules:
        yield Fault(path, INVALID, rule)
