"""Create and update strategies: fields that the server sets or keeps.

    write                    changes                               keeps, or sets
    create                   metadata, spec                        uid, creationTimestamp,
                                                                   generation 1, status
    update                   metadata, spec                        identity, deletion, status
      of status              status, metadata but owners           identity, deletion, owners, spec
      of a custom status     status
      of scale               as of the object itself (the caller changes replicas only)
      of binding             as set by the caller
      of approval            status.conditions, metadata           spec, the rest of the status
      of finalize            spec.finalizers, metadata             status
      of ephemeralcontainers spec.ephemeralContainers              everything else
      of resize              resources and resize policies         everything else

``metadata.generation`` counts changes of the spec, for kinds that have it. For a kind whose
``first_status`` is None (nodes), create keeps the client's status.

Sources: k8s.io/apiserver/pkg/registry/rest (create.go, update.go), the strategies in pkg/registry,
pkg/apis/core/validation (ValidatePodEphemeralContainersUpdate).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.builtin import CERTIFICATE_SIGNING_REQUESTS
from fakeapi.apiserver.objects.metadata import IdAndTimeSources
from fakeapi.apiserver.schema.crds.custom_resource_strategy import (
    prepare_custom_status,
    prepare_custom_update,
)
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import Cause, invalid
from fakeapi.apiserver.wire.http_messages import User
from fakeapi.apiserver.wire.raw_json import json_equal

_IDENTITY = (
    "namespace",
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


OldDocument = Mapping[str, Any]


def prepare_create(
    kind: ResourceInfo, document: Document, sources: IdAndTimeSources, user: User | None
) -> None:
    """Set the fields that the server sets on create; ``document`` has its name and namespace.

    ``user`` creates it; None: the server itself does.
    """
    metadata = document["metadata"]
    for name in ("selfLink", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"):
        metadata.pop(name, None)
    metadata["uid"] = sources.uid()
    metadata["creationTimestamp"] = sources.timestamp(0)
    set_name_label(kind, metadata)
    if kind.generations:
        metadata["generation"] = 1
    if kind.first_spec_finalizers:
        spec = document.setdefault("spec", {})
        present = spec.get("finalizers") or []
        spec["finalizers"] = list(dict.fromkeys((*present, *kind.first_spec_finalizers)))
    if kind is CERTIFICATE_SIGNING_REQUESTS and user is not None:
        _set_requester(document.setdefault("spec", {}), user)
    if "status" in kind.subresources and kind.custom is not None:
        document.pop("status", None)
    elif "status" in kind.subresources and kind.first_status is not None:
        document["status"] = dict(kind.first_status)


def _set_requester(spec: dict[str, Any], user: User) -> None:
    """Replace the identity in a certificate signing request by that of the user who creates it."""
    identity = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {name: list(values) for name, values in user.extra.items()},
    }
    for name, value in identity.items():
        spec.pop(name, None)
        if value:
            spec[name] = value


def prepare_update(
    kind: ResourceInfo, document: Document, old: OldDocument, _sources: IdAndTimeSources
) -> None:
    """Keep the fields of ``old`` that an update may not change, and update the generation."""
    _keep_identity(document["metadata"], old["metadata"])
    set_name_label(kind, document["metadata"])
    if kind.custom is not None:
        prepare_custom_update(kind, document, old)
        return
    if "status" in kind.subresources:
        _keep_field(document, old, "status")
    if kind is CERTIFICATE_SIGNING_REQUESTS:
        _keep_field(document, old, "spec")
    if kind.first_spec_finalizers:
        _keep_field(document.setdefault("spec", {}), old.get("spec") or {}, "finalizers")
    if kind.generations and not json_equal(document.get("spec"), old.get("spec")):
        metadata = document["metadata"]
        metadata["generation"] = metadata.get("generation", 0) + 1


def prepare_status_update(
    kind: ResourceInfo, document: Document, old: OldDocument, _sources: IdAndTimeSources
) -> None:
    """Keep the fields of ``old`` except the status and the metadata that may change."""
    if kind.custom is not None:
        prepare_custom_status(document, old)
        return
    metadata = document["metadata"]
    _keep_identity(metadata, old["metadata"])
    _keep_field(metadata, old["metadata"], "ownerReferences")
    status = document.get("status")
    document.clear()
    document.update(old)
    document["metadata"] = metadata
    document.pop("status", None)
    if status is not None:
        document["status"] = status


def set_name_label(kind: ResourceInfo, metadata: dict[str, Any]) -> None:
    """Set the name label of an object, if it has a name and its kind has such a label."""
    if kind.name_label and metadata.get("name"):
        metadata.setdefault("labels", {})[kind.name_label] = metadata["name"]


def _keep_identity(metadata: dict[str, Any], old: Mapping[str, Any]) -> None:
    for name in _IDENTITY:
        _keep_field(metadata, old, name)


def _keep_field(target: dict[str, Any], source: Mapping[str, Any], name: str) -> None:
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


Prepare = Callable[[ResourceInfo, Document, OldDocument, IdAndTimeSources], None]

_FINALIZER_NAMES: Final = ("kubernetes", "orphan", "foregroundDeletion")
_RESIZABLE: Final = ("resources", "resizePolicy")


def _prepare_binding(
    _kind: ResourceInfo, _document: Document, _old: OldDocument, _sources: IdAndTimeSources
) -> None:
    """Keep everything as the caller has set it."""


def _prepare_finalize(
    kind: ResourceInfo, document: Document, old: OldDocument, sources: IdAndTimeSources
) -> None:
    finalizers = document.get("spec", {}).get("finalizers") or []
    causes = [
        Cause(
            "FieldValueInvalid",
            f'Invalid value: "{finalizer}": name is neither a standard finalizer name nor is it '
            "fully qualified",
            f"spec.finalizers[{index}]",
        )
        for index, finalizer in enumerate(finalizers)
        if "/" not in finalizer and finalizer not in _FINALIZER_NAMES
    ]
    if causes:
        raise invalid(kind.qualified_kind, old["metadata"]["name"], causes)
    prepare_update(kind, document, old, sources)
    document["spec"] = {"finalizers": finalizers} if finalizers else {}


def _prepare_approval(
    kind: ResourceInfo, document: Document, old: OldDocument, sources: IdAndTimeSources
) -> None:
    conditions = (document.get("status") or {}).get("conditions") or []
    types = [condition.get("type") for condition in conditions]
    if "Approved" in types and "Denied" in types:
        raise invalid(kind.qualified_kind, old["metadata"]["name"], [_approved_and_denied()])
    status = dict(old.get("status") or {})
    before = status.pop("conditions", [])
    if conditions:
        status["conditions"] = [_with_times(c, before, sources) for c in conditions]
    prepare_update(kind, document, old, sources)
    document["spec"] = old.get("spec") or {}
    document["status"] = status


def _approved_and_denied() -> Cause:
    quoted = ", ".join(f'conditions[{{\\"type\\": \\"{name}\\"}}]' for name in _APPROVAL_TYPES)
    named = ", ".join(f'`conditions[{{"type": "{name}"}}]`' for name in _APPROVAL_TYPES)
    message = f'Invalid value: "{{{quoted}}}": must specify at most one of: {named}'
    return Cause("FieldValueInvalid", message, "status.conditions")


_APPROVAL_TYPES: Final = ("Approved", "Denied")


def _with_times(
    condition: Mapping[str, Any], before: list[dict[str, Any]], sources: IdAndTimeSources
) -> dict[str, Any]:
    now = sources.timestamp(0)
    changed = next(
        (
            earlier["lastTransitionTime"]
            for earlier in before
            if all(earlier.get(key) == condition.get(key) for key in ("type", "status"))
            and earlier.get("lastTransitionTime")
        ),
        now,
    )
    stamped = dict(condition)
    stamped["lastUpdateTime"] = condition.get("lastUpdateTime") or now
    stamped["lastTransitionTime"] = condition.get("lastTransitionTime") or changed
    return stamped


def _prepare_ephemeral(
    kind: ResourceInfo, document: Document, old: OldDocument, sources: IdAndTimeSources
) -> None:
    before = old.get("spec") or {}
    requested = _containers(document.get("spec") or {}, "ephemeralContainers")
    causes = [
        *_changed_container_errors(requested, before),
        *_duplicate_name_errors(requested, before),
    ]
    if causes:
        raise invalid(kind.qualified_kind, old["metadata"]["name"], causes)
    spec = dict(before)
    spec.pop("ephemeralContainers", None)
    if requested:
        spec["ephemeralContainers"] = requested
    _replace_spec(kind, document, old, spec, sources)


def _containers(spec: Mapping[str, Any], part: str) -> list[dict[str, Any]]:
    """Return the containers that have a name."""
    listed = spec.get(part)
    return [c for c in listed if _is_named(c)] if isinstance(listed, list) else []


def _is_named(container: Any) -> bool:
    return isinstance(container, dict) and isinstance(container.get("name"), str)


def _changed_container_errors(
    requested: list[dict[str, Any]], before: Mapping[str, Any]
) -> list[Cause]:
    names = {container["name"]: container for container in requested}
    causes = []
    for container in _containers(before, "ephemeralContainers"):
        name = container["name"]
        if names.get(name) != container:
            verb = "changed" if name in names else "removed"
            message = f'Forbidden: existing ephemeral containers "{name}" may not be {verb}\n'
            causes.append(Cause("FieldValueForbidden", message, "spec.ephemeralContainers"))
    return causes


def _duplicate_name_errors(requested: list[dict[str, Any]], spec: Mapping[str, Any]) -> list[Cause]:
    taken = {
        container["name"]
        for part in ("containers", "initContainers")
        for container in _containers(spec, part)
    }
    causes = []
    for index, container in enumerate(requested):
        name = container["name"]
        if name in taken:
            field = f"spec.ephemeralContainers[{index}].name"
            causes.append(Cause("FieldValueDuplicate", f'Duplicate value: "{name}"', field))
        taken.add(name)
    return causes


def _prepare_resize(
    kind: ResourceInfo, document: Document, old: OldDocument, sources: IdAndTimeSources
) -> None:
    requested = document.get("spec") or {}
    spec = dict(old.get("spec") or {})
    for part in ("containers", "initContainers"):
        if part in spec:
            spec[part] = _resized(_containers(spec, part), _containers(requested, part))
    _replace_spec(kind, document, old, spec, sources)


def _resized(
    present: list[dict[str, Any]], requested: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    sizes = {
        container["name"]: {key: container[key] for key in _RESIZABLE if key in container}
        for container in requested
    }
    return [container | sizes.get(container["name"], {}) for container in present]


def _replace_spec(
    kind: ResourceInfo,
    document: Document,
    old: OldDocument,
    spec: dict[str, Any],
    sources: IdAndTimeSources,
) -> None:
    managed = document["metadata"].get("managedFields")
    document.clear()
    document.update(old)
    document["metadata"] = dict(old["metadata"])
    if managed is not None:
        document["metadata"]["managedFields"] = managed
    document["spec"] = spec
    prepare_update(kind, document, old, sources)


PREPARE_UPDATE: Final[Mapping[str, Prepare]] = {
    "": prepare_update,
    "status": prepare_status_update,
    "scale": prepare_update,
    "approval": _prepare_approval,
    "binding": _prepare_binding,
    "finalize": _prepare_finalize,
    "ephemeralcontainers": _prepare_ephemeral,
    "resize": _prepare_resize,
}
