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

from fakeapi.apiserver.schema.cel.compilation import (
    Expression,
    ExpressionError,
    compile_expression,
    known_functions,
)
from fakeapi.apiserver.schema.cel.kubernetes_functions import AUTHORIZER_FUNCTIONS
from fakeapi.apiserver.schema.cel.macros import expand_syntax
from fakeapi.apiserver.schema.cel.parser import (
    MISSING,
    Token,
    is_installed,
    token_at,
    tokenize,
)

Object = Mapping[str, Any]

VARIABLE_FUNCTION: Final = "policy_variable"
OBJECTS: Final = ("object", "oldObject")
INPUTS: Final = (*OBJECTS, "request", "namespaceObject", "authorizer")
"""The variables that are the same for all policies of a request."""
MANAGED_FIELDS: Final = "managedFields"


@dataclass(frozen=True, slots=True)
class PolicyExpression:
    """An expression of a policy; ``compiled`` is the error if it cannot be compiled.

    ``names`` are the inputs and the functions that it needs, and ``managedFields`` if it may see
    those of an object.
    """

    source: str
    compiled: Expression | ExpressionError
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Validation:
    """A validation of a policy; ``message`` is the one without a message expression."""

    expression: PolicyExpression
    message: str
    message_expression: PolicyExpression | None
    reason: str


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    """The expressions of a policy; ``annotations`` are those of its audit annotations."""

    conditions: tuple[PolicyExpression, ...]
    variables: Mapping[str, PolicyExpression]
    validations: tuple[Validation, ...]
    annotations: tuple[PolicyExpression, ...]


def compile_policy(spec: Object) -> CompiledPolicy:
    """Return the compiled expressions of a policy's spec."""
    return CompiledPolicy(
        conditions=tuple(_expression(c, "expression") for c in spec.get("matchConditions") or ()),
        variables={
            variable.get("name", ""): _expression(variable, "expression")
            for variable in spec.get("variables") or ()
        },
        validations=tuple(_validation(each) for each in spec.get("validations") or ()),
        annotations=tuple(
            _expression(each, "valueExpression") for each in spec.get("auditAnnotations") or ()
        ),
    )


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
    tokens = tokenize(source)
    if any(_needs_managed_fields(tokens, index) for index in range(len(tokens))):
        names.add(MANAGED_FIELDS)
    return PolicyExpression(source, _compile(source), frozenset(names))


def _needs_managed_fields(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a token refers to an object, its metadata or its managed fields."""
    if tokens[index].text not in OBJECTS or token_at(tokens, index - 1).text == ".":
        return False
    for narrows in ("metadata", MANAGED_FIELDS):
        mark, name = token_at(tokens, index + 1), token_at(tokens, index + 2)
        if mark.text not in (".", ".?") or name.text == MANAGED_FIELDS:
            return True
        if name.text != narrows:
            return False
        index += 2
    return True


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
