"""Recordings in one line each."""

from __future__ import annotations

from typing import Any

from extender.recording.files import Recording, parse_recording
from extender.recording.format import (
    EventType,
    Header,
    RecordedResource,
    encode_event,
    encode_header,
)

Document = dict[str, Any]

CREATED = "2025-12-31T00:00:00Z"

RESOURCES = {
    "Namespace": RecordedResource("namespaces", "v1", "Namespace"),
    "Node": RecordedResource("nodes", "v1", "Node"),
    "Pod": RecordedResource("pods", "v1", "Pod", namespaced=True),
    "ReplicaSet": RecordedResource("replicasets.apps", "apps/v1", "ReplicaSet", namespaced=True),
    "CustomResourceDefinition": RecordedResource(
        "customresourcedefinitions.apiextensions.k8s.io",
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
    ),
    "Gadget": RecordedResource("gadgets.example.com", "example.com/v1", "Gadget", namespaced=True),
    "Widget": RecordedResource("widgets.example.com", "example.com/v1", "Widget", namespaced=True),
}


def an_object(name: str, kind: str = "Pod", uid: str = "", **fields: Any) -> Document:
    """Write an object down; its UID is its name."""
    of = RESOURCES[kind]
    metadata: Document = {"name": name, "uid": uid or name, "creationTimestamp": CREATED}
    metadata.update(fields.pop("metadata", {}))
    if kind == "Namespace":
        fields = {"spec": {"finalizers": ["kubernetes"]}, **fields}
    if of.namespaced:
        metadata["namespace"] = "default"
    return {"apiVersion": of.api_version, "kind": kind, "metadata": metadata, **fields}


def header(*kinds: str, **fields: Any) -> bytes:
    resources = tuple(RESOURCES[kind] for kind in kinds or ("Namespace", "Pod", "ReplicaSet"))
    return encode_header(Header("2026-01-01T00:00:00.5Z", "v1.37.0", resources=resources, **fields))


def line(seconds: float, kind: EventType, document: Document) -> bytes:
    name = RESOURCES[document["kind"]].name
    return encode_event(round(seconds * 10**9), kind, name, document)


def a_recording(*lines: bytes, first: bytes = b"") -> Recording:
    return parse_recording((first or header()) + b"".join(lines), "events.jsonl")
