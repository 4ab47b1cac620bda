"""OpenAPI v2: one document with the paths and definitions of all kinds, from those of version 3.

Version 2 knows no alternatives and no null, so those parts are left out, as kube-apiserver does: a
nullable field has no type, and a field that preserves unknown fields has no fields of its own. A
reference with a description is a plain one with the description beside it; defaults are left out.

Sources: k8s.io/apiserver/pkg/endpoints/openapi, k8s.io/kube-openapi/pkg/builder,
k8s.io/apiextensions-apiserver/pkg/apiserver/schema/kubeopenapi.go and
pkg/controller/openapi/v2/conversion.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakeapi.apiserver.kinds.schemas import SCHEMA_REF_PREFIX

Json = dict[str, Any]

_REF_PREFIX: Final = "#/definitions/"
_UNTYPED: Final = ("x-kubernetes-preserve-unknown-fields", "nullable")
_KINDS: Final = "x-kubernetes-group-version-kind"
_DROPPED: Final = ("allOf", "anyOf", "default", "not", "nullable", "oneOf")
_SCALARS: Final[Mapping[str, Json]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "type": "string",
        "format": "int-or-string",
    },
}
_SECURITY: Final = {
    "BearerToken": {
        "type": "apiKey",
        "name": "authorization",
        "in": "header",
        "description": "Bearer Token authentication",
    }
}


def swagger(version: str, paths: Mapping[str, Json], schemas: Mapping[str, Json]) -> Json:
    """Return the document of path items and schemas of version 3."""
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": {path: _path_item(item) for path, item in paths.items()},
        "definitions": {
            name: {**_definition(schema), **_SCALARS.get(name, {})}
            for name, schema in schemas.items()
        },
        "securityDefinitions": _SECURITY,
        "security": [{"BearerToken": []}],
    }


def _definition(schema: Mapping[str, Any]) -> Json:
    """Convert a schema that has a name; a kind that preserves unknown fields has no fields."""
    if _KINDS in schema and schema.get("x-kubernetes-preserve-unknown-fields"):
        return {"type": "object", _KINDS: schema[_KINDS]}
    return _schema(schema)


def _schema(schema: Mapping[str, Any]) -> Json:
    match schema.get("allOf"):
        case [{"$ref": str(reference)}]:
            return {**_described(schema), "$ref": _reference(reference)}
    converted = {name: value for name, value in schema.items() if name not in _DROPPED}
    if "$ref" in converted:
        return {**_described(schema), "$ref": _reference(converted["$ref"])}
    if schema.get("nullable") or schema.get("x-kubernetes-int-or-string"):
        converted.pop("type", None)
    if any(schema.get(name) for name in _UNTYPED):
        converted.pop("items", None)
        converted.pop("properties", None)
    for name in ("items", "additionalProperties"):
        if isinstance(converted.get(name), dict):
            converted[name] = _schema(converted[name])
    if converted.get("properties"):
        _convert_properties(converted)
    return converted


def _convert_properties(schema: Json) -> None:
    """Convert the fields of an object; fields that may be null are not required."""
    fields: Mapping[str, Json] = schema["properties"]
    schema["properties"] = {name: _schema(field) for name, field in fields.items()}
    nullable = {name for name, field in fields.items() if field.get("nullable")}
    required = [name for name in schema.pop("required", ()) if name not in nullable]
    if required:
        schema["required"] = required


def _described(schema: Mapping[str, Any]) -> Json:
    return {"description": schema["description"]} if schema.get("description") else {}


def _reference(reference: str) -> str:
    return _REF_PREFIX + reference.removeprefix(SCHEMA_REF_PREFIX)


def _path_item(item: Mapping[str, Any]) -> Json:
    return {
        name: _parameters(value) if name == "parameters" else _operation(value)
        for name, value in item.items()
    }


def _operation(operation: Mapping[str, Any]) -> Json:
    parameters = _parameters(operation["parameters"])
    converted = {
        **operation,
        "consumes": ["*/*"],
        "produces": _media_types(operation["responses"]),
        "schemes": ["https"],
        "responses": {
            code: _response(response) for code, response in operation["responses"].items()
        },
    }
    if body := converted.pop("requestBody", None):
        converted["consumes"] = list(body["content"])
        [schema, *_] = body["content"].values()
        sent = {"name": "body", "in": "body", "schema": _schema(schema["schema"])}
        parameters.insert(0, {**sent, "required": True} if body["required"] else sent)
    return {**converted, "parameters": parameters}


def _parameters(parameters: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Return parameters with the keys of their schemas beside their own."""
    return [
        {**{name: value for name, value in each.items() if name != "schema"}, **each["schema"]}
        for each in parameters
    ]


def _media_types(responses: Mapping[str, Any]) -> list[str]:
    return list(next((r["content"] for r in responses.values() if "content" in r), {}))


def _response(response: Mapping[str, Any]) -> Json:
    described: Json = {"description": response["description"]}
    for media in response.get("content", {}).values():
        described["schema"] = _schema(media["schema"])
    return described
