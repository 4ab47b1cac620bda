"""Evaluation of a schema's validation rules for objects.

A rule is evaluated for every value of its schema. A transition rule (``oldSelf``) is evaluated only
where the old value can be correlated: fields of objects, and elements of lists of type ``map``.
With ``optionalOldSelf`` it is evaluated for new values, too. An error of a value that an update
does not change is ignored (ratcheting).

Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from extender.cel.compilation import (
    OBJECT_BUDGET,
    CostError,
    Expression,
    ExpressionError,
    compile_expression,
)
from extender.cel.parser import ENGINE, MISSING, is_installed
from fakeapi.apiserver.schema.cel.field_paths import find_field
from fakeapi.apiserver.schema.cel.values import (
    ValueConverter,
    resource_view,
    value_converter,
    with_metadata,
)
from fakeapi.apiserver.schema.structural.schema_tree import ABSENT, Json, SchemaNode
from fakeapi.apiserver.schema.structural.schema_validator import by_key, key_of
from fakeapi.apiserver.wire.errors import Cause, duplicate, forbidden_field, invalid_value, required
from fakeapi.apiserver.wire.raw_json import json_equal

RuleCheck = Callable[[Mapping[str, Any], Mapping[str, Any] | None], list[Cause]]

NIL_PATH: Final = "<nil>"
_LONGEST_MESSAGE: Final = 5120
_OUT_OF_BUDGET: Final = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)


@dataclass(frozen=True, slots=True)
class _CompiledRule:
    """A compiled rule; ``field_path`` is the path of the field that its errors name."""

    expression: Expression
    optional_old: bool
    description: str
    default_message: str
    message_expression: Expression | None
    reason: str
    field_path: str


class _Budget:
    """The remaining cost budget of one object."""

    def __init__(self) -> None:
        self._left = OBJECT_BUDGET

    def spend(self, cost: int) -> None:
        """Subtract a cost. Raise _BudgetExceededError if the budget does not cover it."""
        self._left -= cost
        if self._left < 0:
            raise _BudgetExceededError(_OUT_OF_BUDGET)


class _BudgetExceededError(Exception):
    """The cost budget is used up; no further rules are evaluated."""


Walk = Callable[[Any, Any, str, _Budget], Iterator[Cause]]


def rule_check(node: SchemaNode) -> RuleCheck | None:
    """Return the check of a schema's rules; None if it has none. Raise ExpressionError."""
    if not _has_rules(node):
        return None
    if not is_installed():
        return lambda _document, _old: [invalid_value(NIL_PATH, None, MISSING)]
    walk = value_walk(node, is_resource=True)

    def check(document: Mapping[str, Any], old: Mapping[str, Any] | None) -> list[Cause]:
        before = ABSENT if old is None else old
        return collect_causes(walk, document, before, "")

    return check


def collect_causes(walk: Walk, value: Any, old: Any, path: str) -> list[Cause]:
    """Return the causes of all rules, evaluated until the cost budget is used up."""
    causes: list[Cause] = []
    try:
        causes.extend(walk(value, old, path, _Budget()))
    except _BudgetExceededError as error:
        causes.append(invalid_value(path or NIL_PATH, "", str(error)))
    return causes


def _has_rules(node: SchemaNode) -> bool:
    below = [*node.properties.values(), *filter(None, (node.items, node.additional))]
    return bool(node.rules) or any(map(_has_rules, below))


def value_walk(node: SchemaNode, *, is_resource: bool = False) -> Walk:
    """Return the evaluation of all rules of a value and its children. Raise ExpressionError."""
    parts = [_own_rules(node, is_resource=is_resource)] if node.rules else []
    parts += [part for part in (_fields(node), _elements(node)) if part is not None]

    def walk(value: Any, old: Any, path: str, budget: _Budget) -> Iterator[Cause]:
        if value is not None:
            for part in parts:
                yield from part(value, old, path, budget)

    return walk


def _fields(node: SchemaNode) -> Walk | None:
    declared = {
        name: value_walk(n, is_resource=n.embedded) for name, n in _with_rules(node.properties)
    }
    other = node.additional
    others = value_walk(other) if other is not None and _has_rules(other) else None
    if not declared and others is None:
        return None

    def walk(value: Any, old: Any, path: str, budget: _Budget) -> Iterator[Cause]:
        if not isinstance(value, dict):
            return
        before = old if isinstance(old, dict) else {}
        for name, item in value.items():
            was = before.get(name, ABSENT)
            if name in declared:
                yield from declared[name](item, was, f"{path}.{name}" if path else name, budget)
            elif others is not None and name not in node.properties:
                yield from others(item, was, f"{path}[{name}]", budget)

    return walk


def _with_rules(properties: Mapping[str, SchemaNode]) -> list[tuple[str, SchemaNode]]:
    return [(name, below) for name, below in properties.items() if _has_rules(below)]


def _elements(node: SchemaNode) -> Walk | None:
    if node.items is None or not _has_rules(node.items):
        return None
    below = value_walk(node.items, is_resource=node.items.embedded)
    keyed, keys = node.list_type == "map", node.list_keys

    def walk(value: Any, old: Any, path: str, budget: _Budget) -> Iterator[Cause]:
        if not isinstance(value, list):
            return
        before = by_key(old, keys) if keyed and isinstance(old, list) else {}
        for index, item in enumerate(value):
            was = before.get(key_of(item, keys), ABSENT) if before else ABSENT
            yield from below(item, was, f"{path}[{index}]", budget)

    return walk


def _own_rules(node: SchemaNode, *, is_resource: bool) -> Walk:
    rules = [_compile(rule, node) for rule in node.rules]
    native = value_converter(with_metadata(node) if is_resource else node)

    def walk(value: Any, old: Any, path: str, budget: _Budget) -> Iterator[Cause]:
        if is_resource:
            value, old = _view(value), _view(old)
        evaluation = _Evaluation(node.type, value, old, native)
        for rule in rules:
            cause = evaluation.evaluate(rule, path, budget)
            if cause is not None:
                yield cause

    return walk


def _view(value: Any) -> Any:
    return resource_view(value) if isinstance(value, dict) else value


def _compile(rule: Json, node: SchemaNode) -> _CompiledRule:
    source, message = rule["rule"].strip(), (rule.get("message") or "").strip()
    worded = (rule.get("messageExpression") or "").strip()
    path = rule.get("fieldPath") or ""
    return _CompiledRule(
        expression=compile_expression(source),
        optional_old=bool(rule.get("optionalOldSelf")),
        description=message or source,
        default_message=message or f"failed rule: {source}",
        message_expression=compile_expression(worded) if worded else None,
        reason=rule.get("reason") or "",
        field_path=find_field(path, node)[0] if path else "",
    )


class _Evaluation:
    """The evaluation of rules for one value and its old value."""

    def __init__(self, kind: str, value: Any, old: Any, native: ValueConverter | None) -> None:
        self._kind, self._value, self._old = kind, value, old
        self._native = value if native is None else native(value)
        had = old is not ABSENT and old is not None
        self._native_old = (old if native is None else native(old)) if had else ABSENT

    def evaluate(self, rule: _CompiledRule, path: str, budget: _Budget) -> Cause | None:
        """Evaluate one rule; return the cause if it fails. Raise _BudgetExceededError."""
        if rule.expression.uses("oldSelf") and self._native_old is ABSENT and not rule.optional_old:
            return None
        variables = self._variables(rule)
        try:
            budget.spend(rule.expression.cost(self._value))
            if rule.expression.evaluate(variables) is True:
                return None
        except CostError as error:
            detail = (
                "no further validation rules will be run due to call cost exceeds limit for rule"
            )
            raise _BudgetExceededError(f"'{error}': {detail}: {rule.description}") from None
        except ExpressionError as error:
            return invalid_value(
                path or NIL_PATH, self._kind, _failure(str(error), rule.description)
            )
        if not rule.expression.uses("oldSelf") and self._is_unchanged():
            return None
        return self._cause(rule, path, self._message(rule, variables))

    def _variables(self, rule: _CompiledRule) -> dict[str, Any]:
        variables = {"self": self._native}
        if rule.optional_old:
            value = ENGINE.OptionalValue
            had = self._native_old is not ABSENT
            variables["oldSelf"] = value.of(self._native_old) if had else value.none()
        elif self._native_old is not ABSENT:
            variables["oldSelf"] = self._native_old
        return variables

    def _is_unchanged(self) -> bool:
        return self._old is not ABSENT and json_equal(self._value, self._old)

    def _message(self, rule: _CompiledRule, variables: Mapping[str, Any]) -> str:
        if rule.message_expression is None:
            return rule.default_message
        try:
            result = rule.message_expression.evaluate(variables)
        except ExpressionError:
            return rule.default_message
        text = result.strip() if isinstance(result, str) else ""
        usable = text and "\n" not in text and len(text) <= _LONGEST_MESSAGE
        return text if usable else rule.default_message

    def _cause(self, rule: _CompiledRule, path: str, message: str) -> Cause:
        path = _join_path(path, rule.field_path) or NIL_PATH
        whole = self._kind in ("object", "array")
        if rule.reason == "FieldValueForbidden":
            return forbidden_field(path, message)
        if rule.reason == "FieldValueRequired":
            return required(path, message)
        if rule.reason == "FieldValueDuplicate":
            cause = Cause("FieldValueDuplicate", "Duplicate value", path)
            return cause if whole else duplicate(path, self._value)
        if whole:
            return Cause("FieldValueInvalid", f"Invalid value: {message}", path)
        return invalid_value(path, self._value, message)


def _join_path(path: str, below: str) -> str:
    return f"{path}{below}" if below.startswith("[") else ".".join(filter(None, (path, below)))


def _failure(error: str, message: str) -> str:
    if error.startswith("no such overload"):
        detail = "call arguments did not match a supported operator, function or macro signature"
        return f"'{error}': {detail} for rule: {message}"
    return f"{error} evaluating rule: {message}"


def sources(rules: Sequence[Json]) -> list[str]:
    """Return the expressions of rules."""
    return [rule.get("rule", "") for rule in rules]
