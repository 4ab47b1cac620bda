"""Evaluation of policies for a request.

All policies of a request share the variables ``object``, ``oldObject``, ``request``,
``namespaceObject`` and ``authorizer``, which are converted for CEL when the first expression needs
them; ``params`` and ``variables`` are those of one evaluation. Of objects, only the fields that the
policies refer to are converted, since this takes longer than most evaluations.

An expression that cannot be evaluated denies the request, or, with the failure policy Ignore, does
not. A match condition that is false skips the policy.

Sources: k8s.io/apiserver/pkg/admission/plugin (policy/validating/validator.go,
webhook/matchconditions/matcher.go, cel/{activation,composition}.go), pkg/apis/cel/config.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from extender.cel.compilation import (
    NOT_NATIVE,
    OBJECT_BUDGET,
    ExpressionError,
    known_functions,
    new_context,
    value_size,
)
from extender.cel.kubernetes_functions import AUTHORIZER_FUNCTIONS
from fakeapi.apiserver.admission.policies.authorizer import (
    authorizer_functions,
    authorizer_value,
)
from fakeapi.apiserver.admission.policies.compilation import (
    INPUTS,
    VARIABLE_FUNCTION,
    WHOLE,
    CompiledPolicy,
    PolicyExpression,
    Validation,
)
from fakeapi.apiserver.admission.webhooks.admission_review import admission_request, object_kind
from fakeapi.apiserver.admission.webhooks.attributes import AdmissionAttributes, VersionedObjects
from fakeapi.apiserver.auth.authorization import Authorizer
from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.builtin import NAMESPACES
from fakeapi.apiserver.store.dry_run import ObjectReader
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import not_found

_CONDITIONS_BUDGET: Final = 2_500_000
_LONGEST_MESSAGE: Final = 5 * 1024
_OUT_OF_BUDGET: Final = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed validation."""

    message: str
    reason: str = ""


@dataclass(slots=True)
class PolicyResult:
    """The failures of a policy for one parameter, and the errors of its audit annotations."""

    failures: list[Failure] = field(default_factory=list)
    annotation_errors: list[str] = field(default_factory=list)


class EvaluationError(Exception):
    """A policy as a whole, or the match conditions of a webhook, cannot be evaluated."""


class PolicyInput:
    """The variables of a request, in the version of a matched resource.

    ``fields`` are the fields of objects that its policies refer to.
    """

    def __init__(
        self,
        resource: ResourceInfo,
        attributes: AdmissionAttributes,
        versioned_objects: VersionedObjects,
        objects: ObjectReader,
        authorizer: Authorizer,
        fields: frozenset[str],
    ) -> None:
        self._fields = fields
        self._resource, self._attributes = resource, attributes
        self._versioned_objects = versioned_objects
        self._objects = objects
        self._variables: _Variables | None = None
        self._context: Any = None
        self._changed: dict[str, Any] = {}
        self._scope = _Scope(self._input, self._variable)
        self._authorizer = authorizer
        self._known: frozenset[str] = frozenset()
        self._size = 0

    def evaluate(
        self, policy: CompiledPolicy, params: Document | None, *, fails_open: bool
    ) -> PolicyResult:
        """Return the failures of a policy for one parameter."""
        result = PolicyResult()
        evaluation = _Evaluation(self, policy, params)
        try:
            if evaluation.matches(fails_open=fails_open):
                evaluation.validate(result, fails_open=fails_open)
        except EvaluationError as error:
            if not fails_open:
                result.failures.append(Failure(str(error)))
        return result

    def matches(
        self, policy: CompiledPolicy, params: Document | None = None, *, fails_open: bool
    ) -> bool:
        """Return whether all match conditions of a policy are true. Raise EvaluationError."""
        return _Evaluation(self, policy, params).matches(fails_open=fails_open)

    def value_of_mutation(
        self, policy: CompiledPolicy, params: Document | None, mutation: PolicyExpression
    ) -> Any:
        """Return the value of a mutation of a policy. Raise EvaluationError, ExpressionError."""
        return _Evaluation(self, policy, params).value_of_mutation(mutation)

    def begin(self, policy: CompiledPolicy, params: Document | None) -> None:
        """Set the variables that differ between evaluations."""
        self._variables = _Variables(policy) if policy.variables else None
        changed = {"params": params, "variables": dict.fromkeys(policy.variables, True)}
        self._scope |= changed
        self._changed |= changed

    def value_of(self, expression: PolicyExpression) -> Any:
        """Return the value of an expression. Raise ExpressionError."""
        compiled = expression.compiled
        if isinstance(compiled, ExpressionError):
            raise compiled
        found = compiled.evaluate_natively(self._scope, _SCOPE_FUNCTIONS)
        if found is not NOT_NATIVE:
            return found
        self._add(expression.names - self._known)
        return compiled.evaluate_in(self._context)

    def cost_of(self, expression: PolicyExpression) -> int:
        """Return the cost of an evaluation. Raise CostError if it exceeds the limit of one call."""
        compiled = expression.compiled
        if isinstance(compiled, ExpressionError):
            return 0
        if not compiled.has_nested_macros:
            return 1  # the size of a request body keeps other costs far below the limits
        if not self._size:
            self._size = value_size([self._attributes.object, self._attributes.old])
        return compiled.cost_of_size(self._size)

    def failure_of_variable(self) -> str:
        """Return the error of the variable that the last evaluation failed for; "" if none did."""
        return "" if self._variables is None else self._variables.take_error()

    def _variable(self, name: str) -> Any:
        if self._variables is None:
            raise ValueError(f"no such key: {name}")
        return self._variables.value(name, self)

    def _add(self, names: frozenset[str]) -> None:
        """Add the variables and functions of these names to the library's context."""
        if self._context is None:
            self._context = new_context()
        for name, value in self._changed.items():
            self._context.add_variable(name, value)
        self._changed.clear()
        self._known |= names
        for name in names:
            if name in INPUTS:
                self._context.add_variable(name, self._scope[name])
            else:
                self._context.add_function(name, self._function(name))

    def _function(self, name: str) -> Callable[..., Any]:
        if name == VARIABLE_FUNCTION:
            return self._variable
        if name in AUTHORIZER_FUNCTIONS:
            return authorizer_functions(self._attributes.requested.user, self._authorizer)[name]
        found: Callable[..., Any] = known_functions()[name]
        return found

    def _input(self, name: str) -> Any:
        attributes = self._attributes
        if name == "authorizer":
            return authorizer_value(attributes)
        if name == "namespaceObject":
            return self._namespace_object()
        if name == "request":
            request = admission_request(self._resource, attributes, self._versioned_objects)
            return {k: v for k, v in request.items() if k not in _NOT_IN_REQUEST}
        document = attributes.object if name == "object" else attributes.old
        kind = object_kind(self._resource, attributes)
        found = self._versioned_objects.to_version(kind, attributes.kind, document)
        return None if found is None else self._visible(found)

    def _visible(self, document: Document) -> Document:
        """Return the fields of an object that policies refer to."""
        if WHOLE in self._fields:
            return document
        visible = {name: value for name, value in document.items() if name in self._fields}
        prefix = "metadata."
        names = {f.removeprefix(prefix) for f in self._fields if f.startswith(prefix)}
        if names and "metadata" not in visible:
            metadata = document["metadata"]
            visible["metadata"] = {name: metadata[name] for name in names if name in metadata}
        return visible

    def _namespace_object(self) -> Document | None:
        """Return the namespace of the object, if it has one, without fields that are hidden."""
        name = self._attributes.namespace
        if not name or self._attributes.kind is NAMESPACES:
            return None
        entry = self._objects.get(NAMESPACES, name)
        if entry is None:
            raise not_found(NAMESPACES, name)
        document = entry.document()
        metadata = {k: v for k, v in document["metadata"].items() if k not in _HIDDEN}
        return {**document, "metadata": metadata}


_HIDDEN: Final = frozenset(("managedFields", "ownerReferences", "selfLink"))
_NOT_IN_REQUEST: Final = frozenset(("uid", "object", "oldObject"))


_SCOPE_FUNCTIONS: Final = frozenset((VARIABLE_FUNCTION,))


class _Scope(dict[str, Any]):
    """The variables of a request, each computed when an expression first refers to it."""

    def __init__(self, compute: Callable[[str], Any], variable: Callable[[str], Any]) -> None:
        super().__init__({VARIABLE_FUNCTION: variable})
        self._compute = compute

    def __missing__(self, name: str) -> Any:
        if name not in INPUTS:
            raise KeyError(name)
        self[name] = value = self._compute(name)
        return value


class _Variables:
    """The variables of one evaluation, each with its value or its error once it is known."""

    def __init__(self, policy: CompiledPolicy) -> None:
        self._policy = policy
        self._values: dict[str, Any] = {}
        self._errors: dict[str, str] = {}
        self._error = ""

    def value(self, name: str, given: PolicyInput) -> Any:
        """Return the value of a variable. Raise ValueError."""
        if name not in self._values and name not in self._errors:
            self._errors[name] = f"no such key: {name}"  # also for one that refers to itself
            try:
                self._values[name] = given.value_of(self._policy.variables[name])
                del self._errors[name]
            except KeyError:
                pass
            except ExpressionError as error:
                inner = self.take_error() or str(error)
                self._errors[name] = f'composited variable "{name}" fails to evaluate: {inner}'
        if name in self._errors:
            self._error = self._errors[name]
            raise ValueError(self._error)
        return self._values[name]

    def take_error(self) -> str:
        """Return the last error of a variable, and forget it."""
        error, self._error = self._error, ""
        return error


class _Evaluation:
    """The evaluation of one policy for one parameter."""

    def __init__(self, given: PolicyInput, policy: CompiledPolicy, params: Document | None) -> None:
        given.begin(policy, params)
        self._given, self._policy = given, policy

    def matches(self, *, fails_open: bool) -> bool:
        """Return whether all match conditions are true. Raise EvaluationError."""
        errors, left = [], _CONDITIONS_BUDGET
        for condition in self._policy.conditions:
            left = self._spend(condition, left)
            try:
                if self._value(condition) is False:
                    return False
            except ExpressionError as error:
                errors.append(str(error))
        if errors and not fails_open:
            raise EvaluationError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
        return not errors

    def validate(self, result: PolicyResult, *, fails_open: bool) -> None:
        """Evaluate validations and audit annotations. Raise EvaluationError."""
        left = OBJECT_BUDGET
        for validation in self._policy.validations:
            left = self._spend(validation.expression, left)
            try:
                if self._value(validation.expression) is not True:
                    result.failures.append(Failure(self._message(validation), validation.reason))
            except ExpressionError as error:
                if not fails_open:
                    result.failures.append(Failure(str(error)))
        for annotation in self._policy.annotations:
            error_text = self._annotation_error(annotation)
            if error_text and not fails_open:
                result.annotation_errors.append(error_text)

    def value_of_mutation(self, mutation: PolicyExpression) -> Any:
        """Return the value of a mutation. Raise EvaluationError, ExpressionError."""
        self._spend(mutation, OBJECT_BUDGET)
        return self._value(mutation)

    def _annotation_error(self, annotation: PolicyExpression) -> str:
        try:
            value = self._value(annotation)
        except ExpressionError as error:
            return str(error)
        if value is None or isinstance(value, str):
            return ""
        return (
            f"valueExpression '{annotation.source}' resulted in unsupported return type: "
            f"{_TYPES.get(type(value), 'map')}. Return type must be either string or null."
        )

    def _message(self, validation: Validation) -> str:
        if validation.message_expression is None:
            return validation.message
        try:
            found = self._value(validation.message_expression)
        except ExpressionError:
            return validation.message
        text = found.strip() if isinstance(found, str) else ""
        usable = text and "\n" not in text and len(text) <= _LONGEST_MESSAGE
        return text if usable else validation.message

    def _spend(self, expression: PolicyExpression, left: int) -> int:
        """Return the budget that an evaluation leaves. Raise EvaluationError if none is left."""
        try:
            left -= self._given.cost_of(expression)
        except ExpressionError as error:
            raise EvaluationError(_resulted_in(expression, str(error))) from None
        if left < 0:
            raise EvaluationError(_OUT_OF_BUDGET)
        return left

    def _value(self, expression: PolicyExpression) -> Any:
        """Return the value of an expression. Raise ExpressionError with upstream's message."""
        if isinstance(expression.compiled, ExpressionError):
            raise ExpressionError(f"compilation error: {expression.compiled}")
        try:
            return self._given.value_of(expression)
        except ExpressionError as error:
            inner = self._given.failure_of_variable() or str(error)
            raise ExpressionError(_resulted_in(expression, inner)) from None


_TYPES: Final[Mapping[type, str]] = {bool: "bool", float: "double", int: "int", list: "list"}


def _resulted_in(expression: PolicyExpression, error: str) -> str:
    return f"expression '{expression.source}' resulted in error: {error}"
