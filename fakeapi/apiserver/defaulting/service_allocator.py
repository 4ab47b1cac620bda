"""The allocator of cluster IPs for Services, and the order of all their allocations.

Cluster IPs come from 10.96.0.0/12; 10.96.0.1 is reserved for ``default/kubernetes``. An address
belongs to a Service from its creation (or from its change to another type than ExternalName) until
the Service is deleted or becomes an ExternalName. A request for an address of another Service is
rejected. Services that were loaded keep the addresses that they came with.

If no address is requested, the search for a free one begins at a number that grows with every
write, so two servers with the same history allocate the same addresses.

As upstream, a dry run does not look at the allocated addresses: it returns the address of the
network, and accepts any address of the range as free.

Sources: pkg/registry/core/service (storage/alloc.go, ipallocator), v1.37.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Any, Final, Protocol

from fakeapi.apiserver.defaulting.service_cluster_ips import (
    NONE,
    drop_type_dependent_fields,
    has_cluster_ips,
    init_ip_families,
    normalize_cluster_ips,
)
from fakeapi.apiserver.defaulting.service_node_ports import (
    allocate_node_ports,
    drop_node_ports,
    keep_node_ports,
)
from fakeapi.apiserver.kinds.builtin import SERVICES
from fakeapi.apiserver.store.dry_run import DryRunStore, ObjectReader
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import Cause, internal_error, invalid, invalid_value

CLUSTER_IP_RANGE: Final = IPv4Network("10.96.0.0/12")

_FIRST: Final = 10
_RESERVED: Final = 16  # at both ends: the search begins between them
_KUBERNETES: Final = ("default", "kubernetes")


class RangeFullError(Exception):
    """No address of the range is free (upstream's ErrFull)."""


class AllocationRange(Protocol):
    """A range that cluster IPs are allocated from."""

    def unavailable_reason(self, address: str) -> str:
        """Return why an address is not available; "" if it is."""
        ...

    def next_free(self) -> str:
        """Return a free address; raise RangeFullError."""
        ...


@dataclass(frozen=True, slots=True)
class ClusterIPRange:
    """The addresses of ``range`` except those that are ``taken``; ``start`` is any number."""

    taken: frozenset[str]
    start: int
    range: IPv4Network = CLUSTER_IP_RANGE

    def unavailable_reason(self, address: str) -> str:
        """Return why an address is not available; "" if it is."""
        if not _is_inside(self.range, address):
            return "the provided network does not match the current range"
        return "provided IP is already allocated" if address in self.taken else ""

    def next_free(self) -> str:
        """Return the first free address after ``start``; the search wraps around."""
        size = self.range.num_addresses
        start = _FIRST + self.start % max(size - _RESERVED, 1)
        for step in range(size):
            address = str(self.range[(start + step) % size])
            if not self.unavailable_reason(address):
                return address
        raise RangeFullError


@dataclass(frozen=True, slots=True)
class DryRunAddresses:
    """The cluster IPs of a dry run."""

    range: IPv4Network = CLUSTER_IP_RANGE

    def unavailable_reason(self, address: str) -> str:
        """Return why an address is not available; "" if it is."""
        if _is_inside(self.range, address):
            return ""
        rule = f"the provided IP ({address}) is not in the valid range"
        return f"{rule}. The range of valid IPs is {self.range}"

    def next_free(self) -> str:
        """Return the network's own address."""
        return str(self.range.network_address)


def _is_inside(network: IPv4Network, address: str) -> bool:
    ends = (network.network_address, network.broadcast_address)
    found = IPv4Address(address)
    return found in network and found not in ends


def allocate_create(service: Document, store: ObjectReader) -> None:
    """Allocate the addresses and ports of a new Service.

    Raise StatusError: 422 for an address that is not available, 500 if the range is full.
    """
    spec = service["spec"]
    normalize_cluster_ips(spec, {})
    if has_cluster_ips(spec):
        _init_ip_families(service, {})
        _allocate_address(service, store)
        allocate_node_ports(service, {}, store)
    else:
        drop_type_dependent_fields(spec, {})


def allocate_update(service: Document, old: Mapping[str, Any], store: ObjectReader) -> None:
    """Keep the allocations of a Service and add missing ones; raise StatusError (422, 500)."""
    spec, before = service["spec"], old.get("spec") or {}
    had = has_cluster_ips(before) and (before.get("clusterIP") or before.get("clusterIPs"))
    normalize_cluster_ips(spec, before)
    keep_node_ports(spec, before)
    drop_node_ports(spec, before)
    if not has_cluster_ips(spec):
        drop_type_dependent_fields(spec, before)
        return
    _init_ip_families(service, before)
    if not had:
        _allocate_address(service, store)
    allocate_node_ports(service, before, store)


def _init_ip_families(service: Document, before: Mapping[str, Any]) -> None:
    faults = init_ip_families(service["spec"], before)
    if faults:
        raise invalid("Service", service["metadata"]["name"], faults)


def _allocate_address(service: Document, store: ObjectReader) -> None:
    spec, name = service["spec"], service["metadata"]["name"]
    requested = spec.get("clusterIPs")
    if requested == [NONE]:
        return
    pool = _allocation_range(service, store)
    if requested:
        detail = pool.unavailable_reason(requested[0])
        if detail:
            raise invalid("Service", name, [_unavailable_error(requested, detail)])
        return
    try:
        spec["clusterIP"] = pool.next_free()
    except RangeFullError:
        problem = f'failed to allocate a serviceIP for Service "{name}": range is full'
        raise internal_error(problem) from None
    spec["clusterIPs"] = [spec["clusterIP"]]


def _unavailable_error(requested: list[str], detail: str) -> Cause:
    return invalid_value(
        "spec.clusterIPs", requested, f"failed to allocate IP {requested[0]}: {detail}"
    )


def _allocation_range(service: Document, store: ObjectReader) -> AllocationRange:
    if isinstance(store, DryRunStore):
        return DryRunAddresses()
    index = [field.label for field in SERVICES.fields].index("spec.clusterIP")
    taken = {entry.fields[index] for entry in store.entries(SERVICES)}
    metadata = service["metadata"]
    if (metadata["namespace"], metadata["name"]) != _KUBERNETES:
        taken.add(str(CLUSTER_IP_RANGE[1]))
    return ClusterIPRange(frozenset(taken), store.version + 1)
