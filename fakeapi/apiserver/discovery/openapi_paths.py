"""The paths of a kind and their operations, as OpenAPI v3 describes them.

Clients use little of this: the PATCH operation of a kind and its ``fieldValidation`` parameter, the
GET of the collection, and ``x-kubernetes-group-version-kind``. The rest is for tools that generate
requests from such a document.

Source: k8s.io/apiserver/pkg/endpoints/installer.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.resource_info import Subresource
from fakeapi.apiserver.kinds.schemas import SCHEMA_REF_PREFIX

Json = dict[str, Any]

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_ANY: Final = "*/*"
_MEDIA_TYPES: Final = ("application/json", "application/yaml")
_PATCH_TYPES: Final = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_METHODS: Final = {"create": "post", "update": "put", "patch": "patch", "get": "get"}
_CREATED: Final = frozenset(("create", "update", "patch"))
_PATH_TEXT: Final = "object name and auth scope, such as for teams and projects"

_WRITING: Final = ("dryRun", "fieldManager", "fieldValidation")
_DELETING: Final = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_LISTING: Final = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
_PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {
    "create": _WRITING,
    "update": _WRITING,
    "patch": (*_WRITING, "force"),
    "delete": _DELETING,
    "deletecollection": (*_DELETING, *_LISTING),
    "list": _LISTING,
    "get": (),
}
_TYPES: Final[Mapping[str, str]] = {
    "allowWatchBookmarks": "boolean",
    "force": "boolean",
    "gracePeriodSeconds": "integer",
    "limit": "integer",
    "orphanDependents": "boolean",
    "sendInitialEvents": "boolean",
    "timeoutSeconds": "integer",
    "watch": "boolean",
}


def describe_paths(kind: ResourceInfo) -> Json:
    """Return the path items of a kind: its collections, its objects, their subresources."""
    scope = f"{kind.root}/namespaces/{{namespace}}" if kind.namespaced else kind.root
    collection, single = f"{scope}/{kind.plural}", f"{scope}/{kind.plural}/{{name}}"
    paths = {
        collection: _operations(
            kind, {"get": "list", "post": "create", "delete": "deletecollection"}
        ),
        single: _operations(
            kind, {"get": "get", "put": "update", "delete": "delete", "patch": "patch"}
        ),
    }
    if kind.namespaced:
        paths[f"{kind.root}/{kind.plural}"] = _operations(kind, {"get": "list"})
    for subresource in kind.subresources.values():
        paths[f"{single}/{subresource.name}"] = _subresource_operations(kind, subresource)
    return {
        path: {**operations, "parameters": _path_parameters(path, kind)}
        for path, operations in paths.items()
        if operations
    }


def _operations(kind: ResourceInfo, methods: Mapping[str, str]) -> Json:
    return {
        method: _operation(kind, verb, _content_of(kind, verb), kind.definition)
        for method, verb in methods.items()
        if verb in kind.verbs
    }


def _content_of(kind: ResourceInfo, verb: str) -> str:
    if verb == "deletecollection" or (verb == "delete" and not kind.returns_deleted):
        return f"{_META}Status"
    return f"{kind.definition}List" if verb == "list" else kind.definition


def _subresource_operations(kind: ResourceInfo, subresource: Subresource) -> Json:
    """Return the operations on a subresource; those of connections have no content type."""
    own = (subresource.group, subresource.version, subresource.kind)
    same = own == (kind.group, kind.version, kind.kind)
    definition = kind.definition if same else ""
    named = {"group": own[0], "version": own[1], "kind": own[2]}
    return {
        _METHODS[verb]: {
            **_operation(kind, verb, definition, definition, f" {subresource.name} of"),
            "x-kubernetes-group-version-kind": named,
        }
        for verb in subresource.verbs
        if verb in _METHODS
    }


def _operation(kind: ResourceInfo, verb: str, answer: str, body: str, part: str = "") -> Json:
    operation: Json = {
        "tags": [f"{(kind.group or 'core').partition('.')[0]}_{kind.version}"],
        "description": f"{verb}{part} objects of kind {kind.kind}",
        "parameters": [_query(name) for name in _PARAMETERS[verb]],
        "responses": _responses(verb, answer),
        "x-kubernetes-action": verb,
        "x-kubernetes-group-version-kind": {
            "group": kind.group,
            "version": kind.version,
            "kind": kind.kind,
        },
    }
    content = _body(kind, verb, body)
    if content:
        operation["requestBody"] = {"content": content, "required": verb in _CREATED}
    return operation


def _body(kind: ResourceInfo, verb: str, definition: str) -> Json:
    if verb == "patch":
        taken = [t for t in _PATCH_TYPES if kind.custom is None or "strategic" not in t]
        return _media(taken, f"{_META}Patch")
    if verb in ("create", "update"):
        return _media((_ANY,), definition)
    if verb in ("delete", "deletecollection"):
        return _media((_ANY,), f"{_META}DeleteOptions")
    return {}


def _responses(verb: str, definition: str) -> Json:
    codes = {"200": "OK", "201": "Created"} if verb in _CREATED else {"200": "OK"}
    content = _media(_MEDIA_TYPES, definition)
    described: Json = {code: {"description": t, "content": content} for code, t in codes.items()}
    return described | {"401": {"description": "Unauthorized"}}


def _media(types: Iterable[str], definition: str) -> Json:
    schema = {"$ref": f"{SCHEMA_REF_PREFIX}{definition}"} if definition else {"type": "object"}
    return {media_type: {"schema": schema} for media_type in types}


def _path_parameters(path: str, kind: ResourceInfo) -> list[Json]:
    names = [step[1:-1] for step in path.split("/") if step.startswith("{")]
    texts = {"name": f"name of the {kind.kind}", "namespace": _PATH_TEXT}
    return [
        {
            "name": name,
            "in": "path",
            "description": texts[name],
            "required": True,
            "schema": {"type": "string", "uniqueItems": True},
        }
        for name in names
    ] + [_query("pretty")]


def _query(name: str) -> Json:
    schema = {"type": _TYPES.get(name, "string"), "uniqueItems": True}
    return {"name": name, "in": "query", "schema": schema}
