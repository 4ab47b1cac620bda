"""The outcome of a scenario: all objects of its namespace, without what differs between two runs.

Times, UIDs, addresses and the random parts of names are masked. Hashes are replaced by the revision
of their ReplicaSet or ControllerRevision. Of pods, the status is that of a kubelet, and so is left
out but for the phase. EndpointSlices are compared without their annotation, the time of the last
change, and in any order of their endpoints and ports.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from tests.builders import Document
from tests.conformance.clusters.watched_cluster import WatchedCluster

KINDS: Final = (
    *("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ControllerRevision", "Job", "Pod"),
    *("PersistentVolumeClaim", "EndpointSlice"),
)

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_ADDRESS: Final = re.compile(r'"10(\.\d+){3}"')
_PROGRESSED: Final = re.compile(r"[a-z]+-[A-Za-z0-9]+(?=..? has successfully progressed)")
"""Upstream loses a rollout's first write if it conflicts, and names an earlier ReplicaSet then."""

_REVISION: Final = "deployment.kubernetes.io/revision"
_UNCOMPARED: Final = ("uid", "resourceVersion", "managedFields", "creationTimestamp", "generation")


def outcome(world: WatchedCluster) -> list[str]:
    """Return the fields of the objects in the scenarios' namespace, one a line."""
    things = [_compared(kind, thing) for kind in KINDS for thing in world.all(kind)]
    texts = [json.dumps(thing, sort_keys=True) for thing in things]
    for found, shown in _replaced(world):
        texts = [text.replace(found, shown) for text in texts]
    texts = [_PROGRESSED.sub("SET", _TIME.sub("TIME", text)) for text in texts]
    masked = sorted(_ADDRESS.sub('"ADDRESS"', text) for text in texts)
    return [line for text in masked for line in _lines(json.loads(text))]


def _lines(thing: Document) -> list[str]:
    name = f"{thing['kind']} {thing['metadata']['name']}"
    return [f"{name} {path}: {leaf}" for path, leaf in _leaves(thing, "")]


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _leaves(each, f"{path}.{key}")
    elif isinstance(value, list) and value:
        for number, each in enumerate(value):
            yield from _leaves(each, f"{path}[{number}]")
    else:
        yield path, value


def _compared(kind: str, thing: Document) -> Document:
    metadata = {key: it for key, it in thing["metadata"].items() if key not in _UNCOMPARED}
    shown = {**thing, "kind": kind, "metadata": metadata}
    if kind == "Pod":
        shown["status"] = {"phase": thing.get("status", {}).get("phase")}
        if thing["metadata"]["ownerReferences"][0]["kind"] != "DaemonSet":
            shown["spec"] = {**thing["spec"], "nodeName": "NODE"}
    if kind == "ReplicaSet":
        shown["status"] = {**thing.get("status", {}), "observedGeneration": 0}
    if conditions := shown.get("status", {}).get("conditions"):
        ordered = sorted(conditions, key=lambda condition: str(condition["type"]))
        shown["status"] = {**shown["status"], "conditions": ordered}
    if kind == "EndpointSlice":
        metadata.pop("annotations", None)
        shown["endpoints"] = sorted(map(_endpoint, thing.get("endpoints") or ()), key=str)
        shown["ports"] = sorted(thing.get("ports") or (), key=str)
    return shown


def _endpoint(endpoint: Document) -> Document:
    """Return an endpoint; its pod, address and node are masked."""
    target = {**endpoint.get("targetRef", {}), "name": "POD", "uid": "UID"}
    return {**endpoint, "targetRef": target, "addresses": ["ADDRESS"], "nodeName": "NODE"}


def _replaced(world: WatchedCluster) -> Iterator[tuple[str, str]]:
    """Return what is replaced: generated names, the hashes in them, and UIDs."""
    for name, prefix in world.generated.items():
        if not name.removeprefix(prefix).isdecimal():  # the name of a StatefulSet's pod
            yield name, f"{prefix}*"
    for each in world.all("ReplicaSet"):
        labels = each["metadata"].get("labels", {})
        if "pod-template-hash" in labels:
            revision = each["metadata"]["annotations"][_REVISION]
            yield labels["pod-template-hash"], f"HASH{revision}"
    for each in world.all("ControllerRevision"):
        yield each["metadata"]["name"].rpartition("-")[2], f"HASH{each['revision']}"
    for uid in world.owners:
        yield uid, "UID"
