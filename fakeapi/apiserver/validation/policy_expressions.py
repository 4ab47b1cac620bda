"""Validation of the expressions of admission policies.

The objects of a request and the parameters have no type; a variable of the policy has the type of
its expression.

Sources: pkg/apis/admissionregistration/validation/validation.go, v1.37;
k8s.io/apiserver/pkg/admission/plugin/cel/{compile,composition}.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from extender.cel.cel_types import (
    BOOL,
    DYN,
    NULL,
    STRING,
    CelType,
)
from extender.cel.identifiers import is_reserved
from extender.cel.type_checker import check_expression
from fakeapi.apiserver.schema.cel.admission_variables import (
    AUTHORIZER_VARIABLES,
    VARIABLES,
    message_type,
)
from fakeapi.apiserver.validation.admission_expressions import expression_causes
from fakeapi.apiserver.validation.webhook_configurations import condition_errors
from fakeapi.apiserver.wire.errors import (
    Cause,
    duplicate,
    invalid_value,
    required,
    unsupported_value,
)
from policies.kubernetes.name_validation import invalid_label_key

Object = Mapping[str, Any]

_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_MOST_ANNOTATIONS: Final = 20
_LONGEST_ANNOTATION: Final = 5 * 1024
_IDENTIFIER: Final = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*", re.ASCII)
_BOOL: Final = (BOOL,)
_STRING: Final = (STRING,)
_STRING_OR_NULL: Final = (STRING, NULL)
_NOT_EMPTY: Final = "must be non-empty if specified"


class PolicyVariables:
    """The variables that expressions of a policy may use, and those that it declares."""

    def __init__(self, spec: Object) -> None:
        base = VARIABLES if spec.get("paramKind") is None else {**VARIABLES, "params": DYN}
        self._declared: dict[str, CelType] = {}
        self._in_conditions = {**base, **AUTHORIZER_VARIABLES}
        if spec.get("variables"):
            base = {**base, "variables": message_type("variables", self._declared)}
        self.in_messages = base
        self.in_expressions = {**base, **AUTHORIZER_VARIABLES}

    def errors(self, spec: Object) -> Iterator[Cause]:
        """Yield the errors of match conditions and variables, and declare the variables."""
        yield from condition_errors(
            spec.get("matchConditions") or (),
            "spec.matchConditions",
            lambda source, path: expression_causes(source, self._in_conditions, _BOOL, path),
        )
        for index, variable in enumerate(spec.get("variables") or ()):
            yield from self._variable(variable, f"spec.variables[{index}]")

    def _variable(self, variable: Object, path: str) -> Iterator[Cause]:
        name, source = variable.get("name") or "", variable.get("expression") or ""
        if not name.strip():
            yield required(f"{path}.name", "name is not specified")
        elif not _IDENTIFIER.fullmatch(name) or is_reserved(name):
            yield invalid_value(f"{path}.name", name, "must be a valid CEL identifier")
        if not source.strip():
            yield required(f"{path}.expression", "expression is not specified")
        else:
            where = f"{path}.expression"
            yield from expression_causes(source, self.in_expressions, (), where)
        self._declared[name] = self._type_of(source)

    def _type_of(self, source: str) -> CelType:
        """Return the type of a variable; values of other types than those of JSON are dynamic."""
        checked = check_expression(source, self.in_expressions)
        return DYN if isinstance(checked, str) else _plain_type(checked.result)


class PolicyExpressions:
    """The expressions of a ValidatingAdmissionPolicy."""

    def __init__(self, spec: Object) -> None:
        self._variables = PolicyVariables(spec)
        self._in_messages = self._variables.in_messages
        self._in_validations = self._variables.in_expressions

    def errors(self, spec: Object, name: str) -> Iterator[Cause]:
        """Yield the errors of all expressions of a policy of this name."""
        yield from self._variables.errors(spec)
        validations = spec.get("validations") or ()
        annotations = spec.get("auditAnnotations") or ()
        if not validations and not annotations:
            detail = "validations or auditAnnotations must contain at least one item"
            yield required("spec.validations", detail)
            yield required("spec.auditAnnotations", detail)
        for index, validation in enumerate(validations):
            yield from self._validation(validation, f"spec.validations[{index}]")
        yield from self._annotations(annotations, name, "spec.auditAnnotations")

    def _validation(self, validation: Object, path: str) -> Iterator[Cause]:
        source = validation.get("expression") or ""
        if not source.strip():
            yield required(f"{path}.expression", "expression is not specified")
        else:
            where = f"{path}.expression"
            yield from expression_causes(source, self._in_validations, _BOOL, where)
        worded, where = validation.get("messageExpression") or "", f"{path}.messageExpression"
        if worded and not worded.strip():
            yield invalid_value(where, worded, _NOT_EMPTY)
        elif worded:
            yield from expression_causes(worded, self._in_messages, _STRING, where)
        message, where = validation.get("message") or "", f"{path}.message"
        if message and not message.strip():
            yield invalid_value(where, message, _NOT_EMPTY)
        elif "\n" in message.strip() or "\r" in message.strip():
            yield invalid_value(where, message, "must not contain line breaks")
        reason = validation.get("reason")
        if reason is not None and reason not in _REASONS:
            yield unsupported_value(f"{path}.reason", reason, _REASONS)

    def _annotations(
        self, annotations: Sequence[Object], policy: str, path: str
    ) -> Iterator[Cause]:
        if len(annotations) > _MOST_ANNOTATIONS:
            detail = f"must not have more than {_MOST_ANNOTATIONS} auditAnnotations"
            yield invalid_value(path, list(annotations), detail)
        seen: set[str] = set()
        for index, annotation in enumerate(annotations):
            where, key = f"{path}[{index}]", annotation.get("key") or ""
            if wrong := invalid_label_key(f"{policy}/{key}"):
                yield invalid_value(f"{where}.key", f"{policy}/{key}", wrong)
            yield from self._annotation(annotation, f"{where}.valueExpression")
            if key in seen:
                yield duplicate(f"{where}.key", key)
            seen.add(key)

    def _annotation(self, annotation: Object, path: str) -> Iterator[Cause]:
        source = annotation.get("valueExpression") or ""
        if not source.strip():
            yield required(path, "valueExpression is not specified")
        elif len(source.strip().encode()) > _LONGEST_ANNOTATION:
            yield required(path, f"must not exceed {_LONGEST_ANNOTATION} bytes in length")
        else:
            yield from expression_causes(source, self._in_validations, _STRING_OR_NULL, path)


def _plain_type(found: CelType) -> CelType:
    if found.kind in ("list", "map"):
        parameters = tuple(map(_plain_type, found.parameters))
        return CelType(found.kind, found.name, parameters)
    return found if found.kind == "simple" else DYN
