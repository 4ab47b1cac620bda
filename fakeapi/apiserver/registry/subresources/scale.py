"""The scale subresource: the number of replicas, in one form for every kind that has them.

A Scale is read from the object, changed by the request, and written back to the object; only
``spec.replicas``, the uid and the resourceVersion of the request are used.

Source: pkg/registry/apps/deployment/storage/storage.go, and those of the other workloads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fakeapi.apiserver.kinds.builtin import SCALE
from fakeapi.apiserver.kinds.resource_info import ResourceInfo
from fakeapi.apiserver.objects.metadata import check_document, check_url_name
from fakeapi.apiserver.objects.patch import apply_patch
from fakeapi.apiserver.registry.request_scope import RequestScope, json_response, read_typed
from fakeapi.apiserver.store.object_store import Document, Entry
from fakeapi.apiserver.wire.errors import Cause, bad_request, invalid
from fakeapi.apiserver.wire.http_messages import Response

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
        scale = change(scale_of(document))
        check_url_name(name, check_document(SCALE, scale))
        scale = call.admit(SCALE, scale, scale_of(document))
        document.setdefault("spec", {})["replicas"] = checked_replicas(scale, name)
        copy_preconditions(scale, document)
        return document

    return _scaled(call.registry_with_manager.change(call.target, scaled))


def scale_change(call: RequestScope, patched_kind: ResourceInfo) -> Callable[[Document], Document]:
    """Return the change of a Scale that a PUT or PATCH makes. Raise StatusError for a PUT."""
    request = call.request
    if request.method == "PATCH":
        return lambda scale: apply_patch(patched_kind, scale, request.content_type, request.body)
    call.registry.get(call.target)
    requested = read_typed(call, SCALE)
    return lambda _scale: requested


def copy_preconditions(scale: Document, document: Document) -> None:
    """Copy the uid and the resourceVersion that a Scale requires into an object's document."""
    for member in ("uid", "resourceVersion"):
        if scale["metadata"].get(member):
            document["metadata"][member] = scale["metadata"][member]


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
