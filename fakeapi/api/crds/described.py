"""OpenAPI schemas of custom resources.

Source: pkg/controller/openapi/builder/builder.go of k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from typing import Any, Final

from fakeapi.kinds import ResourceInfo
from fakeapi.kinds.archive import SCHEMA_REF_PREFIX, read_description
from fakeapi.kinds.custom import CustomResourceInfo

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
    shown: Json = {"type": "object"}
    if custom.schema:
        shown = _shown(dict(custom.schema))
        shown["properties"] = {**(shown.get("properties") or {}), **_type_meta(), **_metadata()}
    fields = [field.label for field in kind.selectable]
    extra = {"x-kubernetes-selectable-fields": [{"fieldPath": f} for f in fields]} if fields else {}
    return {
        kind.definition: {**shown, **extra, **_named(kind, kind.kind)},
        f"{kind.definition}List": {**_list(kind), **extra},
    }


def _list(kind: ResourceInfo) -> Json:
    told = f"List of {kind.plural}. More info: {_CONVENTIONS}"
    reference = {"$ref": f"{SCHEMA_REF_PREFIX}{kind.definition}"}
    metadata = {"allOf": [{"$ref": f"{SCHEMA_REF_PREFIX}{META}ListMeta"}]}
    return {
        "description": f"{kind.list_kind} is a list of {kind.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            **_type_meta(),
            "items": {"description": told, "type": "array", "items": reference},
            "metadata": {**metadata, "description": _field_description("metadata", "PodList")},
        },
        **_named(kind, kind.list_kind),
    }


def _named(kind: ResourceInfo, name: str) -> Json:
    own = {"group": kind.group, "version": kind.version, "kind": name}
    return {"x-kubernetes-group-version-kind": [own]}


def _shown(schema: Json) -> Json:
    """Return a schema with the type and metadata of embedded objects, and int-or-string types."""
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            schema[name] = _shown(dict(schema[name]))
    if schema.get("properties"):
        below = schema["properties"].items()
        schema["properties"] = {name: _shown(dict(each)) for name, each in below}
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
