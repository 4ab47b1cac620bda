"""Critical pod admission: which pods are preempted for a critical pod.

The victims are as few and as small as possible. First those guaranteed pods are chosen that are
needed even if all others are preempted, then burstable pods, then best-effort ones. Within a QoS
class the pod with the smallest distance to the missing amounts is chosen repeatedly: for each
resource the fraction that it leaves missing, squared, summed up. Ties are broken by the smaller
memory request, then CPU request.

Source: pkg/kubelet/preemption/preemption.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from fakeapi.controlplane.kubelet.rooms import AllocatedPod, NodeAllocation, resource_amounts

PREEMPTING = "Preempting"
PREEMPTION_MESSAGE = "Preempted in order to admit critical pod"
PREEMPTION_DISRUPTION_MESSAGE = "Pod was preempted by Kubelet to accommodate a critical pod."

_QOS_CLASSES = ("Guaranteed", "Burstable", "BestEffort")


class NoVictimsError(Exception):
    """No set of pods frees enough resources; the text is upstream's."""


@dataclass(frozen=True, slots=True)
class InsufficientResource:
    """An insufficient resource of a node, in milliCPU or whole units."""

    resource: str
    requested: int
    used: int
    capacity: int

    def __str__(self) -> str:
        return (
            f"Node didn't have enough resource: {self.resource}, requested: {self.requested}, "
            f"used: {self.used}, capacity: {self.capacity}"
        )

    @property
    def missing(self) -> int:
        """The amount to be freed."""
        return self.requested - (self.capacity - self.used)


Missing = dict[str, int]


def pick_victims(
    preemptor: AllocatedPod, room: NodeAllocation, shortages: Iterable[InsufficientResource]
) -> tuple[str, ...]:
    """Return the UIDs of the victims. Raise NoVictimsError."""
    missing = {each.resource: each.missing for each in shortages}
    groups = {
        quality: [
            each
            for each in room.pods.values()
            if each.qos_class == quality and _preemptable(preemptor, each)
        ]
        for quality in _QOS_CLASSES
    }
    everybody = [tenant for group in groups.values() for tenant in group]
    impossible = _still_missing(missing, everybody)
    if impossible:
        raise _no_victims(impossible)
    chosen: dict[str, Sequence[AllocatedPod]] = dict(groups)
    for quality in _QOS_CLASSES:
        others = [t for other, group in chosen.items() if other != quality for t in group]
        chosen[quality] = _nearest(groups[quality], _still_missing(missing, others))
    return tuple(tenant.uid for quality in reversed(_QOS_CLASSES) for tenant in chosen[quality])


def _preemptable(preemptor: AllocatedPod, tenant: AllocatedPod) -> bool:
    if preemptor.critical and not tenant.critical:
        return True
    return preemptor.priority > tenant.priority


def _nearest(tenants: Sequence[AllocatedPod], missing: Missing) -> list[AllocatedPod]:
    """Choose pods until nothing is missing, each time the one with the smallest distance."""
    candidates, taken = list(tenants), []
    while missing:
        if not candidates:
            raise _no_victims(missing)
        best = 0
        for index, tenant in enumerate(candidates):
            rival = candidates[best]
            distances = _distance(tenant, missing), _distance(rival, missing)
            nearer = distances[0] < distances[1]
            if nearer or (distances[0] == distances[1] and _no_larger(tenant, rival)):
                best = index
        taken.append(candidates[best])
        missing = _still_missing(missing, [candidates[best]])
        candidates[best] = candidates[-1]
        candidates.pop()
    return taken


def _distance(tenant: AllocatedPod, missing: Missing) -> Fraction:
    requests = resource_amounts(tenant.requests)
    left = {name: amount - _requested_amount(requests, name) for name, amount in missing.items()}
    parts = [Fraction(left[name], amount) for name, amount in missing.items() if left[name] > 0]
    return sum((part * part for part in parts), Fraction(0))


def _no_larger(one: AllocatedPod, other: AllocatedPod) -> bool:
    ours, theirs = one.requests, other.requests
    return (ours.memory, ours.milli_cpu) <= (theirs.memory, theirs.milli_cpu)


def _still_missing(missing: Missing, gone: Iterable[AllocatedPod]) -> Missing:
    """Return the amounts that are still missing without some pods."""
    left = dict(missing)
    for tenant in gone:
        requests = resource_amounts(tenant.requests)
        left = {name: amount - _requested_amount(requests, name) for name, amount in left.items()}
    return {name: amount for name, amount in left.items() if amount > 0}


def _requested_amount(requests: Mapping[str, int], name: str) -> int:
    """Return a pod's request of a resource; of ``pods``, each pod requests one."""
    return 1 if name == "pods" else requests.get(name, 0)


def _no_victims(missing: Missing) -> NoVictimsError:
    listed = "".join(f"(res: {name}, q: {amount}), " for name, amount in missing.items())
    return NoVictimsError(
        "preemption: error finding a set of pods to preempt: "
        f"no set of running pods found to reclaim resources: [{listed}]"
    )
