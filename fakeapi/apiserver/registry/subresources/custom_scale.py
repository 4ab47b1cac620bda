"""The scale subresource of custom resources, with the paths of their definitions.

Source: ScaleREST in pkg/registry/customresource/etcd.go of k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fakeapi.apiserver.kinds.builtin import SCALE
from fakeapi.apiserver.kinds.resource_info import ScalePaths
from fakeapi.apiserver.objects.metadata import check_document, check_url_name
from fakeapi.apiserver.objects.patch import apply_patch
from fakeapi.apiserver.registry.request_scope import RequestScope, json_response, read_typed
from fakeapi.apiserver.registry.subresources.scale import METADATA, checked_replicas
from fakeapi.apiserver.schema.crds.custom_resource_strategy import value_at
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import bad_request, internal_error
from fakeapi.apiserver.wire.http_messages import Response

_UNSET: Final = -(2**31)
"""The replicas in the Scale of an object without replicas, until a client sets them."""


def get_custom_scale(call: RequestScope) -> Response:
    """Return the object's Scale."""
    paths = _paths(call)
    document = call.registry.get(call.target).document()
    if value_at(document, paths.spec) is None:
        raise internal_error(f'the spec replicas field "{paths.spec}" does not exist')
    return json_response(200, _scale_of(document, paths))


def put_custom_scale(call: RequestScope) -> Response:
    """Set the replicas from a whole Scale."""
    call.registry.get(call.target)
    requested = read_typed(call, SCALE)
    return _change(call, lambda _scale: requested)


def patch_custom_scale(call: RequestScope) -> Response:
    """Set the replicas from the patched Scale."""
    request = call.request

    def patched(scale: Document) -> Document:
        kind = call.target.kind
        return apply_patch(kind, scale, request.content_type, request.body)

    return _change(call, patched)


def _paths(call: RequestScope) -> ScalePaths:
    custom = call.target.kind.custom
    assert custom is not None
    assert custom.scale is not None
    return custom.scale


def _scale_of(document: Mapping[str, Any], paths: ScalePaths) -> Document:
    metadata = document["metadata"]
    replicas = value_at(document, paths.spec)
    selector = value_at(document, paths.selector) if paths.selector else None
    return {
        "kind": SCALE.kind,
        "apiVersion": SCALE.api_version,
        "metadata": {name: metadata[name] for name in METADATA if name in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": {
            "replicas": value_at(document, paths.status) or 0,
            **({"selector": selector} if selector else {}),
        },
    }


def _change(call: RequestScope, change: Callable[[Document], Document]) -> Response:
    name, paths = call.target.name, _paths(call)

    def scaled(document: Document) -> Document:
        scale = _scale_of(document, paths)
        if value_at(document, paths.spec) is None:
            scale["spec"] = {"replicas": _UNSET}
        scale = change(scale)
        check_url_name(name, check_document(SCALE, scale))
        scale = call.admit(SCALE, scale, _scale_of(document, paths))
        metadata = scale["metadata"]
        if (scale.get("spec") or {}).get("replicas") == _UNSET:
            raise bad_request(f'the spec replicas field "{paths.spec}" cannot be empty')
        _set_at(document, paths.spec, checked_replicas(scale, name))
        for member in ("uid", "resourceVersion"):
            if metadata.get(member):
                document["metadata"][member] = metadata[member]
        return document

    entry = call.registry_with_manager.change(call.target, scaled)
    return json_response(200, _scale_of(entry.document(), paths))


def _set_at(document: Document, path: str, value: int) -> None:
    *above, last = path.removeprefix(".").split(".")
    for step in above:
        document = document.setdefault(step, {})
    document[last] = value
