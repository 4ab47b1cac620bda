"""Rules in schemas: their values, their evaluation and their errors."""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi.apiserver.schema.cel.evaluation import rule_check
from fakeapi.apiserver.schema.structural.schema_tree import node_of
from tests.builders import Document
from tests.builders.definitions import INTEGER, TEXT, record


def errors_of(schema: Document, value: Any, old: Any = None, **rule: Any) -> list[str]:
    """Evaluate a rule of a field ``a`` with a schema, and return the errors."""
    ruled = {**schema, "x-kubernetes-validations": [rule]}
    check = rule_check(node_of(record(a=ruled)))
    assert check is not None
    causes = check(
        {"metadata": {}, "a": value}, None if old is None else {"metadata": {}, "a": old}
    )
    return [f"{cause.field}: {cause.message}" for cause in causes]


PAIR = record(low=INTEGER, high=INTEGER)


@pytest.mark.parametrize(
    ("schema", "value", "rule"),
    [
        (INTEGER, 3, "self > 2"),
        (PAIR, {"low": 1, "high": 2}, "self.low < self.high"),
        (PAIR, {"low": 1}, "!has(self.high)"),
        (record(namespace=TEXT), {"namespace": "x"}, "self.__namespace__ == 'x'"),
        (record(namespace=TEXT), {"namespace": "x"}, "self.namespace == 'x'"),
        (record(**{"a-b": TEXT}), {"a-b": "x"}, "self.a__dash__b == 'x'"),
        ({"type": "number"}, 3, "self / 2.0 == 1.5"),
        ({**TEXT, "format": "date-time"}, "2024-05-01T00:00:00Z", "self.getFullYear() == 2024"),
        ({**TEXT, "format": "duration"}, "90m", "self > duration('1h')"),
        ({"type": "array", "items": PAIR}, [{"low": 1}, {"low": 2}], "self.all(x, x.low > 0)"),
        (
            {"type": "object", "additionalProperties": INTEGER},
            {"k": 1},
            "self.all(k, self[k] == 1)",
        ),
        (PAIR, {"low": 1}, "self.?high.orValue(7) == 7"),
        (record(in_=PAIR), {"in_": {"high": 3}}, "self.?in_.high.value() == 3"),
        ({"x-kubernetes-int-or-string": True}, "5%", "type(self) == string && self.endsWith('%')"),
    ],
)
def test_rules_see_values_by_their_schema(schema: Document, value: Any, rule: str) -> None:
    assert errors_of(schema, value, rule=rule) == []


@pytest.mark.parametrize(
    ("rule", "value", "message"),
    [
        ({"rule": "self > 2"}, 1, "a: Invalid value: 1: failed rule: self > 2"),
        ({"rule": "self > 2", "message": "too small"}, 1, "a: Invalid value: 1: too small"),
        (
            {"rule": "self > 2", "messageExpression": "'not ' + string(self)"},
            1,
            "a: Invalid value: 1: not 1",
        ),
        (
            {"rule": "self > 2", "message": "too small", "messageExpression": "string(1 / 0)"},
            1,
            "a: Invalid value: 1: too small",
        ),
        (
            {"rule": "self > 2", "reason": "FieldValueForbidden"},
            1,
            "a: Forbidden: failed rule: self > 2",
        ),
        ({"rule": "self > 2", "reason": "FieldValueDuplicate"}, 1, "a: Duplicate value: 1"),
        (
            {"rule": "self > 1 / 0"},
            1,
            'a: Invalid value: "integer": division by zero evaluating rule: self > 1 / 0',
        ),
    ],
)
def test_a_rules_message_is_reported(rule: Document, value: Any, message: str) -> None:
    assert errors_of(INTEGER, value, **rule) == [message]


def test_a_rule_may_name_a_field() -> None:
    found = errors_of(PAIR, {"low": 2, "high": 1}, rule="self.low < self.high", fieldPath=".low")
    assert found == ["a.low: Invalid value: failed rule: self.low < self.high"]


@pytest.mark.parametrize(
    ("value", "old", "refused"), [(1, None, False), (1, 2, True), (3, 2, False)]
)
def test_transition_rules_need_an_old_value(value: int, old: int | None, *, refused: bool) -> None:
    assert bool(errors_of(INTEGER, value, old, rule="self >= oldSelf")) is refused


@pytest.mark.parametrize(
    ("value", "old", "refused"), [(1, None, True), (6, None, False), (1, 9, False)]
)
def test_rules_may_ask_whether_there_was_an_old_value(
    value: int, old: int | None, *, refused: bool
) -> None:
    rule = "oldSelf.hasValue() || self > 5"
    assert bool(errors_of(INTEGER, value, old, rule=rule, optionalOldSelf=True)) is refused


def test_elements_of_list_maps_are_identified_by_their_keys() -> None:
    items = {
        **record(name=TEXT, size=INTEGER),
        "x-kubernetes-validations": [{"rule": "self.size >= oldSelf.size"}],
    }
    keyed = {
        "type": "array",
        "items": items,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    check = rule_check(node_of(record(a=keyed)))
    assert check is not None
    old = {"metadata": {}, "a": [{"name": "x", "size": 2}, {"name": "y", "size": 5}]}
    new = {"metadata": {}, "a": [{"name": "y", "size": 4}, {"name": "z", "size": 1}]}
    assert [cause.field for cause in check(new, old)] == ["a[0]"]


def test_an_unchanged_error_is_ignored() -> None:
    assert errors_of(INTEGER, 1, 1, rule="self > 2") == []
    assert errors_of(INTEGER, 1, 0, rule="self > 2") != []


def test_a_rule_of_the_whole_object_sees_its_name() -> None:
    schema = record(spec=record(size=INTEGER))
    rule = {"rule": "self.metadata.name.startsWith('x') || self.spec.size > 1"}
    check = rule_check(node_of({**schema, "x-kubernetes-validations": [rule]}))
    assert check is not None
    metadata = {"name": "y", "labels": {"a": "b"}}
    [cause] = check({"metadata": metadata, "spec": {"size": 1}}, None)
    assert cause.field == "<nil>"


def test_a_rule_that_costs_too_much_is_cancelled() -> None:
    numbers = {"type": "array", "items": INTEGER}
    rule = "self.all(x, self.all(y, self.all(z, x + y + z > 0)))"
    [message] = errors_of(numbers, list(range(200)), rule=rule)
    assert "operation cancelled: actual cost limit exceeded" in message
