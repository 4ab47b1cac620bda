"""Devices of nodes, claims that have some of them, and claims and pods that need some."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

from tests.builders import Document, manifest

DRIVER: Final = "gpu.example.com"
RESOURCE: Final = "example.com/gpu"
"""The extended resource that the class of all devices backs."""
_CLASS: Final = "gpu"
_LARGE: Final = "large-gpu"
_WAITING: Final = ("devices-1", "devices-2")
_SHARE: Final = 0.12
_EXTENDED_SHARE: Final = 0.06
_PARTITIONS: Final = ("10Gi", "40Gi")
_TOLERATION: Final = {"key": "broken", "operator": "Exists"}


def devices(draw: Random, nodes: Sequence[str], namespaces: Sequence[str]) -> list[Document]:
    """Return classes, the slices of nodes, and claims: allocated ones, and new ones."""
    found = [
        _class(_CLASS, extendedResourceName=RESOURCE),
        _class(_LARGE, 'device.attributes["gpu.example.com"].model == "large"'),
    ]
    for node in nodes:
        if draw.random() < 0.6:
            names = [f"gpu-{n}" for n in range(draw.randint(1, 3))]
            found += _slices(draw, node, names)
            taken = draw.sample(names, draw.choice((0, 0, 1, 1, len(names))))
            found += [_held(node, each, draw.choice(namespaces)) for each in taken]
    found += [
        _claim(name, namespace, _requests(draw), _constraints(draw))
        for namespace in namespaces
        for name in _WAITING
    ]
    return found


def claiming(draw: Random, pod: Document) -> Document:
    """Return a pod that uses new claims or extended resources, or mostly the pod as it is."""
    if draw.random() < _EXTENDED_SHARE:
        [first, *others] = pod["spec"]["containers"]
        amounts = {**first["resources"]["requests"], RESOURCE: draw.choice("112")}
        resources = {"requests": amounts, "limits": {RESOURCE: amounts[RESOURCE]}}
        containers = [{**first, "resources": resources}, *others]
        return {**pod, "spec": {**pod["spec"], "containers": containers}}
    if draw.random() >= _SHARE:
        return pod
    names = draw.sample(_WAITING, draw.choice((1, 1, 1, 2)))
    claims = [{"name": name, "resourceClaimName": name} for name in names]
    return {**pod, "spec": {**pod["spec"], "resourceClaims": claims}}


def _class(name: str, *expressions: str, **fields: str) -> Document:
    selectors = [
        {"cel": {"expression": each}} for each in (f'device.driver == "{DRIVER}"', *expressions)
    ]
    return manifest(
        "DeviceClass",
        name,
        metadata={"uid": f"class-{name}"},
        spec={"selectors": selectors, **fields},
    )


def _slices(draw: Random, node: str, names: Sequence[str]) -> Iterator[Document]:
    """Yield the slices of a node's pool; some devices are partitions that share memory."""
    shared = draw.random() < 0.25
    sizes = _PARTITIONS if shared else ()
    parts: list[Document] = [{"devices": [_device(draw, name, sizes) for name in names]}]
    if shared:
        memory = {"memory": {"value": draw.choice(("40Gi", "80Gi"))}}
        parts.append({"sharedCounters": [{"name": "card", "counters": memory}]})
    pool = {"name": node, "generation": 1, "resourceSliceCount": len(parts)}
    for number, part in enumerate(parts):
        spec = {"driver": DRIVER, "nodeName": node, "pool": pool, **part}
        name = f"{node}-{number}"
        yield manifest("ResourceSlice", name, metadata={"uid": f"slice-{name}"}, spec=spec)


def _device(draw: Random, name: str, sizes: Sequence[str]) -> Document:
    """Return a device; with ``sizes`` it is a partition of one of them."""
    model, board = draw.choice(("small", "large")), draw.choice(("a", "b"))
    device: Document = {
        "name": name,
        "attributes": {"model": {"string": model}, "board": {"string": board}},
        "capacity": {"memory": {"value": draw.choice(("10Gi", "40Gi"))}},
    }
    if sizes:
        counters = {"memory": {"value": draw.choice(sizes)}}
        device["consumesCounters"] = [{"counterSet": "card", "counters": counters}]
    if draw.random() < 0.1:
        device["taints"] = [{"key": "broken", "effect": "NoSchedule"}]
    return device


def _requests(draw: Random) -> list[Document]:
    """Return one or two requests of a claim."""
    if draw.random() < 0.2:
        wishes = [_LARGE, _CLASS] if draw.random() < 0.5 else [_CLASS, _LARGE]
        alternatives = [
            {"name": f"wish-{n}", **_amount(draw.choice((1, 2))), **_exactly(draw, each)}
            for n, each in enumerate(wishes)
        ]
        return [{"name": "first", "firstAvailable": alternatives}]
    requests = [{"name": "first", "exactly": _counted(draw)}]
    if draw.random() < 0.3:
        requests.append({"name": "second", "exactly": _counted(draw)})
    return requests


def _counted(draw: Random) -> Document:
    exactly = _exactly(draw, draw.choice((_CLASS, _CLASS, _LARGE)))
    if draw.random() < 0.15:
        return {"allocationMode": "All", **exactly}
    return {**_amount(draw.choice((1, 1, 1, 2))), **exactly}


def _amount(count: int) -> Document:
    return {"allocationMode": "ExactCount", "count": count}


def _exactly(draw: Random, name: str) -> Document:
    exactly: Document = {"deviceClassName": name}
    if draw.random() < 0.3:
        memory = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("20Gi")) >= 0'
        board = 'device.attributes["gpu.example.com"].board == "a"'
        exactly["selectors"] = [{"cel": {"expression": draw.choice((memory, board))}}]
    if draw.random() < 0.2:
        exactly["tolerations"] = [_TOLERATION]
    return exactly


def _constraints(draw: Random) -> Document:
    if draw.random() >= 0.25:
        return {}
    return {"constraints": [{"matchAttribute": f"{DRIVER}/{draw.choice(('model', 'board'))}"}]}


def _claim(
    name: str, namespace: str, requests: Sequence[Document], constraints: Document
) -> Document:
    return manifest(
        "ResourceClaim",
        name,
        namespace=namespace,
        metadata={"uid": f"claim-{namespace}-{name}"},
        spec={"devices": {"requests": requests, **constraints}},
    )


def _held(node: str, device: str, namespace: str) -> Document:
    """Return a claim that a device of a node is allocated to."""
    request = {"name": "first", "exactly": {"deviceClassName": _CLASS, **_amount(1)}}
    result = {"request": "first", "driver": DRIVER, "pool": node, "device": device}
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    allocation = {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }
    claim = _claim(f"held-{node}-{device}", namespace, [request], {})
    return {**claim, "status": {"allocation": allocation}}
