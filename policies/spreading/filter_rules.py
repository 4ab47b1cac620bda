"""Validation of a target filter's label selector, with upstream's error texts.

Only the first invalid requirement is reported, with all of its errors.

Source: LabelSelectorAsSelector in k8s.io/apimachinery pkg/apis/meta/v1/helpers.go, and
NewRequirement in pkg/labels/selector.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from policies.naming import label_key_faults, label_value_faults
from policies.spreading.model import Expression

_NO_VALUES: Final = "for 'in', 'notin' operators, values set can't be empty"
_VALUES: Final = "values set must be empty for exists and does not exist"


def selector_problem(labels: Mapping[str, str], expressions: Iterable[Expression]) -> str:
    """Return why a label selector is invalid; "" if it is valid."""
    for key in sorted(labels):
        told = _told([*_key_faults(key), *_value_faults(key, (labels[key],))])
        if told:
            return told
    for each in expressions:
        if each.operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            return f'"{each.operator}" is not a valid label selector operator'
        faults = (_key_faults(each.key), _count_faults(each), _value_faults(each.key, each.values))
        told = _told([fault for some in faults for fault in some])
        if told:
            return told
    return ""


def _key_faults(key: str) -> Iterator[str]:
    wrong = label_key_faults(key)
    if wrong:
        yield f'key: Invalid value: "{key}": {"; ".join(wrong)}'


def _count_faults(each: Expression) -> Iterator[str]:
    if each.operator in ("In", "NotIn"):
        if not each.values:
            yield f"values: Invalid value: []string(nil): {_NO_VALUES}"
    elif each.values:
        written = ", ".join(f'"{value}"' for value in each.values)
        yield f"values: Invalid value: []string{{{written}}}: {_VALUES}"


def _value_faults(key: str, values: Sequence[str]) -> Iterator[str]:
    for index, value in enumerate(values):
        wrong = label_value_faults(value)
        if wrong:
            yield f'values[{index}][{key}]: Invalid value: "{value}": {"; ".join(wrong)}'


def _told(faults: Iterable[str]) -> str:
    different = list(dict.fromkeys(faults))
    return different[0] if len(different) == 1 else f"[{', '.join(different)}]" if different else ""
