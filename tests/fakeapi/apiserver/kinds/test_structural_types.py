"""Structural types, and the schemas they are built from."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest

from fakeapi.apiserver.kinds import BUILTIN, ResourceInfo
from fakeapi.apiserver.kinds.builtin import NODES, PODS, REPLICA_SETS
from fakeapi.apiserver.kinds.schemas import read_description, read_schema
from fakeapi.apiserver.kinds.structural_types import (
    UNTYPED,
    ListType,
    MapType,
    Scalar,
    Struct,
    Type,
    Untyped,
    child,
    schema_of,
)

_RECORDED = Path(__file__).parents[2] / "recorded"
_DIGESTS: dict[str, str] = orjson.loads((_RECORDED / "schemas.json").read_bytes())
_LEFT_OUT = ("description", "default", "x-kubernetes-group-version-kind", "oneOf")


def at(kind: ResourceInfo, path: str) -> Type:
    found: Type = schema_of(kind)
    for step in path.split("."):
        while isinstance(found, ListType):
            found = found.element
        found = child(found, step)
    return found


@pytest.mark.parametrize(
    ("kind", "path", "how", "keys", "merge"),
    [
        (PODS, "spec.containers", "map", ("name",), "name"),
        (PODS, "spec.initContainers.ports", "map", ("containerPort", "protocol"), "containerPort"),
        (PODS, "spec.tolerations", "atomic", (), None),
        (PODS, "spec.volumes", "map", ("name",), "name"),
        (PODS, "status.conditions", "map", ("type",), "type"),
        (PODS, "metadata.finalizers", "set", (), ""),
        (PODS, "metadata.ownerReferences", "map", ("uid",), "uid"),
        (NODES, "spec.podCIDRs", "set", (), ""),
        (NODES, "spec.taints", "atomic", (), None),
        (REPLICA_SETS, "spec.template.spec.containers.env", "map", ("name",), "name"),
    ],
)
def test_list_types_and_map_keys(
    kind: ResourceInfo, path: str, how: str, keys: tuple[str, ...], merge: str | None
) -> None:
    found = at(kind, path)
    assert isinstance(found, ListType)
    key = None if found.merge is None else found.merge.key
    assert (found.kind, found.keys, key) == (how, keys, merge)


def test_keys_that_may_be_left_out_have_defaults() -> None:
    ports = at(PODS, "spec.containers.ports")
    assert isinstance(ports, ListType)
    assert dict(ports.defaults) == {"containerPort": 0, "protocol": "TCP"}


@pytest.mark.parametrize(
    ("path", "name", "form"),
    [
        ("spec.nodeName", "string", ""),
        ("spec.priority", "integer", "int32"),
        ("spec.hostNetwork", "boolean", ""),
        ("spec.containers.resources.limits.cpu", "quantity", ""),
        ("spec.containers.livenessProbe.httpGet.port", "int-or-string", ""),
        ("metadata.creationTimestamp", "string", "date-time"),
    ],
)
def test_scalars_have_a_type_and_a_format(path: str, name: str, form: str) -> None:
    found = at(PODS, path)
    assert isinstance(found, Scalar)
    assert (found.type, found.format) == (name, form)


def test_maps_and_structs_may_be_atomic() -> None:
    selector, labels = at(PODS, "spec.nodeSelector"), at(PODS, "metadata.labels")
    assert isinstance(selector, MapType)
    assert isinstance(labels, MapType)
    assert (selector.atomic, labels.atomic) == (True, False)
    owner = at(REPLICA_SETS, "spec.selector")
    assert isinstance(owner, Struct)
    assert owner.atomic


def test_free_content_is_untyped() -> None:
    revisions = BUILTIN.at("apps", "v1", "controllerrevisions")
    assert revisions is not None
    assert at(revisions, "data") is UNTYPED
    assert isinstance(at(PODS, "spec.no.such.field"), Untyped)


def test_a_schema_may_contain_itself() -> None:
    definitions = BUILTIN.at("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    assert definitions is not None
    path = "spec.versions.schema.openAPIV3Schema.properties.a.properties.b.type"
    found = at(definitions, path)
    assert isinstance(found, Scalar)


@pytest.mark.parametrize("definition", _DIGESTS)
def test_a_schema_is_structured_as_a_real_server_publishes_it(definition: str) -> None:
    normal = orjson.dumps(_normal(read_schema(definition)), option=orjson.OPT_SORT_KEYS)
    assert sha256(normal).hexdigest()[:12] == _DIGESTS[definition]


def test_every_definition_is_described() -> None:
    text, fields = read_description("io.k8s.api.core.v1.Pod")
    assert text.startswith("Pod is a collection of containers")
    assert fields["spec"].startswith("Specification of the desired behavior of the pod.")
    _, fields = read_description("io.k8s.api.core.v1.ContainerPort")
    assert ' - `"SCTP"` is the SCTP protocol.' in fields["protocol"]


def _normal(schema: Any) -> Any:
    """Leave out fields that other tests compare."""
    if isinstance(schema, list):
        return [_normal(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    left_out = (*_LEFT_OUT, "format") if "oneOf" in schema else _LEFT_OUT
    kept = {name: each for name, each in schema.items() if name not in left_out}
    properties = kept.pop("properties", None)
    normal = {name: _normal(each) for name, each in kept.items()}
    if set(normal) == {"allOf"}:
        normal = normal["allOf"][0]
    if properties is not None:
        normal["properties"] = {name: _normal(each) for name, each in properties.items()}
    return normal
