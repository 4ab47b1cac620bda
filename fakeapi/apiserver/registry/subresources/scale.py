"""The scale subresource: the number of replicas, in one form for every kind that has them.

A Scale is read from the object, changed by the request, and written back to the object; only
``spec.replicas``, the uid and the resourceVersion of the request are used. The field manager of the
request owns the replicas (:mod:`fakeapi.apiserver.managedfields.scale`), after an apply too.

Source: pkg/registry/apps/deployment/storage/storage.go, and those of the other workloads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fakeapi.apiserver.kinds.builtin import SCALE
from fakeapi.apiserver.kinds.resource_info import ResourceInfo
from fakeapi.apiserver.managedfields import (
    AppliedConfiguration,
    FieldManager,
    ReplicasOwners,
    track_update,
)
from fakeapi.apiserver.objects.metadata import check_document, check_url_name
from fakeapi.apiserver.objects.patch import apply_patch, read_configuration
from fakeapi.apiserver.registry.generic_registry import apply_configuration
from fakeapi.apiserver.registry.request_scope import RequestScope, json_response, read_typed
from fakeapi.apiserver.store.object_store import Document, Entry
from fakeapi.apiserver.wire.errors import Cause, bad_request, invalid
from fakeapi.apiserver.wire.http_messages import Response
from fakeapi.apiserver.wire.request_bodies import media_type
from fakeapi.apiserver.wire.write_options import APPLY_PATCH, apply_manager_of, field_manager_of

_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_OPERATORS: Final = {"In": "{key} in ({values})", "NotIn": "{key} notin ({values})"}
_UNARY: Final = {"Exists": "{key}", "DoesNotExist": "!{key}"}


def get_scale(call: RequestScope) -> Response:
    """Return the object's Scale."""
    return _scaled(call.registry.get(call.target))


def write_scale(call: RequestScope) -> Response:
    """Set the replicas from a whole or a patched Scale."""
    name, change = call.target.name, scale_change(call, SCALE)

    def scaled(document: Document) -> Document:
        owners = ReplicasOwners.of(document, call.target.kind.api_version)
        old = scale_of(document)
        scale = call.admit(SCALE, change(with_owners(old, owners)), old)
        document.setdefault("spec", {})["replicas"] = checked_replicas(scale, name)
        copy_metadata(scale, document, owners)
        return document

    return _scaled(call.registry.change(call.target, scaled))


def scale_change(call: RequestScope, patched_kind: ResourceInfo) -> Callable[[Document], Document]:
    """Return the change of a Scale that a PUT, a PATCH or an apply makes, with its owners.

    Raise StatusError.
    """
    request, now = call.request, call.services.sources.timestamp(0)
    if request.method == "PATCH" and media_type(request.content_type) == APPLY_PATCH:
        manager, force = apply_manager_of(request)
        config = AppliedConfiguration(read_configuration(request.body), force)
        applier = FieldManager(manager, now, call.target.subresource)
        return lambda scale: _checked(call, apply_configuration(SCALE, scale, config, applier))
    writer = FieldManager(field_manager_of(request), now, call.target.subresource)
    if request.method == "PATCH":

        def patched(scale: Document) -> Document:
            return apply_patch(patched_kind, scale, request.content_type, request.body)

        return lambda scale: _tracked(call, scale, patched(scale), writer)
    call.registry.get(call.target)
    requested = read_typed(call, SCALE)
    return lambda scale: _tracked(call, scale, requested, writer)


def _checked(call: RequestScope, scale: Document) -> Document:
    check_url_name(call.target.name, check_document(SCALE, scale))
    checked_replicas(scale, call.target.name)
    return scale


def _tracked(call: RequestScope, old: Document, scale: Document, writer: FieldManager) -> Document:
    track_update(SCALE, old, _checked(call, scale), writer)
    return scale


def with_owners(scale: Document, owners: ReplicasOwners) -> Document:
    """Return a Scale with its managed fields."""
    return {**scale, "metadata": {**scale["metadata"], "managedFields": owners.scale_entries()}}


def copy_metadata(scale: Document, document: Document, owners: ReplicasOwners) -> None:
    """Copy the uid and the resourceVersion that a Scale requires, and its owners, to an object."""
    for member in ("uid", "resourceVersion"):
        if scale["metadata"].get(member):
            document["metadata"][member] = scale["metadata"][member]
    document["metadata"].pop("managedFields", None)
    if entries := owners.entries(scale["metadata"].get("managedFields")):
        document["metadata"]["managedFields"] = entries


def scale_of(document: Mapping[str, Any]) -> Document:
    """Return the Scale of an object's document."""
    spec, status = document.get("spec") or {}, document.get("status") or {}
    selector = selector_text(spec.get("selector") or {})
    return new_scale(document, spec.get("replicas", 1), status.get("replicas", 0), selector)


def new_scale(document: Mapping[str, Any], replicas: Any, current: Any, selector: Any) -> Document:
    """Return a Scale of an object, with its desired and its current number of replicas."""
    metadata = document["metadata"]
    return {
        "kind": SCALE.kind,
        "apiVersion": SCALE.api_version,
        "metadata": {name: metadata[name] for name in _METADATA if name in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": {"replicas": current, **({"selector": selector} if selector else {})},
    }


def selector_text(selector: Mapping[str, Any]) -> str:
    """Return a selector (for replication controllers plain labels) as in a query string."""
    structured = "matchLabels" in selector or "matchExpressions" in selector
    labels = selector.get("matchLabels") or {} if structured else selector
    terms = [(key, f"{key}={value}") for key, value in labels.items()]
    for expression in (selector.get("matchExpressions") or []) if structured else []:
        form = {**_OPERATORS, **_UNARY}.get(expression.get("operator"), "{key}")
        values = ",".join(sorted(expression.get("values") or []))
        terms.append((expression["key"], form.format(key=expression["key"], values=values)))
    return ",".join(text for _, text in sorted(terms, key=lambda term: term[0]))


def checked_replicas(scale: Document, name: str) -> int:
    """Return the replicas of a Scale. Raise StatusError (400, 422)."""
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise bad_request(
            'Scale in version "v1" cannot be handled as a Scale: json: cannot unmarshal '
            "string into Go struct field ScaleSpec.spec.replicas of type int32"
        )
    if replicas < 0:
        message = f"Invalid value: {replicas}: must be greater than or equal to 0"
        cause = Cause("FieldValueInvalid", message, "spec.replicas")
        raise invalid("Scale.autoscaling", name, [cause])
    return replicas


def _scaled(entry: Entry) -> Response:
    return json_response(200, scale_of(entry.document()))
