"""Node ports of a Service: kept, dropped, allocated and freed.

Node ports come from 30000 to 32767 and belong to one Service until it is deleted or no longer needs
them. Ports of one Service with the same number share a node port (TCP and UDP of a DNS server). A
request for a node port of another Service is rejected. Services that were loaded keep the ports
that they came with.

An update that omits a node port keeps it, and a change to a type without node ports drops the
fields of the previous type that the client did not change.

As upstream, a dry run allocates numbers after the range.

Sources: pkg/registry/core/service (initNodePorts, updateNodePorts and healthCheckNodePortUpdate in
storage/alloc.go, patchAllocatedValues in storage/storage.go, dropTypeDependentFields in
strategy.go, portallocator), v1.37.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fakeapi.apiserver.kinds.builtin import SERVICES
from fakeapi.apiserver.store.dry_run import DryRunStore, ObjectReader
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import internal_error, invalid, invalid_value

Spec = dict[str, Any]
PreviousSpec = Mapping[str, Any]

_RANGE: Final = range(30_000, 32_768)
_NODE_PORT_TYPES: Final = ("NodePort", "LoadBalancer")
_HEALTH_CHECK: Final = "healthCheckNodePort"


def keep_node_ports(spec: Spec, before: PreviousSpec) -> None:
    """Keep the node ports that an update omits, by the names of the ports."""
    if spec.get("type") not in _NODE_PORT_TYPES or before.get("type") not in _NODE_PORT_TYPES:
        return
    used = set(_numbers(spec)) & set(_numbers(before))
    known = {port.get("name"): port.get("nodePort") for port in before.get("ports") or ()}
    for port in spec.get("ports") or ():
        number = known.get(port.get("name"))
        if not port.get("nodePort") and number and number not in used:
            port["nodePort"] = number
            used.add(number)
    if _needs_health_check(spec) and _needs_health_check(before) and before.get(_HEALTH_CHECK):
        spec[_HEALTH_CHECK] = spec.get(_HEALTH_CHECK) or before[_HEALTH_CHECK]


def drop_node_ports(spec: Spec, before: PreviousSpec) -> None:
    """Drop what the previous type needed and this one does not, if the client did not change it."""
    needed, needs = (s.get("type") in _NODE_PORT_TYPES for s in (before, spec))
    if needed and not needs:
        if _port_numbers(spec) == _port_numbers(before):
            for port in spec.get("ports") or ():
                port.pop("nodePort", None)
        _drop_unchanged(spec, before, "externalTrafficPolicy")
    if _needs_health_check(before) and not _needs_health_check(spec):
        _drop_unchanged(spec, before, _HEALTH_CHECK)
    if spec.get("type") != "LoadBalancer":
        _drop_unchanged(spec, before, "allocateLoadBalancerNodePorts")
        _drop_unchanged(spec, before, "loadBalancerClass")


def allocate_node_ports(service: Document, before: PreviousSpec, store: ObjectReader) -> None:
    """Allocate the node ports that a Service needs and that ``before``, its last spec, has not.

    Raise StatusError: 422 for a port that is not available, 500 if all are taken.
    """
    spec = service["spec"]
    wants_ports = spec.get("type") == "NodePort" or (
        spec.get("type") == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts", True)
    )
    if spec.get("type") not in _NODE_PORT_TYPES:
        return
    allocation = _Allocation(service, before, store)
    shared = _requested_ports(spec)
    for index, port in enumerate(spec.get("ports") or ()):
        number = port.get("nodePort") or (not before and shared.get(port["port"]))
        if number:
            allocation.request(number, f"spec.ports[{index}].nodePort")
        elif wants_ports:
            number = allocation.next_free()
        if number:
            port["nodePort"] = number
            shared.setdefault(port["port"], number)
    if _needs_health_check(spec):
        if spec.get(_HEALTH_CHECK):
            allocation.request(spec[_HEALTH_CHECK], f"spec.{_HEALTH_CHECK}")
        else:
            spec[_HEALTH_CHECK] = allocation.next_free()


class _Allocation:
    """The node ports that one write allocates."""

    def __init__(self, service: Document, before: PreviousSpec, store: ObjectReader) -> None:
        self._service = service
        self._dry_run = isinstance(store, DryRunStore)
        self._own = {*_numbers(before), before.get(_HEALTH_CHECK)}
        self._taken = _taken_ports(service, store)
        self._serial = store.version + 1

    def request(self, number: int, path: str) -> None:
        """Allocate a number, or raise StatusError (422)."""
        if number in self._own:
            return
        problem = ""
        if number not in _RANGE:
            problem = (
                "provided port is not in the valid range. "
                f"The range of valid ports is {_RANGE[0]}-{_RANGE[-1]}"
            )
        elif number in self._taken:
            problem = "provided port is already allocated"
        if problem and not (self._dry_run and number not in _RANGE):
            name = self._service["metadata"]["name"]
            raise invalid("Service", name, [invalid_value(path, number, problem)])
        self._own.add(number)

    def next_free(self) -> int:
        """Allocate and return a free number; raise StatusError (500)."""
        if self._dry_run:
            number = max((n for n in self._own if n), default=0)
            number = max(number, _RANGE[-1]) + 1
        else:
            free = (
                candidate
                for step in range(len(_RANGE))
                if (candidate := _RANGE[(self._serial + step) % len(_RANGE)]) not in self._taken
                and candidate not in self._own
            )
            number = next(free, 0)
            if not number:
                raise internal_error("failed to allocate a nodePort: range is full")
        self._own.add(number)
        return number


def _taken_ports(service: Document, store: ObjectReader) -> frozenset[int]:
    """Return the node ports of all other Services."""
    own = service["metadata"]["namespace"], service["metadata"]["name"]
    taken: set[int] = set()
    for entry in store.entries(SERVICES):
        if b'odePort":' not in entry.raw:
            continue
        document = entry.document()
        metadata, spec = document["metadata"], document.get("spec") or {}
        if (metadata["namespace"], metadata["name"]) != own:
            taken.update(_numbers(spec), [spec.get(_HEALTH_CHECK) or 0])
    return frozenset(taken)


def _requested_ports(spec: PreviousSpec) -> dict[int, int]:
    """Return the node port that the first port of each number requests."""
    requested: dict[int, int] = {}
    for port in spec.get("ports") or ():
        if port.get("nodePort"):
            requested.setdefault(port["port"], port["nodePort"])
    return requested


def _numbers(spec: PreviousSpec) -> list[int]:
    return [port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")]


def _port_numbers(spec: PreviousSpec) -> list[int]:
    return [port.get("nodePort") or 0 for port in spec.get("ports") or ()]


def _needs_health_check(spec: PreviousSpec) -> bool:
    local = spec.get("externalTrafficPolicy") == "Local"
    return local and spec.get("type") == "LoadBalancer"


def _drop_unchanged(spec: Spec, before: PreviousSpec, name: str) -> None:
    if name in spec and spec[name] == before.get(name):
        del spec[name]
