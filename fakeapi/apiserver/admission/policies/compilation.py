"""Compiled policies.

A reference to a variable of a policy becomes a call, so that the variable is evaluated only if it
is needed, and once for each request:

    variables.limit > 5        policy_variable('limit') > 5

An expression that cannot be compiled is an error when it is evaluated; a policy that is written
with one is rejected (:mod:`fakeapi.apiserver.validation.admission_policies`).

Source: compilePolicy in k8s.io/apiserver/pkg/admission/plugin/policy/validating/plugin.go;
k8s.io/apiserver/pkg/admission/plugin/cel/composition.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from extender.cel.compilation import (
    Expression,
    ExpressionError,
    compile_expression,
    known_functions,
)
from extender.cel.kubernetes_functions import AUTHORIZER_FUNCTIONS
from extender.cel.macros import expand_syntax
from extender.cel.parser import (
    MISSING,
    Token,
    is_installed,
    token_at,
    tokenize,
)
from fakeapi.apiserver.schema.cel.admission_variables import EXPRESSION_FIELDS

Object = Mapping[str, Any]

VARIABLE_FUNCTION: Final = "policy_variable"
OBJECTS: Final = ("object", "oldObject")
INPUTS: Final = (*OBJECTS, "request", "namespaceObject", "authorizer")
"""The variables that are the same for all policies of a request."""
WHOLE: Final = "*"


@dataclass(frozen=True, slots=True)
class PolicyExpression:
    """An expression of a policy; ``compiled`` is the error if it cannot be compiled.

    ``names`` are the inputs and the functions that it needs. ``fields`` are the fields of objects
    that it refers to: those of the object and, as ``metadata.labels``, those of its metadata;
    ``*`` is the whole object.
    """

    source: str
    compiled: Expression | ExpressionError
    names: frozenset[str]
    fields: frozenset[str]


@dataclass(frozen=True, slots=True)
class Validation:
    """A validation of a policy; ``message`` is the one without a message expression."""

    expression: PolicyExpression
    message: str
    message_expression: PolicyExpression | None
    reason: str


@dataclass(frozen=True, slots=True)
class Mutation:
    """A mutation of a policy; ``patch_type`` is ApplyConfiguration or JSONPatch."""

    expression: PolicyExpression
    patch_type: str


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    """The expressions of a policy; ``annotations`` are those of its audit annotations.

    ``fields`` are the fields of objects that they refer to.
    """

    conditions: tuple[PolicyExpression, ...]
    variables: Mapping[str, PolicyExpression]
    validations: tuple[Validation, ...]
    annotations: tuple[PolicyExpression, ...]
    mutations: tuple[Mutation, ...]
    fields: frozenset[str]


def compile_policy(spec: Object) -> CompiledPolicy:
    """Return the compiled expressions of a policy's spec."""
    conditions = tuple(_expression(c, "expression") for c in spec.get("matchConditions") or ())
    variables = {
        variable.get("name", ""): _expression(variable, "expression")
        for variable in spec.get("variables") or ()
    }
    validations = tuple(_validation(each) for each in spec.get("validations") or ())
    annotations = tuple(
        _expression(each, "valueExpression") for each in spec.get("auditAnnotations") or ()
    )
    mutations = tuple(_mutation(each) for each in spec.get("mutations") or ())
    messages = (v.message_expression for v in validations if v.message_expression is not None)
    every = (
        *conditions,
        *variables.values(),
        *(v.expression for v in validations),
        *messages,
        *annotations,
        *(mutation.expression for mutation in mutations),
    )
    fields = frozenset[str]().union(*(expression.fields for expression in every))
    return CompiledPolicy(conditions, variables, validations, annotations, mutations, fields)


def _mutation(mutation: Object) -> Mutation:
    patch_type = mutation.get("patchType") or ""
    holder = mutation.get(EXPRESSION_FIELDS.get(patch_type, "")) or {}
    return Mutation(_expression(holder, "expression"), patch_type)


def _validation(validation: Object) -> Validation:
    expression = _expression(validation, "expression")
    worded = validation.get("messageExpression")
    message = (validation.get("message") or "").strip()
    return Validation(
        expression=expression,
        message=message or f"failed expression: {expression.source.strip()}",
        message_expression=_expression(validation, "messageExpression") if worded else None,
        reason=validation.get("reason") or "Invalid",
    )


def _expression(holder: Object, name: str) -> PolicyExpression:
    source = holder.get(name) or ""
    tokens = tokenize(expand_syntax(call_variables(source)))
    texts = {token.text for token in tokens if token.kind == "name"}
    functions = {*known_functions(), *AUTHORIZER_FUNCTIONS, VARIABLE_FUNCTION}
    names = {function for function in functions if function.rpartition(".")[2] in texts}
    names |= texts.intersection(INPUTS)
    return PolicyExpression(source, _compile(source), frozenset(names), _object_fields(source))


def _object_fields(source: str) -> frozenset[str]:
    tokens = tokenize(source)
    roots = (i for i, token in enumerate(tokens) if token.text in OBJECTS)
    return frozenset(
        _field_path(tokens, i) for i in roots if token_at(tokens, i - 1).text not in (".", ".?")
    )


def _field_path(tokens: Sequence[Token], root: int) -> str:
    """Return the first field of a reference to an object, or the first two, for its metadata."""
    first = _selected(tokens, root)
    if first != "metadata":
        return first or WHOLE
    second = _selected(tokens, root + 2)
    return f"{first}.{second}" if second else first


def _selected(tokens: Sequence[Token], index: int) -> str:
    """Return the field that is selected from a token; "" if that is not a plain selection."""
    mark, name, after = (token_at(tokens, index + 1 + i) for i in range(3))
    plain = mark.text in (".", ".?") and name.kind == "name" and after.text != "("
    return name.text if plain else ""


def _compile(source: str) -> Expression | ExpressionError:
    if not is_installed():
        return ExpressionError(MISSING)
    try:
        compile_expression(source)  # errors show the source as it was written
        return compile_expression(call_variables(source))
    except ExpressionError as error:
        return error


def call_variables(source: str) -> str:
    """Return an expression with its references to variables as calls.

    ``has(variables.name)`` is kept: a variable that is declared is always present.
    """
    tokens, parts, end = tokenize(source), list[str](), 0
    for index, token in enumerate(tokens):
        dot, name = token_at(tokens, index + 1), token_at(tokens, index + 2)
        before = token_at(tokens, index - 1).text
        if token.text != "variables" or before == "." or dot.text != "." or name.kind != "name":
            continue
        is_has = token_at(tokens, index - 2).text == "has" and before == "("
        if is_has and token_at(tokens, index + 3).text == ")":
            continue
        parts += [source[end : token.start], f"{VARIABLE_FUNCTION}('{name.text}')"]
        end = name.start + len(name.text)
    return "".join((*parts, source[end:]))
