"""OpenAPI v3: an index of documents, and one document for each group and version.

``kubectl`` reads these before it creates or applies an object: the parameters of the PATCH
operation of a kind show whether the server validates fields, the schemas define how patches merge
and what ``explain`` prints. The index has the address of each document with a hash; a client may
cache a document at that address for ever.

Documents are built from the archive and from CustomResourceDefinitions on first use, and kept as
bytes. Kinds without a schema are described as objects with any fields.

Version 2 (:mod:`fakeapi.apiserver.discovery.openapi_v2`) is one document of all kinds. ``kubectl``
before 1.27 reads it, and later releases do where version 3 has no answer (a ``List``, a kind that
is not served).

Sources: k8s.io/kube-openapi/pkg/handler3, k8s.io/apiserver/pkg/endpoints/installer.go,
k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder/builder.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha512
from typing import Any, Final

import orjson

from fakeapi.apiserver.discovery.openapi_paths import describe_paths
from fakeapi.apiserver.kinds import ResourceInfo, ResourceRegistry
from fakeapi.apiserver.kinds.resource_info import CustomResourceInfo
from fakeapi.apiserver.kinds.schemas import (
    SCHEMA_REF_PREFIX,
    fingerprint,
    read_description,
    read_schema,
    referenced_definition,
)
from fakeapi.apiserver.wire.http_messages import JSON, TEXT, Request, Response, conditional_response

Json = dict[str, Any]

META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_POD: Final = "io.k8s.api.core.v1.Pod"
_CONVENTIONS: Final = (
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
)
_EITHER: Final = [{"type": "integer"}, {"type": "string"}]
_EMBEDDED: Final = "x-kubernetes-embedded-resource"


def custom_resource_schemas(kind: ResourceInfo, custom: CustomResourceInfo) -> dict[str, Json]:
    """Return the schemas of a custom resource and of its list, by name."""
    schema: Json = {"type": "object"}
    if custom.schema:
        schema = _published_schema(dict(custom.schema))
        schema["properties"] = {**(schema.get("properties") or {}), **_type_meta(), **_metadata()}
    fields = [field.label for field in kind.selectable]
    extra = {"x-kubernetes-selectable-fields": [{"fieldPath": f} for f in fields]} if fields else {}
    return {
        kind.definition: {**schema, **extra, **_named(kind, kind.kind)},
        f"{kind.definition}List": {**_list(kind), **extra},
    }


def _list(kind: ResourceInfo) -> Json:
    description = f"List of {kind.plural}. More info: {_CONVENTIONS}"
    reference = {"$ref": f"{SCHEMA_REF_PREFIX}{kind.definition}"}
    metadata = {"allOf": [{"$ref": f"{SCHEMA_REF_PREFIX}{META}ListMeta"}]}
    return {
        "description": f"{kind.list_kind} is a list of {kind.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            **_type_meta(),
            "items": {"description": description, "type": "array", "items": reference},
            "metadata": {**metadata, "description": _field_description("metadata", "PodList")},
        },
        **_named(kind, kind.list_kind),
    }


def _named(kind: ResourceInfo, name: str) -> Json:
    own = {"group": kind.group, "version": kind.version, "kind": name}
    return {"x-kubernetes-group-version-kind": [own]}


def _published_schema(schema: Json) -> Json:
    """Return a schema with the type and metadata of embedded objects, and int-or-string types."""
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            schema[name] = _published_schema(dict(schema[name]))
    if schema.get("properties"):
        below = schema["properties"].items()
        schema["properties"] = {name: _published_schema(dict(each)) for name, each in below}
    if schema.get("x-kubernetes-int-or-string"):
        _expand_int_or_string(schema)
    if schema.get(_EMBEDDED):
        schema["properties"] = {**(schema.get("properties") or {}), **_type_meta(), **_metadata()}
        schema["required"] = list(
            dict.fromkeys((*schema.get("required", ()), "kind", "apiVersion"))
        )
    return schema


def _expand_int_or_string(schema: Json) -> None:
    first = (schema.get("allOf") or [{}])[0]
    if schema.get("anyOf") == _EITHER or first.get("anyOf") == _EITHER:
        return
    if schema.get("anyOf"):
        schema["allOf"] = [{"anyOf": _EITHER}, *(schema.get("allOf") or ())]
    else:
        schema["anyOf"] = _EITHER


def _type_meta() -> Json:
    return {
        name: {"type": "string", "description": _field_description(name)}
        for name in ("apiVersion", "kind")
    }


def _metadata() -> Json:
    reference = {"allOf": [{"$ref": f"{SCHEMA_REF_PREFIX}{META}ObjectMeta"}]}
    return {"metadata": {**reference, "description": _field_description("metadata")}}


def _field_description(name: str, of: str = "Pod") -> str:
    """Return the description of a field that all objects have."""
    return read_description(_POD.replace("Pod", of))[1].get(name, "")


_ROOT: Final = "/openapi/v3"
_V2_PATH: Final = "/openapi/v2"
_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_SCALE: Final = "io.k8s.api.autoscaling.v1.Scale"
_MOST_DOCUMENTS: Final = 256


def serve_openapi(kinds: ResourceRegistry, request: Request) -> Response | None:
    """Serve a GET below ``/openapi``; return None for other paths."""
    path = request.path.rstrip("/")
    if path == _ROOT:
        return Response(200, _index(kinds), TEXT)
    if path == _V2_PATH:
        return _serve_v2(kinds, request)
    if not path.startswith("/openapi/"):
        return None
    served = kinds.in_group_version(*_group_version(path.removeprefix(f"{_ROOT}/")))
    if not served:
        return Response(404, b"", TEXT)
    requested_hash, current = request.query.get("hash", ""), _hash(served)
    if requested_hash not in ("", current):
        return Response(301, b"", JSON, {"Location": _address(served)})
    lasting = "public, immutable" if requested_hash else "no-cache, private"
    return conditional_response(
        request, _document(served), JSON, f'"{current}"', **{"Cache-Control": lasting}
    )


def _serve_v2(kinds: ResourceRegistry, request: Request) -> Response:
    etag = f'"{_hash(kinds.all)}"'
    if _PROTOBUF in request.accept:  # "@" is no part of a media type; answered without
        media_type = _PROTOBUF.replace("@", ".")
        return conditional_response(request, _v2_protobuf(kinds), media_type, etag)
    return conditional_response(request, _v2_json(kinds), JSON, etag)


def _group_version(path: str) -> tuple[str, str]:
    match path.split("/"):
        case ["api", version]:
            return "", version
        case ["apis", group, version]:
            return group, version
    return "", ""


def _address(served: tuple[ResourceInfo, ...]) -> str:
    return f"{_ROOT}{served[0].root}?hash={_hash(served)}"


@lru_cache(maxsize=16)
def _index(kinds: ResourceRegistry) -> bytes:
    found = (kinds.in_group_version(*position) for position in kinds.group_versions)
    paths = {k[0].root.removeprefix("/"): {"serverRelativeURL": _address(k)} for k in found}
    return orjson.dumps({"paths": dict(sorted(paths.items()))})


@lru_cache(maxsize=_MOST_DOCUMENTS)
def _hash(served: tuple[ResourceInfo, ...]) -> str:
    """Return a hash that changes with the document; cheaper than building the document."""
    resources = [[k.plural, k.definition, *k.verbs, *k.subresources] for k in served]
    schemas = [dict(k.custom.schema) for k in served if k.custom is not None]
    return sha512(orjson.dumps([fingerprint(), resources, schemas])).hexdigest().upper()


@lru_cache(maxsize=_MOST_DOCUMENTS)
def _document(served: tuple[ResourceInfo, ...]) -> bytes:
    return orjson.dumps(
        {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": "1.37"},
            "paths": _paths(served),
            "components": {"schemas": _schemas(served)},
        }
    )


@lru_cache(maxsize=2)
def _v2_json(kinds: ResourceRegistry) -> bytes:
    return orjson.dumps(_v2_document(kinds))


@lru_cache(maxsize=2)
def _v2_protobuf(kinds: ResourceRegistry) -> bytes:
    from fakeapi.apiserver.discovery.openapi_v2_protobuf import encode_swagger  # on use: start-up

    return encode_swagger(_v2_document(kinds))


def _v2_document(kinds: ResourceRegistry) -> Json:
    from fakeapi.apiserver.discovery.openapi_v2 import swagger  # imported on use: start-up time

    return swagger("v1.37.0", _paths(kinds.all), _schemas(kinds.all))


def _paths(served: Iterable[ResourceInfo]) -> Json:
    paths: Json = {}
    for kind in served:
        paths |= describe_paths(kind)
    return paths


def _schemas(served: Iterable[ResourceInfo]) -> Json:
    """Return all definitions that the kinds refer to, by name."""
    pending = [f"{_META}{name}" for name in ("Status", "DeleteOptions", "Patch", "WatchEvent")]
    found: Json = {}
    for kind in served:
        if kind.custom is not None:
            found |= custom_resource_schemas(kind, kind.custom)
            pending += [_SCALE] if "scale" in kind.subresources else []
        elif kind.definition:
            pending += [kind.definition, *_list_definition(kind)]
    pending += [name for schema in found.values() for name in _references(schema)]
    while pending:
        name = pending.pop()
        if name and name not in found:
            found[name] = described_definition(name)
            pending += _references(found[name])
    return dict(sorted(found.items()))


def _list_definition(kind: ResourceInfo) -> list[str]:
    return [f"{kind.definition}List"] if "list" in kind.verbs else []


def described_definition(definition: str) -> Json:
    """Return a definition's schema with its descriptions; raise KeyError."""
    schema = dict(read_schema(definition))
    own, fields = read_description(definition)
    properties = {
        name: {**_with_default(field), "description": fields.get(name, "")}
        for name, field in schema.get("properties", {}).items()
    }
    schema |= {"properties": properties} if properties else {}
    return {"description": own, **schema} if own else schema


def _with_default(field: Mapping[str, Any]) -> Json:
    """Return a field whose bare reference is wrapped so that it can have a description."""
    return {"allOf": [dict(field)]} if "$ref" in field else dict(field)


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield referenced_definition(schema)
        for value in schema.values():
            yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)
