"""Validation of a target filter's label selector, with upstream's error texts.

Only the first invalid requirement is reported, with all of its errors.

Source: LabelSelectorAsSelector in k8s.io/apimachinery pkg/apis/meta/v1/helpers.go, and
NewRequirement in pkg/labels/selector.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from policies.naming import label_key_errors, label_value_errors
from policies.spreading.model import Expression

_NO_VALUES: Final = "for 'in', 'notin' operators, values set can't be empty"
_VALUES: Final = "values set must be empty for exists and does not exist"


def label_selector_error(labels: Mapping[str, str], expressions: Iterable[Expression]) -> str:
    """Return why a label selector is invalid; "" if it is valid."""
    for key in sorted(labels):
        told = _aggregate([*_key_errors(key), *_value_errors(key, (labels[key],))])
        if told:
            return told
    for each in expressions:
        if each.operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            return f'"{each.operator}" is not a valid label selector operator'
        faults = (
            _key_errors(each.key),
            _value_count_errors(each),
            _value_errors(each.key, each.values),
        )
        told = _aggregate([fault for some in faults for fault in some])
        if told:
            return told
    return ""


def _key_errors(key: str) -> Iterator[str]:
    wrong = label_key_errors(key)
    if wrong:
        yield f'key: Invalid value: "{key}": {"; ".join(wrong)}'


def _value_count_errors(each: Expression) -> Iterator[str]:
    if each.operator in ("In", "NotIn"):
        if not each.values:
            yield f"values: Invalid value: []string(nil): {_NO_VALUES}"
    elif each.values:
        written = ", ".join(f'"{value}"' for value in each.values)
        yield f"values: Invalid value: []string{{{written}}}: {_VALUES}"


def _value_errors(key: str, values: Sequence[str]) -> Iterator[str]:
    for index, value in enumerate(values):
        wrong = label_value_errors(value)
        if wrong:
            yield f'values[{index}][{key}]: Invalid value: "{value}": {"; ".join(wrong)}'


def _aggregate(faults: Iterable[str]) -> str:
    different = list(dict.fromkeys(faults))
    return different[0] if len(different) == 1 else f"[{', '.join(different)}]" if different else ""
