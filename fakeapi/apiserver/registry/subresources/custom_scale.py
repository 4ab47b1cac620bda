"""The scale subresource of custom resources, with the paths of their definitions.

Source: ScaleREST in pkg/registry/customresource/etcd.go of k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fakeapi.apiserver.kinds.builtin import SCALE
from fakeapi.apiserver.kinds.resource_info import ScalePaths
from fakeapi.apiserver.managedfields import ReplicasOwners
from fakeapi.apiserver.registry.request_scope import RequestScope, json_response
from fakeapi.apiserver.registry.subresources.scale import (
    checked_replicas,
    copy_metadata,
    new_scale,
    scale_change,
    with_owners,
)
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


def _paths(call: RequestScope) -> ScalePaths:
    custom = call.target.kind.custom
    assert custom is not None
    assert custom.scale is not None
    return custom.scale


def _scale_of(document: Mapping[str, Any], paths: ScalePaths) -> Document:
    replicas, current = value_at(document, paths.spec), value_at(document, paths.status) or 0
    selector = value_at(document, paths.selector) if paths.selector else None
    return new_scale(document, replicas, current, selector)


def write_custom_scale(call: RequestScope) -> Response:
    """Set the replicas from a whole or a patched Scale."""
    name, paths, change = call.target.name, _paths(call), scale_change(call, call.target.kind)

    path = tuple(f"f:{step}" for step in paths.spec.removeprefix(".").split("."))

    def scaled(document: Document) -> Document:
        owners = ReplicasOwners.of(document, call.target.kind.api_version, path)
        scale = with_owners(_scale_of(document, paths), owners)
        if value_at(document, paths.spec) is None:
            scale["spec"] = {"replicas": _UNSET}
        scale = call.admit(SCALE, change(scale), _scale_of(document, paths))
        if (scale.get("spec") or {}).get("replicas") == _UNSET:
            raise bad_request(f'the spec replicas field "{paths.spec}" cannot be empty')
        _set_at(document, paths.spec, checked_replicas(scale, name))
        copy_metadata(scale, document, owners)
        return document

    entry = call.registry.change(call.target, scaled)
    return json_response(200, _scale_of(entry.document(), paths))


def _set_at(document: Document, path: str, value: int) -> None:
    *above, last = path.removeprefix(".").split(".")
    for step in above:
        document = document.setdefault(step, {})
    document[last] = value
