"""Addresses of nodes and pods: no two pods that are there at once have the same one.

A node has an address in 172.16.0.0/12 by its number, unless its status says another. Its pods get
theirs from its spec.podCIDR, if it has one, else from blocks of 256 in 10.0.0.0/8 that nodes take
as they need them. As with the usual network plugins, an address that has become free is used again
last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Address, IPv4Network, NetmaskValueError
from typing import Final

_NODES: Final = int(IPv4Address("172.16.0.0")) + 2
_MOST_NODES: Final = 2**20 - 2
_PODS: Final = int(IPv4Address("10.0.0.0"))
_BLOCK: Final = 256
_BLOCKS: Final = 2**16


class Blocks:
    """The blocks of 256 addresses that are still to be had; raises ValueError when none is left."""

    def __init__(self) -> None:
        self._taken = 0

    def take(self) -> IPv4Network:
        """Take a block."""
        if self._taken == _BLOCKS:
            raise ValueError("there are no more addresses for pods: 10.0.0.0/8 is all given away")
        self._taken += 1
        return IPv4Network((_PODS + (self._taken - 1) * _BLOCK, 24))


class PodAddresses:
    """The addresses of one node's pods, by UID; ``cidr`` is the node's own range, "" if none."""

    def __init__(self, blocks: Blocks, cidr: str) -> None:
        self._blocks = blocks
        self._fresh: Iterator[IPv4Address] = iter(_range(cidr))
        self._free: deque[str] = deque()
        self._given: dict[str, str] = {}
        self._held: dict[str, str] = {}

    def of(self, uid: str) -> str:
        """Give a pod's address; it gets one if it has none."""
        address = self._given.get(uid)
        return address if address is not None else self.keep(uid, self._next())

    def keep(self, uid: str, address: str) -> str:
        """Note that a pod has an address already."""
        self._given[uid] = address
        self._held[address] = uid
        return address

    def release(self, uid: str) -> None:
        """Take back the address of a pod that is gone."""
        address = self._given.pop(uid, None)
        if address is not None and self._held.get(address) == uid:
            del self._held[address]
            self._free.append(address)

    def _next(self) -> str:
        while True:
            for fresh in self._fresh:
                if str(fresh) not in self._held:
                    return str(fresh)
            while self._free:
                address = self._free.popleft()
                if address not in self._held:
                    return address
            self._fresh = iter(_hosts(self._blocks.take()))


def node_address(index: int) -> str:
    """Give the address of a node by its number."""
    return str(IPv4Address(_NODES + index % _MOST_NODES))


def _range(cidr: str) -> Iterator[IPv4Address]:
    try:
        return _hosts(IPv4Network(cidr, strict=False)) if cidr else iter(())
    except (AddressValueError, NetmaskValueError, ValueError):
        return iter(())


def _hosts(network: IPv4Network) -> Iterator[IPv4Address]:
    """Give a range's addresses, but for those of the network, its gateway, and broadcasts."""
    first, last = int(network.network_address), int(network.broadcast_address)
    return (IPv4Address(number) for number in range(first + 2, last))
