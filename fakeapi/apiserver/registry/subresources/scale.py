"""The scale subresource: the number of replicas, in one form for every kind that has them.

A Scale is read from the object, changed by the request, and written back to the object; only
``spec.replicas``, the uid and the resourceVersion of the request are used.

Source: pkg/registry/apps/deployment/storage/storage.go, and those of the other workloads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fakeapi.apiserver.kinds.builtin import SCALE
from fakeapi.apiserver.objects.metadata import check_document, check_url_name
from fakeapi.apiserver.objects.patch import apply_patch
from fakeapi.apiserver.registry.request_scope import RequestScope, json_response, read_typed
from fakeapi.apiserver.store.object_store import Document, Entry
from fakeapi.apiserver.wire.errors import Cause, bad_request, invalid
from fakeapi.apiserver.wire.http_messages import Response

METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_OPERATORS: Final = {"In": "{key} in ({values})", "NotIn": "{key} notin ({values})"}
_UNARY: Final = {"Exists": "{key}", "DoesNotExist": "!{key}"}


def get_scale(call: RequestScope) -> Response:
    """Return the object's Scale."""
    return _scaled(call.registry.get(call.target))


def put_scale(call: RequestScope) -> Response:
    """Set the replicas from a whole Scale."""
    call.registry.get(call.target)
    requested = read_typed(call, SCALE)
    return _change(call, lambda _scale: requested)


def patch_scale(call: RequestScope) -> Response:
    """Set the replicas from the patched Scale."""
    request = call.request

    def patched(scale: Document) -> Document:
        return apply_patch(SCALE, scale, request.content_type, request.body)

    return _change(call, patched)


def scale_of(document: Mapping[str, Any]) -> Document:
    """Return the Scale of an object's document."""
    metadata, spec, status = document["metadata"], document.get("spec"), document.get("status")
    replicas = (spec or {}).get("replicas", 1)
    selector = (spec or {}).get("selector") or {}
    return {
        "kind": SCALE.kind,
        "apiVersion": SCALE.api_version,
        "metadata": {name: metadata[name] for name in METADATA if name in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": {
            "replicas": (status or {}).get("replicas", 0),
            **({"selector": text} if (text := selector_text(selector)) else {}),
        },
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


def _change(call: RequestScope, change: Callable[[Document], Document]) -> Response:
    name = call.target.name

    def scaled(document: Document) -> Document:
        scale = change(scale_of(document))
        check_url_name(name, check_document(SCALE, scale))
        scale = call.admit(SCALE, scale, scale_of(document))
        metadata = scale["metadata"]
        document.setdefault("spec", {})["replicas"] = checked_replicas(scale, name)
        for member in ("uid", "resourceVersion"):
            if metadata.get(member):
                document["metadata"][member] = metadata[member]
        return document

    return _scaled(call.registry_with_manager.change(call.target, scaled))


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
        raise invalid("Scale.autoscaling", name, [Cause("FieldValueInvalid", message, _REPLICAS)])
    return replicas


_REPLICAS: Final = "spec.replicas"


def _scaled(entry: Entry) -> Response:
    return json_response(200, scale_of(entry.document()))
