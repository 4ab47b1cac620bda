"""Validation rules of admission policies and their bindings.

Source: pkg/apis/admissionregistration/validation/validation.go, v1.37.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from extender.cel.parser import MISSING, is_installed
from fakeapi.apiserver.validation.webhook_configurations import rule_errors, selector_errors
from fakeapi.apiserver.wire.errors import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from policies.kubernetes.name_validation import (
    invalid_dns1035_label,
    invalid_path_segment,
    invalid_subdomain,
)

Object = Mapping[str, Any]

_FAILURE_POLICIES: Final = ("Fail", "Ignore")
_MATCH_POLICIES: Final = ("Equivalent", "Exact")
_ACTIONS: Final = ("Audit", "Deny", "Warn")
_NOT_FOUND_ACTIONS: Final = ("Deny", "Allow")
_MUTABLE_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "UPDATE")
_REINVOCATION_POLICIES: Final = ("IfNeeded", "Never")


def validating_policy_errors(policy: Object, _path: str) -> Iterator[Cause]:
    """Yield the errors of a ValidatingAdmissionPolicy."""
    spec = policy.get("spec") or {}
    yield from _policy_errors(spec, "spec")
    if not is_installed():
        yield forbidden_field("spec.validations", MISSING)
        return
    # imports the type checker
    from fakeapi.apiserver.validation.policy_expressions import PolicyExpressions

    yield from PolicyExpressions(spec).errors(spec, policy["metadata"].get("name") or "")


def mutating_policy_errors(policy: Object, _path: str) -> Iterator[Cause]:
    """Yield the errors of a MutatingAdmissionPolicy."""
    spec = policy.get("spec") or {}
    yield from _policy_errors(spec, "spec")
    yield from _operation_errors(spec.get("matchConstraints"), "spec.matchConstraints")
    if not is_installed():
        yield forbidden_field("spec.mutations", MISSING)
        return
    # imports the type checker
    from fakeapi.apiserver.validation.mutation_expressions import mutation_errors

    yield from mutation_errors(spec)
    yield from _choice(spec, "reinvocationPolicy", _REINVOCATION_POLICIES, "spec")


def _policy_errors(spec: Object, path: str) -> Iterator[Cause]:
    yield from _choice(spec, "failurePolicy", _FAILURE_POLICIES, path)
    kind, constraints = spec.get("paramKind"), spec.get("matchConstraints")
    if kind is not None:
        yield from _param_kind_errors(kind, f"{path}.paramKind")
    where = f"{path}.matchConstraints"
    if constraints is None:
        yield required(where)
    else:
        yield from _match_errors(constraints, where)
        if not constraints.get("resourceRules"):
            yield required(f"{where}.resourceRules")


def validating_binding_errors(binding: Object, _path: str) -> Iterator[Cause]:
    """Yield the errors of a ValidatingAdmissionPolicyBinding."""
    spec = binding.get("spec") or {}
    yield from _binding_errors(spec)
    yield from _action_errors(spec.get("validationActions") or (), "spec.validationActions")


def mutating_binding_errors(binding: Object, _path: str) -> Iterator[Cause]:
    """Yield the errors of a MutatingAdmissionPolicyBinding."""
    spec = binding.get("spec") or {}
    yield from _binding_errors(spec)
    yield from _operation_errors(spec.get("matchResources"), "spec.matchResources")


def _binding_errors(spec: Object) -> Iterator[Cause]:
    name = spec.get("policyName") or ""
    if not name:
        yield required("spec.policyName")
    elif wrong := invalid_subdomain(name):
        yield invalid_value("spec.policyName", name, wrong)
    if spec.get("paramRef") is not None:
        yield from _param_ref_errors(spec["paramRef"], "spec.paramRef")
    if spec.get("matchResources") is not None:
        yield from _match_errors(spec["matchResources"], "spec.matchResources")


def _choice(holder: Object, name: str, choices: Sequence[str], path: str) -> Iterator[Cause]:
    value = holder.get(name)
    if not value:
        yield required(f"{path}.{name}")
    elif value not in choices:
        yield unsupported_value(f"{path}.{name}", value, choices)


def _param_kind_errors(kind: Object, path: str) -> Iterator[Cause]:
    api_version, name = kind.get("apiVersion") or "", kind.get("kind") or ""
    where = f"{path}.apiVersion"
    group, _, version = api_version.rpartition("/")
    if not api_version:
        yield required(where)
    elif api_version.count("/") > 1:
        detail = f"unexpected GroupVersion string: {api_version}"
        yield invalid_value(where, api_version, detail)
    else:
        if group and (wrong := invalid_subdomain(group)):
            yield invalid_value(where, group, wrong)
        if not version:
            yield invalid_value(where, api_version, "version must be specified")
        elif wrong := invalid_dns1035_label(version):
            yield invalid_value(where, version, wrong)
    if not name:
        yield required(f"{path}.kind")
    elif wrong := invalid_dns1035_label(name.lower()):
        detail = f"may have mixed case, but should otherwise match: {wrong}"
        yield invalid_value(f"{path}.kind", name, detail)


def _match_errors(match: Object, path: str) -> Iterator[Cause]:
    yield from _choice(match, "matchPolicy", _MATCH_POLICIES, path)
    for name in ("namespaceSelector", "objectSelector"):
        yield from selector_errors(match.get(name) or {}, f"{path}.{name}")
    for name in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(name) or ()):
            yield from _named_rule_errors(rule, f"{path}.{name}[{index}]")


def _operation_errors(match: Object | None, path: str) -> Iterator[Cause]:
    """Yield the errors of operations whose objects cannot be mutated."""
    for rule in (match or {}).get("resourceRules") or ():
        for operation in rule.get("operations") or ():
            if operation not in _MUTABLE_OPERATIONS:
                where = f"{path}.resourceRules.operations"
                yield unsupported_value(where, operation, _MUTABLE_OPERATIONS)


def _named_rule_errors(rule: Object, path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, name in enumerate(rule.get("resourceNames") or ()):
        where = f"{path}.resourceNames[{index}]"
        if wrong := invalid_path_segment(name):
            yield invalid_value(where, name, wrong)
        if name in seen:
            yield duplicate(where, name)
        seen.add(name)
    yield from rule_errors(rule, path)


def _param_ref_errors(reference: Object, path: str) -> Iterator[Cause]:
    name, selector = reference.get("name") or "", reference.get("selector")
    exclusive = "name and selector are mutually exclusive"
    if name:
        if wrong := invalid_path_segment(name):
            yield invalid_value(f"{path}.name", name, wrong)
        if selector is not None:
            yield forbidden_field(f"{path}.name", exclusive)
    if selector is not None:
        yield from selector_errors(selector, f"{path}.selector")
        if name:
            yield forbidden_field(f"{path}.selector", exclusive)
    if not name and selector is None:
        yield required(path, "one of name or selector must be specified")
    yield from _choice(reference, "parameterNotFoundAction", _NOT_FOUND_ACTIONS, path)


def _action_errors(actions: Sequence[str], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            yield unsupported_value(f"{path}[{index}]", action, _ACTIONS)
        if action in seen:
            yield duplicate(f"{path}[{index}]", action)
        seen.add(action)
    if {"Deny", "Warn"} <= seen:
        detail = (
            "must not contain both Deny and Warn (repeating the same validation failure "
            "information in the API response and headers serves no purpose)"
        )
        yield invalid_value(path, list(actions), detail)
    if not seen:
        yield required(path, "at least one validation action is required")
