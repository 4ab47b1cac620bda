"""Warnings for objects that were written.

They are upstream's for definitions and custom resources, and one for each thing that this server
stores without effect, though an API server or a node would act on it (:data:`WITHOUT_EFFECT`). An
update warns only of what the object did not have before.

Source: WarningsOnCreate and WarningsOnUpdate in pkg/registry/{customresource,
customresourcedefinition}/strategy.go of k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from extender.cel.string_formats import known_format
from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.builtin import CUSTOM_RESOURCE_DEFINITIONS
from fakeapi.apiserver.schema.crds.custom_resource_strategy import finalizer_warnings
from fakeapi.apiserver.store.object_store import Document, Entry

Json = Mapping[str, Any]

_POD_SECURITY: Final = "pod-security.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class WithoutEffect:
    """Something that is stored without effect.

    ``what`` names it, ``missing`` is the effect that it would have, and ``applies`` returns whether
    an object has it. ``mark`` occurs in the JSON of every object that has it.
    """

    what: str
    missing: str
    applies: Callable[[Json], bool] = lambda _document: True
    mark: bytes = b""

    @property
    def warning(self) -> str:
        """The text of the warning."""
        return f"{self.what}: stored without effect, {self.missing}"


def _sets(*path: str) -> Callable[[Json], bool]:
    """Return whether an object has a field that is not empty."""

    def applies(document: Json) -> bool:
        found: Any = document
        for step in path:
            found = found.get(step) if isinstance(found, dict) else None
        return bool(found)

    return applies


def _has_pod_security(namespace: Json) -> bool:
    labels = namespace["metadata"].get("labels") or {}
    return any(label.startswith(_POD_SECURITY) for label in labels)


def _audits(binding: Json) -> bool:
    return "Audit" in ((binding.get("spec") or {}).get("validationActions") or ())


WITHOUT_EFFECT: Final[Mapping[str, tuple[WithoutEffect, ...]]] = {
    "apiservices.apiregistration.k8s.io": (
        WithoutEffect(
            "APIService with spec.service",
            "requests are not forwarded to the service",
            _sets("spec", "service"),
            b'"service"',
        ),
    ),
    "flowschemas.flowcontrol.apiserver.k8s.io": (
        WithoutEffect("FlowSchema", "requests are neither queued nor rejected"),
    ),
    "namespaces": (
        WithoutEffect(
            f"Namespace with labels {_POD_SECURITY}*",
            "pods are not checked against the Pod Security Standards",
            _has_pod_security,
            _POD_SECURITY.encode(),
        ),
    ),
    "networkpolicies.networking.k8s.io": (
        WithoutEffect("NetworkPolicy", "there is no network whose traffic it could restrict"),
    ),
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": (
        WithoutEffect("PriorityLevelConfiguration", "requests are neither queued nor rejected"),
    ),
    "validatingadmissionpolicies.admissionregistration.k8s.io": (
        WithoutEffect(
            "ValidatingAdmissionPolicy with auditAnnotations",
            "there is no audit log",
            _sets("spec", "auditAnnotations"),
            b'"auditAnnotations"',
        ),
    ),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": (
        WithoutEffect(
            "ValidatingAdmissionPolicyBinding with the action Audit",
            "there is no audit log",
            _audits,
            b'"Audit"',
        ),
    ),
}
"""What is stored without effect, by resource; docs/fakeapi.md has the same table."""


def warnings_for(
    kind: ResourceInfo, entry: Entry, previous: Entry | None = None
) -> tuple[str, ...]:
    """Return the warnings for an object that was written and replaced ``previous``."""
    if kind.custom is not None:
        if b'"finalizers"' not in entry.raw:
            return ()
        return finalizer_warnings(entry.document(), previous.document() if previous else None)
    if kind is CUSTOM_RESOURCE_DEFINITIONS:
        return _new_warnings(_definition_warnings, entry, previous)
    candidates = WITHOUT_EFFECT.get(kind.resource, ())
    effects = [effect for effect in candidates if effect.mark in entry.raw]
    if not effects:
        return ()

    def find(document: Document) -> Iterator[str]:
        return (effect.warning for effect in effects if effect.applies(document))

    return _new_warnings(find, entry, previous)


def _new_warnings(
    find: Callable[[Document], Iterator[str]], entry: Entry, previous: Entry | None
) -> tuple[str, ...]:
    """Return the warnings for an object that were not there for the previous one."""
    before = set(find(previous.document())) if previous else set[str]()
    found = dict.fromkeys(find(entry.document()))
    return tuple(warning for warning in found if warning not in before)


def _definition_warnings(definition: Document) -> Iterator[str]:
    sets = []
    for version in definition["spec"].get("versions") or ():
        for schema in _nested_schemas((version.get("schema") or {}).get("openAPIV3Schema")):
            if schema.get("format") and not known_format(schema):
                yield f'unrecognized format "{schema["format"]}"'
            items = schema.get("items")
            kind = items.get("type") if isinstance(items, dict) else None
            if schema.get("x-kubernetes-list-type") == "set" and kind in ("object", "array"):
                sets.append(
                    f'x-kubernetes-list-type: set for items of type "{kind}" is not supported by '
                    "server-side apply or CEL validation rules"
                )
    yield from sorted(set(sets))


def _nested_schemas(schema: Any) -> Iterator[Json]:
    """Yield a schema and all schemas inside it."""
    if not isinstance(schema, dict):
        return
    yield schema
    for name in ("items", "additionalProperties", "not"):
        yield from _nested_schemas(schema.get(name))
    for name in ("allOf", "anyOf", "oneOf"):
        for below in schema.get(name) or ():
            yield from _nested_schemas(below)
    for below in (schema.get("properties") or {}).values():
        yield from _nested_schemas(below)
