"""IP addresses of nodes and pods: no two existing pods have the same address.

A node is assigned an address in 172.16.0.0/12 when it registers, unless its status has another. Its
pods are assigned addresses from its spec.podCIDR, if it has one, else from blocks of 256 in
10.0.0.0/8 that nodes allocate as needed; addresses that pods already have, from earlier kubelets,
are reserved. As with the usual network plugins, a released address is reused last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Address, IPv4Network, NetmaskValueError
from itertools import count
from typing import Final

_NODES: Final = int(IPv4Address("172.16.0.0")) + 2
_MAX_NODES: Final = 2**20 - 2
_PODS: Final = int(IPv4Address("10.0.0.0"))
_BLOCK: Final = 256
_BLOCKS: Final = 2**16


class PodCIDRPool:
    """The unallocated blocks of 256 addresses, and the owner of each address in use."""

    def __init__(self) -> None:
        self._taken = 0
        self._allocated: dict[str, str] = {}

    def allocate_block(self) -> IPv4Network:
        """Allocate a block. Raise ValueError when none is left."""
        if self._taken == _BLOCKS:
            raise ValueError("there are no more addresses for pods: 10.0.0.0/8 is all given away")
        self._taken += 1
        return IPv4Network((_PODS + (self._taken - 1) * _BLOCK, 24))

    def is_free(self, address: str) -> bool:
        """Return whether no pod has an address."""
        return address not in self._allocated

    def reserve(self, uid: str, address: str) -> None:
        """Reserve the address that a pod has."""
        self._allocated[address] = uid

    def release(self, uid: str, address: str) -> bool:
        """Release the address of a pod; return whether the pod had it."""
        if self._allocated.get(address) != uid:
            return False
        del self._allocated[address]
        return True


class PodIPAllocator:
    """Allocates the addresses of one node's pods; ``cidr`` is its podCIDR, "" for none."""

    def __init__(self, blocks: PodCIDRPool, cidr: str) -> None:
        self._blocks = blocks
        self._fresh: Iterator[IPv4Address] = iter(_range(cidr))
        self._free: deque[str] = deque()

    def allocate(self, uid: str) -> str:
        """Allocate an address for a pod."""
        address = self._next()
        self._blocks.reserve(uid, address)
        return address

    def release(self, uid: str, address: str) -> None:
        """Release the address of a pod that has ended, if it still has one."""
        if self._blocks.release(uid, address):
            self._free.append(address)

    def _next(self) -> str:
        while True:
            for fresh in self._fresh:
                if self._blocks.is_free(str(fresh)):
                    return str(fresh)
            while self._free:
                address = self._free.popleft()
                if self._blocks.is_free(address):
                    return address
            self._fresh = iter(_hosts(self._blocks.allocate_block()))


class NodeIPAllocator:
    """Allocates the addresses of all nodes."""

    def __init__(self) -> None:
        self._allocated: dict[str, str] = {}
        self._numbers = count()

    def reserve(self, name: str, address: str) -> None:
        """Reserve the address that a node has."""
        self._allocated[address] = name

    def allocate(self, name: str) -> str:
        """Allocate an address for a node."""
        address = next(
            each for each in map(node_address, self._numbers) if each not in self._allocated
        )
        self.reserve(name, address)
        return address

    def release(self, name: str, address: str) -> None:
        """Release the address of a deleted node."""
        if self._allocated.get(address) == name:
            del self._allocated[address]


def node_address(index: int) -> str:
    """Return the address of a node by its number."""
    return str(IPv4Address(_NODES + index % _MAX_NODES))


def _range(cidr: str) -> Iterator[IPv4Address]:
    try:
        return _hosts(IPv4Network(cidr, strict=False)) if cidr else iter(())
    except (AddressValueError, NetmaskValueError, ValueError):
        return iter(())


def _hosts(network: IPv4Network) -> Iterator[IPv4Address]:
    """Return a range's addresses, except those of the network, its gateway, and broadcasts."""
    first, last = int(network.network_address), int(network.broadcast_address)
    return (IPv4Address(number) for number in range(first + 2, last))
