"""Checks of ``anyOf``, ``oneOf``, ``allOf`` and ``not``.

If a value matches none of several schemas, the errors of the best match are reported: the schema
with the most passed checks. So every check returns the number of passed checks, as upstream.

Source: k8s.io/kube-openapi/pkg/validation/validate/schema_props.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fakeapi.api.decoding import LinkedPath
from fakeapi.api.structural.faults import SchemaErrors, invalid_in_quantifier, path_of, quoted
from fakeapi.api.structural.nodes import Json

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
        best, told = -1, SchemaErrors()
        for each in checks:
            found: SchemaErrors = []
            passed = each(value, old, where, found)
            if not found:
                return passed
            if passed > best:
                best, told = passed, found
        subject = quoted(path_of(where))
        faults.append(invalid_in_quantifier(f"{subject} must validate at least one schema (anyOf)"))
        faults += told
        return best

    return check


def _one_of(checks: Sequence[Check]) -> Check:
    def check(value: Any, old: Any, where: LinkedPath, faults: SchemaErrors) -> int:
        best, told, fitting = -1, SchemaErrors(), []
        for each in checks:
            found: SchemaErrors = []
            passed = each(value, old, where, found)
            if not found:
                fitting.append(passed)
            elif passed > best:
                best, told = passed, found
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
        faults += told
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
