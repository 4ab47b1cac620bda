"""A file of simulated nodes whose pods run: what fakeapi exports once the kubelets have started.

One node is started, and the others are copies of it with other names, addresses and UIDs, so that
the kubelets that load the file find every status as they would write it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from ipaddress import IPv4Address
from typing import Final

from fakeapi import VirtualCluster
from tests.bench.clusters import PREFIX, cluster, encoded
from tests.builders import Document

_STARTED_SECONDS: Final = 60.0
_FIRST: Final = "00000"
_UID: Final = re.compile(r'"uid":"(uid-p-[0-9-]+)"')
_CONTAINER_ID: Final = re.compile(r"containerd://[0-9a-f]+")
_ADDRESS: Final = re.compile(r'"(?:10|172)(?:\.[0-9]+){3}"')
_NODE_ADDRESSES: Final = int(IPv4Address("172.16.0.2"))
_POD_ADDRESSES: Final = int(IPv4Address("10.0.0.2"))
_BLOCK: Final = 256


def running_nodes(nodes: int, pods_per_node: int) -> Iterator[bytes]:
    """Return nodes, their leases and their pods, each as a line of JSON."""
    texts = asyncio.run(_one_node(pods_per_node))
    yield from texts["Namespace"]
    for kind in ("Node", "Lease", "Pod"):
        for index in range(nodes):
            for place, text in enumerate(texts[kind]):
                yield _copy(text.decode(), index, place).encode()


async def _one_node(pods_per_node: int) -> Mapping[str, list[bytes]]:
    """Return the objects of a node that has started its pods, by kind."""
    texts: dict[str, list[bytes]] = {}
    async with VirtualCluster(run="kubelet", kubelet={"events": False}) as started:
        started.load(map(_with_image, cluster(1, pods_per_node, budgets=0)))
        await started.clock.advance(_STARTED_SECONDS)
        for document in started.export():
            texts.setdefault(document["kind"], []).append(encoded(document))
    return texts


def _with_image(document: Document) -> Document:
    """Return an object; the container of a pod gets an image, which every change of it requires."""
    for container in document["spec"].get("containers", ()) if document["kind"] == "Pod" else ():
        container["image"] = "registry.example/c:1"
    return document


def _copy(text: str, index: int, place: int) -> str:
    """Return an object of the first node as that of another one."""
    number = f"{index:05}"
    text = text.replace(f"{PREFIX}{_FIRST}", f"{PREFIX}{number}")
    text = text.replace(f"p-{_FIRST}-", f"p-{number}-")
    addresses = {"172": _NODE_ADDRESSES + index, "10": _POD_ADDRESSES + index * _BLOCK + place}
    text = _ADDRESS.sub(lambda found: f'"{IPv4Address(addresses[_octet(found[0])])}"', text)
    uid = _UID.search(text)
    if uid is None:
        return text
    container = sha256(f"{uid[1]}/c/0".encode()).hexdigest()
    return _CONTAINER_ID.sub(f"containerd://{container}", text)


def _octet(address: str) -> str:
    return address[1 : address.index(".")]
