"""Claims prepared for the search: each request has the selectors of its class and its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policies.devices.expressions import Selector, compile_selector
from policies.kubernetes.devices import Device, DeviceClass, DeviceConstraint, DeviceRequest

_BLOCKING = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """A request, or an alternative of one, with the selectors of its class and its own."""

    names: frozenset[str]
    request: DeviceRequest
    selectors: tuple[Selector, ...]

    def is_repelled_by(self, device: Device) -> bool:
        """Return whether the device has a taint that the request does not tolerate."""
        return any(
            not any(each.tolerates(taint) for each in self.request.tolerations)
            for taint in device.taints
            if taint.effect in _BLOCKING
        )


@dataclass(frozen=True, slots=True)
class PlannedClaim:
    """A claim to allocate: the alternatives of each request, its constraints, and its name."""

    requests: tuple[tuple[PlannedRequest, ...], ...]
    constraints: tuple[DeviceConstraint, ...] = ()
    name: str = ""

    def attributes(self) -> Iterator[str]:
        """Return the names of the attributes that the search reads, as ``domain/name``."""
        for each in (planned for group in self.requests for planned in group):
            for selector in each.selectors:
                yield from selector.attributes
        yield from (each.attribute for each in self.constraints)


def plan_claim(
    requests: Sequence[DeviceRequest],
    constraints: Sequence[DeviceConstraint],
    classes: Mapping[str, DeviceClass],
    name: str = "claim",
) -> PlannedClaim:
    """Prepare a claim for the search. Every class of its requests is in ``classes``."""
    return PlannedClaim(
        tuple(
            tuple(_planned(request, each, classes) for each in request.alternatives())
            for request in requests
        ),
        tuple(constraints),
        name,
    )


def _planned(
    parent: DeviceRequest, each: DeviceRequest, classes: Mapping[str, DeviceClass]
) -> PlannedRequest:
    full = {parent.name} if each is parent else {parent.name, f"{parent.name}/{each.name}"}
    expressions = (*classes[each.device_class].selectors, *each.selectors)
    return PlannedRequest(frozenset(full), each, tuple(map(compile_selector, expressions)))
