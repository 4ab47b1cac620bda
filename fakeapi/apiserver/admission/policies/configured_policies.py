"""The policies of a store with their bindings, as they are matched and evaluated.

They are read again after each write of a policy or a binding. A policy that is unchanged is not
compiled again; its resourceVersion does not show that, since a store may be restored from another
one. The modules that evaluate CEL are imported with the first policy.

Source: k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_source.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import orjson

from fakeapi.apiserver.admission.webhooks.attributes import VersionedObjects
from fakeapi.apiserver.admission.webhooks.configured_webhooks import (
    WebhookRule,
    compile_rule,
    compile_selector,
)
from fakeapi.apiserver.admission.webhooks.rule_matcher import is_exempt, names_resource
from fakeapi.apiserver.kinds import ResourceInfo, ResourceRegistry
from fakeapi.apiserver.kinds.structural_types import schema_of
from fakeapi.apiserver.store.object_store import Document, Entry, Store
from fakeapi.apiserver.wire.struct_decoder import StructDecodeError, decode_struct
from policies.kubernetes.selectors import LabelSelector, SelectorError

if TYPE_CHECKING:
    from fakeapi.apiserver.admission.policies.compilation import CompiledPolicy

Object = Mapping[str, Any]

_REVIEW_GROUPS: Final = ("authentication.k8s.io", "authorization.k8s.io")


@dataclass(frozen=True, slots=True, eq=False)
class MatchResources:
    """The requests that a policy or a binding matches; no rules match every resource.

    Equal constraints are one object, see :func:`_match`.
    """

    rules: tuple[WebhookRule, ...]
    excluded: tuple[WebhookRule, ...]
    namespaces: LabelSelector | SelectorError
    objects: LabelSelector | SelectorError
    equivalent: bool


@dataclass(frozen=True, slots=True)
class ParamRef:
    """The parameters of a binding: one by name, or those that a selector selects."""

    name: str
    namespace: str
    selector: LabelSelector | SelectorError | None
    required: bool


@dataclass(frozen=True, slots=True)
class PolicyBinding:
    """A binding; ``match`` is None if it restricts nothing."""

    name: str
    match: MatchResources | None
    params: ParamRef | None
    actions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy; ``param_kind`` is the apiVersion and kind of its parameters, if it has any.

    ``reinvoked`` is whether a mutating policy may be called again.
    """

    name: str
    fails_open: bool
    match: MatchResources
    param_kind: tuple[str, str] | None
    program: CompiledPolicy
    bindings: tuple[PolicyBinding, ...]
    reinvoked: bool


class ConfiguredPolicies:
    """The admission policies of a store that are of one kind."""

    def __init__(self, store: Store, policies: ResourceInfo, bindings: ResourceInfo) -> None:
        self._store, self._policy_kind, self._binding_kind = store, policies, bindings
        self._read: Sequence[Policy] | None = None
        self._compiled: dict[bytes, CompiledPolicy] = {}
        self._candidates: dict[tuple[ResourceRegistry, ResourceInfo, str], Sequence[Policy]] = {}
        for kind in (policies, bindings):
            store.listen(kind, self._forget)

    @property
    def any(self) -> bool:
        """Whether there is a policy that may apply to a request."""
        return bool(self.all)

    @property
    def all(self) -> Sequence[Policy]:
        """The policies that may apply to a request, in the order of their names."""
        if self._read is None:
            self._read = self._policies()
        return self._read

    def candidates(
        self, versioned_objects: VersionedObjects, resource: ResourceInfo, subresource: str
    ) -> Sequence[Policy]:
        """Return the policies whose rules name a resource or an equivalent one."""
        key = versioned_objects.kinds, resource, subresource
        found = self._candidates.get(key)
        if found is None:
            forms = (resource, *versioned_objects.equivalent_kinds(resource))
            excluded = _is_excluded(resource, subresource)
            found = [p for p in self.all if not excluded and _names(p.match, forms, subresource)]
            self._candidates[key] = found
        return found

    def _forget(self) -> None:
        self._read = None
        self._candidates.clear()

    def _policies(self) -> Sequence[Policy]:
        entries = self._store.entries(self._policy_kind)
        if not entries:
            return ()
        bindings: dict[str, list[PolicyBinding]] = {}
        for entry in self._store.entries(self._binding_kind):
            spec = _spec(self._binding_kind, entry)
            if spec is not None:
                bindings.setdefault(spec.get("policyName", ""), []).append(
                    _binding(entry.key, spec)
                )
        found, compiled = list[Policy](), {}
        for entry in entries:
            spec = _spec(self._policy_kind, entry)
            if spec is not None and (entry.key in bindings or spec.get("paramKind")):
                policy = self._policy(entry, spec, tuple(bindings.get(entry.key, ())))
                compiled[entry.raw] = policy.program
                found.append(policy)
        self._compiled = compiled
        return found

    def _policy(self, entry: Entry, spec: Object, bindings: tuple[PolicyBinding, ...]) -> Policy:
        kind = spec.get("paramKind")
        return Policy(
            name=entry.key,
            fails_open=spec.get("failurePolicy") == "Ignore",
            match=_match(spec.get("matchConstraints") or {}),
            param_kind=(kind.get("apiVersion", ""), kind.get("kind", "")) if kind else None,
            program=self._program(entry, spec),
            bindings=bindings,
            reinvoked=spec.get("reinvocationPolicy") == "IfNeeded",
        )

    def _program(self, entry: Entry, spec: Object) -> CompiledPolicy:
        from fakeapi.apiserver.admission.policies.compilation import compile_policy

        program = self._compiled.get(entry.raw)
        return compile_policy(spec) if program is None else program


def _is_excluded(resource: ResourceInfo, subresource: str) -> bool:
    """Return whether a resource is exempt: policies, configurations, and reviews of access."""
    return is_exempt(resource) or (resource.group in _REVIEW_GROUPS and not subresource)


def _names(match: MatchResources, forms: Iterable[ResourceInfo], subresource: str) -> bool:
    rules = match.rules
    return not rules or any(names_resource(r, form, subresource) for form in forms for r in rules)


def _spec(kind: ResourceInfo, entry: Entry) -> Object | None:
    """Return the spec of an object; None if it was loaded without validation and is malformed."""
    document: Document = entry.document()
    try:
        decode_struct(schema_of(kind), document)
    except StructDecodeError:
        return None
    return document.get("spec") or {}


def _binding(name: str, spec: Object) -> PolicyBinding:
    match, params = spec.get("matchResources"), spec.get("paramRef")
    return PolicyBinding(
        name=name,
        match=None if match is None else _match(match),
        params=None if params is None else _params(params),
        actions=tuple(spec.get("validationActions") or ()),
    )


def _match(match: Object) -> MatchResources:
    return _matched(orjson.dumps(match))


@lru_cache(maxsize=1024)
def _matched(encoded: bytes) -> MatchResources:
    match = orjson.loads(encoded)
    return MatchResources(
        rules=tuple(map(compile_rule, match.get("resourceRules") or ())),
        excluded=tuple(map(compile_rule, match.get("excludeResourceRules") or ())),
        namespaces=compile_selector(match.get("namespaceSelector") or {}),
        objects=compile_selector(match.get("objectSelector") or {}),
        equivalent=match.get("matchPolicy", "Equivalent") == "Equivalent",
    )


def _params(reference: Object) -> ParamRef:
    selector = reference.get("selector")
    return ParamRef(
        name=reference.get("name") or "",
        namespace=reference.get("namespace") or "",
        selector=None if selector is None else compile_selector(selector),
        required=reference.get("parameterNotFoundAction") == "Deny",
    )
