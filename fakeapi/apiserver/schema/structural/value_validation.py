"""Checks of strings, numbers and enums, and of ``anyOf``, ``oneOf``, ``allOf`` and ``not``.

If a value matches none of several schemas, the errors of the best match are reported: the schema
with the most passed checks. So every check returns the number of passed checks, as upstream.

Source: k8s.io/kube-openapi/pkg/validation/validate (values.go, validator.go, formats.go,
schema_props.go).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from extender.cel.string_formats import FORMATS, known_format
from fakeapi.apiserver.schema.structural.schema_errors import (
    SchemaErrors,
    invalid_in_quantifier,
    not_in_enum,
    path_of,
    quoted,
    rule_error,
    too_long,
    type_error,
)
from fakeapi.apiserver.schema.structural.schema_tree import Json
from fakeapi.apiserver.wire.struct_decoder import LinkedPath
from policies.kubernetes.regular_expressions import compile_pattern

Check = Callable[[Any, Any, LinkedPath, SchemaErrors], int]
"""A check: (value, old value or ABSENT, its path, errors to add to) -> number of passed checks."""

Compile = Callable[[Json], Check]


def quantifier_checks(schema: Json, compile_schema: Compile) -> list[Check]:
    """Return the checks of a schema's quantifiers."""
    checks: list[Check] = []
    for name, make in (("anyOf", _any_of), ("oneOf", _one_of), ("allOf", _all_of)):
        if schema.get(name):
            checks.append(make([compile_schema(below) for below in schema[name]]))
    if schema.get("not"):
        checks.append(_not(compile_schema(schema["not"])))
    return checks


def _any_of(checks: Sequence[Check]) -> Check:
    def check(value: Any, old: Any, where: LinkedPath, faults: SchemaErrors) -> int:
        best, errors = -1, SchemaErrors()
        for each in checks:
            found: SchemaErrors = []
            passed = each(value, old, where, found)
            if not found:
                return passed
            if passed > best:
                best, errors = passed, found
        subject = quoted(path_of(where))
        faults.append(invalid_in_quantifier(f"{subject} must validate at least one schema (anyOf)"))
        faults += errors
        return best

    return check


def _one_of(checks: Sequence[Check]) -> Check:
    def check(value: Any, old: Any, where: LinkedPath, faults: SchemaErrors) -> int:
        best, errors, fitting = -1, SchemaErrors(), []
        for each in checks:
            found: SchemaErrors = []
            passed = each(value, old, where, found)
            if not found:
                fitting.append(passed)
            elif passed > best:
                best, errors = passed, found
        if len(fitting) == 1:
            return fitting[0]
        count = f"Found {len(fitting)} valid alternatives" if fitting else "Found none valid"
        subject = quoted(path_of(where))
        faults.append(
            invalid_in_quantifier(
                f"{subject} must validate one and only one schema (oneOf). {count}"
            )
        )
        if fitting:
            return 0
        faults += errors
        return best

    return check


def _all_of(checks: Iterable[Check]) -> Check:
    parts = tuple(checks)

    def check(value: Any, old: Any, where: LinkedPath, faults: SchemaErrors) -> int:
        passed, fitting = 0, 0
        for each in parts:
            found: SchemaErrors = []
            passed += each(value, old, where, found)
            faults += found
            fitting += not found
        if fitting < len(parts):
            none = "" if fitting else ". None validated"
            subject = quoted(path_of(where))
            faults.append(
                invalid_in_quantifier(f"{subject} must validate all the schemas (allOf){none}")
            )
        return passed

    return check


def _not(refused: Check) -> Check:
    def check(value: Any, old: Any, where: LinkedPath, faults: SchemaErrors) -> int:
        found: SchemaErrors = []
        refused(value, old, where, found)
        if not found:
            subject = quoted(path_of(where))
            faults.append(invalid_in_quantifier(f"{subject} must not validate the schema (not)"))
        return 0

    return check


_LARGEST: Final = {"int32": (-(2**31), 2**31 - 1), "float": (-3.4028235e38, 3.4028235e38)}


def text_checks(schema: Json) -> list[Check]:
    """Return the checks of strings: length, pattern, format."""
    checks = []
    if any(name in schema for name in ("maxLength", "minLength", "pattern")):
        checks.append(_text(schema))
    form = known_format(schema)
    if form.replace("-", "") in FORMATS:
        checks.append(_format(form))
    return checks


def _text(schema: Json) -> Check:
    most, least, pattern = (schema.get(name) for name in ("maxLength", "minLength", "pattern"))
    if pattern:
        compile_pattern(pattern)

    def check(value: str, _old: Any, where: LinkedPath, faults: SchemaErrors) -> int:
        if most is not None and len(value) > most:
            faults.append(too_long(where, most))
        elif least is not None and len(value) < least:
            faults.append(rule_error(where, value, f"should be at least {least} chars long"))
        elif pattern and not compile_pattern(pattern).matches(value):
            faults.append(rule_error(where, value, f"should match '{pattern}'"))
        return 0

    return check


def _format(form: str) -> Check:
    fits = FORMATS[form.replace("-", "")]

    def check(value: str, _old: Any, where: LinkedPath, faults: SchemaErrors) -> int:
        if not fits(value):
            faults.append(type_error(where, form, value))
        return 0

    return check


_AT_LEAST: Final = ("greater than or equal to", operator.lt)
_ABOVE: Final = ("greater than", operator.le)
_AT_MOST: Final = ("less than or equal to", operator.gt)
_BELOW: Final = ("less than", operator.ge)


def number_checks(schema: Json) -> list[Check]:
    """Return the checks of numbers: range of the format, multipleOf, minimum, maximum."""
    checks = []
    form = known_format(schema)
    if form in _LARGEST:
        checks.append(_range(schema["type"], form))
    if schema.get("multipleOf") is not None:
        checks.append(_multiple(schema["multipleOf"]))
    if schema.get("minimum") is not None:
        rule = _ABOVE if schema.get("exclusiveMinimum") else _AT_LEAST
        checks.append(_bound(schema["minimum"], *rule))
    if schema.get("maximum") is not None:
        rule = _BELOW if schema.get("exclusiveMaximum") else _AT_MOST
        checks.append(_bound(schema["maximum"], *rule))
    return checks


def _range(kind: str, form: str) -> Check:
    least, most = _LARGEST[form]

    def check(value: float, _old: Any, where: LinkedPath, faults: SchemaErrors) -> int:
        if not least <= value <= most:
            place = path_of(where)
            faults.append(
                invalid_in_quantifier(
                    f"Checked value must be of type {kind} with format {form} in {place}"
                )
            )
        return 0

    return check


def _multiple(factor: float) -> Check:
    def check(value: float, _old: Any, where: LinkedPath, faults: SchemaErrors) -> int:
        step = int(factor) if isinstance(value, int) else factor
        if step <= 0:
            message = f"factor MultipleOf declared for {path_of(where)} must be positive: {step}"
            faults.append(invalid_in_quantifier(message))
        elif not float(value / step).is_integer():
            faults.append(rule_error(where, value, f"should be a multiple of {_go_number(step)}"))
        return 0

    return check


def _bound(limit: float, relation: str, violates: Callable[[float, float], bool]) -> Check:
    def check(value: float, _old: Any, where: LinkedPath, faults: SchemaErrors) -> int:
        bound = int(limit) if isinstance(value, int) else limit
        if violates(value, bound):
            faults.append(rule_error(where, value, f"should be {relation} {_go_number(bound)}"))
        return 0

    return check


def _go_number(number: float) -> str:
    """Return a number as Go's ``%v`` prints it."""
    return str(int(number)) if float(number).is_integer() and abs(number) < 1e21 else repr(number)


def enum_check(schema: Json) -> Check | None:
    """Return the check of an enum; None if the schema has none."""
    choices = schema.get("enum")
    if not choices:
        return None
    keys = {_key(choice) for choice in choices if choice is not None}
    plain = frozenset(choices) if all(isinstance(choice, str) for choice in choices) else None

    def check(value: Any, _old: Any, where: LinkedPath, faults: SchemaErrors) -> int:
        if plain is not None and value.__class__ is str:
            fits = value in plain
        else:
            fits = value is not None and _key(value) in keys
        if not fits:
            faults.append(not_in_enum(where, value, choices))
        return 0

    return check


def _key(value: Any) -> tuple[bool, str]:
    """Return a key that is equal for equal JSON values; 1 equals 1.0, but not true."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return isinstance(value, bool), repr(value)
