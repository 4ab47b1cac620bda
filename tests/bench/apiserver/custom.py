"""The cost of a custom resource beyond that of any object: pruning, defaulting, validation."""

from __future__ import annotations

import statistics
import time
from copy import deepcopy
from types import MappingProxyType
from typing import Any

from fakeapi.apiserver.kinds.resource_info import CustomResourceInfo
from fakeapi.apiserver.schema.crds.custom_resource_strategy import CompiledSchema
from tests.bench.budgets import Figure

_TURNS = 2_000
_TEXT = {"type": "string"}
_NUMBER = {"type": "integer", "format": "int32", "minimum": 0}
_PORT = {
    "type": "object",
    "required": ["name", "port"],
    "properties": {
        "name": {**_TEXT, "pattern": "^[a-z0-9-]+$", "maxLength": 63},
        "port": {**_NUMBER, "maximum": 65535},
        "protocol": {**_TEXT, "enum": ["TCP", "UDP"], "default": "TCP"},
    },
}
_SPEC = {
    "type": "object",
    "required": ["image", "replicas"],
    "properties": {
        "image": {**_TEXT, "minLength": 1},
        "replicas": {**_NUMBER, "default": 1},
        "paused": {"type": "boolean", "default": False},
        "mode": {**_TEXT, "enum": ["Fast", "Safe"], "default": "Safe"},
        "schedule": _TEXT,
        "timeoutSeconds": {**_NUMBER, "default": 30},
        "threshold": {"x-kubernetes-int-or-string": True},
        "labels": {"type": "object", "additionalProperties": _TEXT},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": _PORT,
        },
        "resources": {
            "type": "object",
            "properties": {
                name: {
                    "type": "object",
                    "additionalProperties": {"x-kubernetes-int-or-string": True},
                }
                for name in ("limits", "requests")
            },
        },
        "storage": {
            "type": "object",
            "properties": {
                "className": _TEXT,
                "size": _TEXT,
                "accessModes": {"type": "array", "items": _TEXT},
                "reclaim": {**_TEXT, "enum": ["Retain", "Delete"], "default": "Retain"},
            },
        },
    },
}
_OBJECT = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "one", "namespace": "default", "labels": {"app": "one"}},
    "spec": {
        "image": "registry/one:1",
        "replicas": 3,
        "mode": "Fast",
        "schedule": "* * * * *",
        "threshold": "50%",
        "labels": {"app": "one", "tier": "web", "team": "a"},
        "ports": [
            {"name": "http", "port": 80},
            {"name": "https", "port": 443, "protocol": "TCP"},
            {"name": "dns", "port": 53, "protocol": "UDP"},
        ],
        "resources": {
            "limits": {"cpu": "1", "memory": "1Gi"},
            "requests": {"cpu": "500m", "memory": "512Mi"},
        },
        "storage": {"className": "fast", "size": "10Gi", "accessModes": ["ReadWriteOnce"]},
    },
    "status": {"ready": 3, "phase": "Ready"},
}
_STATUS = {"type": "object", "properties": {"ready": _NUMBER, "phase": _TEXT}}


def measure() -> dict[str, Figure]:
    """Read, fill and check an object of thirty fields."""
    schema: dict[str, Any] = {"type": "object", "properties": {"spec": _SPEC, "status": _STATUS}}
    none = MappingProxyType({"strategy": "None"})
    custom = CustomResourceInfo(
        "widgets", schema, ("v1",), "v1", "WidgetList", (), None, none, terminating=False
    )
    compiled = CompiledSchema(custom)
    seconds = statistics.median(_turn(compiled) for _ in range(7))
    what = "custom resource of 30 fields: pruned, defaulted, validated"
    return {"crd-object": Figure(what, f"{seconds * 1e6:.0f} µs", seconds)}


def _turn(compiled: CompiledSchema) -> float:
    """Return the seconds that one object takes."""
    documents = [deepcopy(_OBJECT) for _ in range(_TURNS)]
    begun = time.perf_counter()
    for document in documents:
        compiled.prune(document)
        compiled.apply_defaults(document)
        if compiled.causes(document):
            raise RuntimeError("the object of the benchmark is not in order")
    return (time.perf_counter() - begun) / _TURNS
