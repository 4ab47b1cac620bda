"""Validation of the expressions of ValidatingAdmissionPolicies.

Expressions are checked as far as :mod:`fakeapi.apiserver.schema.cel.field_references` goes: syntax,
undeclared names and functions, fields of ``request``, ``namespaceObject`` and ``variables``, and
the type of expressions that are one literal or one selection.

Sources: pkg/apis/admissionregistration/validation/validation.go, v1.37;
k8s.io/apiserver/pkg/admission/plugin/cel/compile.go for the types of the variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fakeapi.apiserver.schema.cel.compilation import (
    ExpressionError,
    compile_expression,
    known_functions,
)
from fakeapi.apiserver.schema.cel.field_references import Scope, plain_type, reference_error
from fakeapi.apiserver.schema.cel.kubernetes_functions import AUTHORIZER_FUNCTIONS
from fakeapi.apiserver.schema.cel.parser import OPTIONAL_FIELD, expand_optional_syntax
from fakeapi.apiserver.schema.cel.values import is_reserved
from fakeapi.apiserver.schema.structural.schema_tree import SchemaNode, node_of
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
_BOOL: Final = ("bool",)
_STRING: Final = ("string",)
_STRING_OR_NULL: Final = ("string", "null_type")
_NOT_EMPTY: Final = "must be non-empty if specified"


def _strings(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}}


_STRING_LIST: Final = {"type": "array", "items": {"type": "string"}}
_ANYTHING: Final = {"x-kubernetes-preserve-unknown-fields": True}
_USER: Final = _strings("username", "uid")
_REQUEST: Final = _strings("subResource", "requestSubResource", "name", "namespace", "operation")
_REQUEST_NODE: Final = node_of(
    {
        "type": "object",
        "properties": {
            **_REQUEST["properties"],
            "kind": _strings("group", "version", "kind"),
            "requestKind": _strings("group", "version", "kind"),
            "resource": _strings("group", "version", "resource"),
            "requestResource": _strings("group", "version", "resource"),
            "userInfo": {
                "type": "object",
                "properties": {
                    **_USER["properties"],
                    "groups": _STRING_LIST,
                    "extra": {"type": "object", "additionalProperties": _STRING_LIST},
                },
            },
            "dryRun": {"type": "boolean"},
            "options": _ANYTHING,
        },
    }
)


_STRING_MAP: Final = {"type": "object", "additionalProperties": {"type": "string"}}
_METADATA: Final = _strings("name", "generateName", "namespace", "UID", "resourceVersion")
_NAMESPACE_NODE: Final = node_of(
    {
        "type": "object",
        "properties": {
            "metadata": {
                "type": "object",
                "properties": {
                    **_METADATA["properties"],
                    "labels": _STRING_MAP,
                    "annotations": _STRING_MAP,
                    "creationTimestamp": _ANYTHING,
                    "deletionTimestamp": _ANYTHING,
                    "deletionGracePeriodSeconds": {"type": "integer"},
                    "generation": {"type": "integer"},
                    "finalizers": _STRING_LIST,
                },
            },
            "spec": {"type": "object", "properties": {"finalizers": _STRING_LIST}},
            "status": {
                "type": "object",
                "properties": {
                    "phase": {"type": "string"},
                    "conditions": {"type": "array", "items": _ANYTHING},
                },
            },
        },
    }
)


class PolicyExpressions:
    """The expressions of a policy, with the variables that each of them may use."""

    def __init__(self, spec: Object) -> None:
        base: Scope = {"object": None, "oldObject": None}
        base |= {"namespaceObject": _NAMESPACE_NODE, "request": _REQUEST_NODE}
        if spec.get("paramKind") is not None:
            base["params"] = None
        self._in_messages = base
        self._in_conditions = {**base, "authorizer": None}
        self._declared: dict[str, Any] = {}
        self._has_variables = bool(spec.get("variables"))

    def errors(self, spec: Object, name: str) -> Iterator[Cause]:
        """Yield the errors of all expressions of a policy of this name."""
        yield from condition_errors(
            spec.get("matchConditions") or (),
            "spec.matchConditions",
            lambda source, path: _causes(source, self._in_conditions, _BOOL, path),
        )
        for index, variable in enumerate(spec.get("variables") or ()):
            yield from self._variable(variable, f"spec.variables[{index}]")
        validations = spec.get("validations") or ()
        annotations = spec.get("auditAnnotations") or ()
        if not validations and not annotations:
            detail = "validations or auditAnnotations must contain at least one item"
            yield required("spec.validations", detail)
            yield required("spec.auditAnnotations", detail)
        for index, validation in enumerate(validations):
            yield from self._validation(validation, f"spec.validations[{index}]")
        yield from self._annotations(annotations, name, "spec.auditAnnotations")

    def _with_variables(self, scope: Scope) -> Scope:
        if not self._has_variables:
            return scope
        declared = {"type": "object", "properties": self._declared}
        node: SchemaNode = node_of(declared)
        return {**scope, "variables": node}

    def _variable(self, variable: Object, path: str) -> Iterator[Cause]:
        name, source = variable.get("name") or "", variable.get("expression") or ""
        if not name.strip():
            yield required(f"{path}.name", "name is not specified")
        elif not _IDENTIFIER.fullmatch(name) or is_reserved(name):
            yield invalid_value(f"{path}.name", name, "must be a valid CEL identifier")
        if not source.strip():
            yield required(f"{path}.expression", "expression is not specified")
        else:
            scope = self._with_variables(self._in_conditions)
            yield from _causes(source, scope, (), f"{path}.expression")
        self._declared[name] = _ANYTHING

    def _validation(self, validation: Object, path: str) -> Iterator[Cause]:
        source = validation.get("expression") or ""
        if not source.strip():
            yield required(f"{path}.expression", "expression is not specified")
        else:
            scope = self._with_variables(self._in_conditions)
            yield from _causes(source, scope, _BOOL, f"{path}.expression")
        worded, where = validation.get("messageExpression") or "", f"{path}.messageExpression"
        if worded and not worded.strip():
            yield invalid_value(where, worded, _NOT_EMPTY)
        elif worded:
            yield from _causes(worded, self._with_variables(self._in_messages), _STRING, where)
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
            scope = self._with_variables(self._in_conditions)
            yield from _causes(source, scope, _STRING_OR_NULL, path)


def _causes(source: str, scope: Scope, types: Sequence[str], path: str) -> Iterator[Cause]:
    """Yield the error of an expression that must have one of ``types``; (): any type."""
    fault = _expression_error(source, scope, types)
    if fault is not None:
        yield invalid_value(path, source, fault)


def _expression_error(source: str, scope: Scope, types: Sequence[str]) -> str | None:
    try:
        compile_expression(source)
    except ExpressionError as error:
        return str(error)
    functions = {*known_functions(), *AUTHORIZER_FUNCTIONS, OPTIONAL_FIELD}
    expanded = expand_optional_syntax(source)
    if (fault := reference_error(expanded, scope, functions, "", str)) is not None:
        return fault
    found = plain_type(source, scope)
    if not types or not found or found in types:
        return None
    wanted = types[0] if len(types) == 1 else f"one of [{' '.join(types)}]"
    return f"must evaluate to {wanted} but got {found}"
