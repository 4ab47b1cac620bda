"""The structured allocator: whether a node has the devices that some claims request.

The search is depth first and exhaustive: over claims, their requests, the alternatives of a
request, and devices. The first complete solution ends it, so only whether there is one matters
here. A feature that is not evaluated, or a search that takes too long, is unknown. A claim for too
many devices, or for all devices while a pool is incomplete or invalid, is an error: it ends the
scheduling attempt.

Source: Allocate and allocateOne in k8s.io/dynamic-resource-allocation/structured/internal/
incubating/allocator_incubating.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from policies.devices.constraints import (
    MILLI,
    WHOLE,
    allows,
    consumed_capacity,
    find_attribute,
)
from policies.devices.planning import PlannedClaim, PlannedRequest
from policies.devices.pools import Pool, consumption, free_counters
from policies.kubernetes.devices import (
    Attribute,
    AttributeType,
    Device,
    DeviceRequest,
    PoolUse,
)
from policies.kubernetes.feature_gates import FeatureGate

MAX_RESULTS: Final = 32
"""The maximum number of devices of one claim (AllocationResultsMaxSize)."""
_TOO_MANY: Final = f"a claim needs more than {MAX_RESULTS} devices"
_UNUSABLE_POOL: Final = "a pool of the node is incomplete or invalid"
MAX_STEPS: Final = 5_000
"""The maximum number of devices that one search tries; a longer search is unknown."""


class Outcome(Enum):
    """Whether the devices of a node suffice."""

    FITS = "fits"
    REFUSED = "refused"
    ERROR = "error"
    UNKNOWN = "unknown"


class Verdict(NamedTuple):
    """An outcome; ``detail`` names what is not evaluated, or which request fails and why."""

    outcome: Outcome
    detail: str = ""


def allocate(
    claims: Sequence[PlannedClaim],
    pools: Sequence[Pool],
    uses: Sequence[PoolUse],
    gates: frozenset[FeatureGate],
) -> Verdict:
    """Search for devices for all ``claims`` in ``pools``, of which ``uses`` are in use."""
    search = _Search(claims, pools, uses, gates)
    try:
        if search.run():
            return Verdict(Outcome.FITS)
    except _UndecidedError as undecided:
        return Verdict(Outcome.UNKNOWN, f"{undecided} ({search.furthest_claim()})")
    except _AllocatorError as error:
        return Verdict(Outcome.ERROR, str(error))
    return Verdict(Outcome.REFUSED, search.refusal())


class _UndecidedError(Exception):
    """The search cannot say; the message names why."""


class _AllocatorError(Exception):
    """The search ends the scheduling attempt; the message names why."""


class _TooManyDevicesError(_AllocatorError):
    """A claim would have too many devices."""


class _Place(NamedTuple):
    """A device of a pool."""

    pool: int
    driver: str
    device: Device


class _Taken(NamedTuple):
    """A device that the search has taken, and what to undo."""

    claim: int
    place: int
    counts: bool
    constraints: tuple[int, ...]


class _Search:
    """One search; devices are taken and released as it proceeds."""

    def __init__(
        self,
        claims: Sequence[PlannedClaim],
        pools: Sequence[Pool],
        uses: Sequence[PoolUse],
        gates: frozenset[FeatureGate],
    ) -> None:
        self._claims, self._pools, self._gates = claims, pools, gates
        self._uses = uses
        self._places = [
            _Place(number, pool.id.driver, device)
            for number, pool in enumerate(pools)
            for device in pool.devices
        ]
        self._sharing = FeatureGate.DRA_CONSUMABLE_CAPACITY in gates
        self._shared = [dict(use.shared) for use in uses]
        self._free = [free_counters(pool, use) for pool, use in zip(pools, uses, strict=True)]
        self._taken: list[_Taken] = []
        self._values: list[list[list[Attribute]]] = [
            [[] for _ in claim.constraints] for claim in claims
        ]
        self._capacity: dict[int, list[Mapping[str, int]]] = {}
        self._selected: dict[tuple[int, int], bool] = {}
        self._steps = 0
        self._furthest = (0, 0)

    def run(self) -> bool:
        """Return whether there are devices for all requests."""
        for number, claim in enumerate(self._claims):
            for planned in (each for group in claim.requests for each in group):
                problem = _unsupported(planned.request, self._gates)
                if problem:
                    self._furthest = number, 0
                    raise _UndecidedError(problem)
                if planned.request.count is None and any(pool.unusable for pool in self._pools):
                    name = f"{claim.name}, request {planned.request.name}"
                    raise _AllocatorError(f"{name}: {_UNUSABLE_POOL}")
        return self._claim(0)

    def furthest_claim(self) -> str:
        """Return the name of the claim that the search has reached."""
        return self._claims[self._furthest[0]].name

    def refusal(self) -> str:
        """Return why the search found nothing: the furthest request that it could not meet."""
        claim, number = self._furthest
        group = self._claims[claim].requests[number]
        name = min(group[0].names, key=len)
        try:
            reasons = "; or ".join(dict.fromkeys(self._shortage(claim, each) for each in group))
        except _UndecidedError:
            reasons = "too few devices"
        return f"{self.furthest_claim()}, request {name}: {reasons}"

    def _shortage(self, claim: int, planned: PlannedRequest) -> str:
        """Return why the devices do not suffice for a request, or an alternative of one."""
        matching = [n for n in range(len(self._places)) if self._selects(planned, n)]
        if not matching:
            is_unusable = any(pool.unusable for pool in self._pools)
            return _UNUSABLE_POOL if is_unusable else "no device matches"
        lacks = Counter(self._obstacle(claim, planned, place) for place in matching)
        free = lacks.pop("", 0)
        wanted = planned.request.count or len(matching)
        found = ", ".join(f"{count} {lack}" for lack, count in sorted(lacks.items()))
        if free >= wanted:
            found = "constraints or other requests exclude some"
        return f"needs {wanted} of {len(matching)} matching device(s)" + (found and f": {found}")

    def _claim(self, claim: int) -> bool:
        return claim == len(self._claims) or self._request(claim, 0)

    def _request(self, claim: int, number: int) -> bool:
        requests = self._claims[claim].requests
        depth = len(self._taken)
        if number == len(requests):
            try:
                return self._claim(claim + 1)
            except _TooManyDevicesError:
                return self._release_to(depth)
        self._furthest = max(self._furthest, (claim, number))
        too_many = 0
        for planned in requests[number]:
            try:
                if self._alternative(claim, number, planned):
                    return True
            except _TooManyDevicesError:
                too_many += 1
                self._release_to(depth)
        if too_many == len(requests[number]):
            raise _TooManyDevicesError(_TOO_MANY)
        return False

    def _alternative(self, claim: int, number: int, planned: PlannedRequest) -> bool:
        if planned.request.count is not None:
            return self._some(claim, number, planned, planned.request.count)
        places = [
            place
            for place in range(len(self._places))
            if self._selects(planned, place) and self._consumes(planned, place) is not None
        ]
        return bool(places) and self._every(claim, number, planned, places)

    def _every(
        self, claim: int, number: int, planned: PlannedRequest, places: Sequence[int]
    ) -> bool:
        if not places:
            return self._request(claim, number + 1)
        self._check_size(claim, len(places))
        if not self._take(claim, planned, places[0]):
            return False
        return self._every(claim, number, planned, places[1:]) or self._release()

    def _some(
        self, claim: int, number: int, planned: PlannedRequest, count: int, start: int = 0
    ) -> bool:
        if count == 0:
            return self._request(claim, number + 1)
        self._check_size(claim, count)
        for place in range(start, len(self._places)):
            if (
                not self._is_in_use(claim, planned, place)
                and self._selects(planned, place)
                and self._take(claim, planned, place)
                and (self._some(claim, number, planned, count - 1, place + 1) or self._release())
            ):
                return True
        return False

    def _check_size(self, claim: int, more: int) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise _UndecidedError("the search for devices takes too long")
        if sum(each.claim == claim for each in self._taken) + more > MAX_RESULTS:
            raise _TooManyDevicesError(_TOO_MANY)

    def _is_in_use(self, claim: int, planned: PlannedRequest, place: int) -> bool:
        at = self._places[place]
        shares = self._is_shared(at.device)
        if planned.request.admin:
            return not shares and any(t.place == place and t.claim == claim for t in self._taken)
        taken = not shares and any(each.place == place for each in self._taken)
        return taken or at.device.name in self._uses[at.pool].devices

    def _is_shared(self, device: Device) -> bool:
        return self._sharing and device.shared

    def _selects(self, planned: PlannedRequest, place: int) -> bool:
        key = id(planned), place
        if key not in self._selected:
            self._selected[key] = self._evaluate(planned, self._places[place])
        return self._selected[key]

    def _evaluate(self, planned: PlannedRequest, at: _Place) -> bool:
        device = at.device
        if device.binds and FeatureGate.DRA_DEVICE_BINDING_CONDITIONS not in self._gates:
            return False
        for selector in planned.selectors:
            matches = selector.matches(at.driver, device)
            if matches is None:
                raise _UndecidedError(f"a selector of request {planned.request.name}")
            if not matches:
                return False
        if device.unsupported:
            raise _UndecidedError(f"{device.unsupported} of device {device.name}")
        return True

    def _consumes(self, planned: PlannedRequest, place: int) -> Mapping[str, int] | None:
        """Return what the request consumes of the device's capacity, None if it is too much."""
        if not self._sharing:
            return {}
        at = self._places[place]
        finest = MILLI if FeatureGate.DRA_FRACTIONAL_CAPACITY_RANGE in self._gates else WHOLE
        consumed = consumed_capacity(at.device, dict(planned.request.capacity), finest)
        if consumed is None:
            return None
        limits = at.device.capacity
        return consumed if all(n <= limits[name].value for name, n in consumed.items()) else None

    def _take(self, claim: int, planned: PlannedRequest, place: int) -> bool:
        """Take a device if nothing forbids it."""
        if self._obstacle(claim, planned, place):
            return False
        at = self._places[place]
        counts = self._counts(place)
        added = self._add_to_constraints(claim, planned, at)
        if added is None:
            return False
        if counts:
            self._count(at, 1)
        if self._is_shared(at.device):
            self._capacity.setdefault(place, []).append(self._consumes(planned, place) or {})
        self._taken.append(_Taken(claim, place, counts, added))
        return True

    def _obstacle(self, claim: int, planned: PlannedRequest, place: int) -> str:
        """Return what forbids a device that matches, apart from constraints, or ""."""
        device = self._places[place].device
        if self._is_in_use(claim, planned, place):
            return "in use"
        consumed = self._consumes(planned, place)
        if consumed is None or not self._has_capacity(place, consumed):
            return "without enough capacity"
        if device.consumes and FeatureGate.DRA_PARTITIONABLE_DEVICES not in self._gates:
            return "partitioned"
        if FeatureGate.DRA_DEVICE_TAINTS in self._gates and planned.is_repelled_by(device):
            return "tainted"
        if self._counts(place) and not self._has_counters(self._places[place]):
            return "without enough counters"
        return ""

    def _counts(self, place: int) -> bool:
        """Return whether taking a device changes the counters of its pool."""
        return bool(self._places[place].device.consumes) and not self._is_shared_already(place)

    def _release(self) -> bool:
        """Release the device taken last; return false, as the solution with it has failed."""
        last = self._taken.pop()
        at = self._places[last.place]
        for number in last.constraints:
            self._values[last.claim][number].pop()
        if last.counts:
            self._count(at, -1)
        if self._is_shared(at.device):
            self._capacity[last.place].pop()
        return False

    def _release_to(self, depth: int) -> bool:
        """Release all devices but the first ``depth`` that were taken; return false."""
        while len(self._taken) > depth:
            self._release()
        return False

    def _has_capacity(self, place: int, consumed: Mapping[str, int]) -> bool:
        at = self._places[place]
        before = [dict(self._shared[at.pool].get(at.device.name, ()))]
        before += [dict(each) for each in self._capacity.get(place, ())]
        limits = at.device.capacity
        return all(
            amount + sum(each.get(name, 0) for each in before) <= limits[name].value
            for name, amount in consumed.items()
        )

    def _is_shared_already(self, place: int) -> bool:
        at = self._places[place]
        if not self._is_shared(at.device):
            return False
        return bool(self._capacity.get(place)) or at.device.name in self._shared[at.pool]

    def _has_counters(self, at: _Place) -> bool:
        free = dict(self._free[at.pool])
        for name, amount in consumption(at.device):
            free[name] = free.get(name, 0) - amount
        return all(amount >= 0 for amount in free.values())

    def _count(self, at: _Place, sign: int) -> None:
        free = self._free[at.pool]
        for name, amount in consumption(at.device):
            free[name] -= sign * amount

    def _add_to_constraints(
        self, claim: int, planned: PlannedRequest, at: _Place
    ) -> tuple[int, ...] | None:
        """Add a device to the constraints of its request; None if one of them forbids it."""
        found: list[tuple[int, Attribute]] = []
        for number, each in enumerate(self._claims[claim].constraints):
            if each.requests and each.requests.isdisjoint(planned.names):
                continue
            attribute = find_attribute(at.device, at.driver, each.attribute)
            if attribute is None:
                return None
            if attribute.type is AttributeType.UNSUPPORTED:
                raise _UndecidedError(f"the list attribute {each.attribute}")
            if not allows(each, self._values[claim][number], attribute):
                return None
            found.append((number, attribute))
        for number, attribute in found:
            self._values[claim][number].append(attribute)
        return tuple(number for number, _ in found)


def _unsupported(request: DeviceRequest, gates: frozenset[FeatureGate]) -> str:
    if request.unsupported:
        return f"{request.unsupported} of request {request.name}"
    if request.admin and FeatureGate.DRA_ADMIN_ACCESS not in gates:
        return f"adminAccess of request {request.name}"
    if request.capacity and FeatureGate.DRA_CONSUMABLE_CAPACITY not in gates:
        return f"capacity of request {request.name}"
    return ""
