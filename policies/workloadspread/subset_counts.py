"""The counts of a subset: its active pods, and how many are missing.

Webhooks record a pod that they allow to be created or deleted before the controller can observe it.
The counts include these pods in flight: pods to be created are no longer missing, pods to be
deleted already are. An entry is removed when its pod is observed; otherwise it expires after a
timeout with an event.

    maxReplicas 5, active pods a and b, of which b was evicted 3 s ago, and c to be created

    replicas 2, missing 5 - 2 + 1 - 1 = 3, creating c, deleting b

maxReplicas is absolute, or a percentage of the workload's replicas, rounded up. Upstream interprets
a string in two ways. GetScaledValueFromIntOrPercent, for counting, requires a number followed by
one "%"; GetValueFromIntOrPercent, for costs and validation, removes every "%" and takes the rest as
a percentage.

Sources: calculateWorkloadSpreadSubsetStatus in openkruise/kruise pkg/controller/workloadspread/
workloadspread_controller.go; k8s.io/apimachinery/pkg/util/intstr/intstr.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from policies.kubernetes.integers import parse_integer
from policies.workloadspread.model import (
    NO_PODS,
    SECOND,
    UNLIMITED,
    MaxReplicas,
    SpreadPod,
    Subset,
    SubsetStatus,
    WorkloadSpread,
)
from policies.workloadspread.quirks import NUMERIC_STRINGS, ORDER_OF_DELETIONS, Quirks
from policies.workloadspread.reschedule import WARNING, Event, SyncSideEffects

CREATION_TIMEOUT_NS: Final = 30 * SECOND
DELETION_TIMEOUT_NS: Final = 15 * SECOND


class MaxReplicasError(ValueError):
    """A maxReplicas is neither a number nor a percentage, or it is negative."""


def limit_for_counting(limit: MaxReplicas, replicas: int, quirks: Quirks) -> int | None:
    """Return the maximum number of pods of a subset; None without limit. Raise MaxReplicasError."""
    return None if limit is None else _not_negative(scaled_value(limit, replicas, quirks), limit)


def limit_for_costs(limit: MaxReplicas, replicas: int, quirks: Quirks) -> int | None:
    """Return the desired number of pods of a subset; None without limit. Raise MaxReplicasError."""
    if isinstance(limit, str) and NUMERIC_STRINGS in quirks:
        return _not_negative(percentage_value(limit, replicas), limit)
    return limit_for_counting(limit, replicas, quirks)


def scaled_value(limit: int | str, replicas: int, quirks: Quirks) -> int:
    """Return a maxReplicas as a number, which can be negative. Raise MaxReplicasError."""
    if isinstance(limit, int):
        return limit
    if limit.endswith("%"):
        return _percentage_of(_integer(limit.removesuffix("%"), limit), replicas)
    if NUMERIC_STRINGS in quirks:
        raise MaxReplicasError(f"{limit!r} is not a percentage such as 30%")
    return _integer(limit, limit)


def lenient_value(limit: MaxReplicas, replicas: int, quirks: Quirks, unlimited: int) -> int:
    """Return a maxReplicas as a number: ``unlimited`` if it is absent, 0 if it is invalid."""
    if limit is None:
        return unlimited
    try:
        return scaled_value(limit, replicas, quirks)
    except MaxReplicasError:
        return 0


def percentage_value(limit: int | str, replicas: int) -> int:
    """Return a maxReplicas as a number, any string as a percentage. Raise MaxReplicasError."""
    if isinstance(limit, int):
        return limit
    return _percentage_of(_integer(limit.replace("%", ""), limit), replicas)


def _percentage_of(percentage: int, replicas: int) -> int:
    return -(-percentage * replicas // 100)


def _integer(text: str, limit: str) -> int:
    number = parse_integer(text)
    if number is None:
        raise MaxReplicasError(f"{limit!r} is not a number or a percentage such as 30%")
    return number


def _not_negative(number: int, limit: MaxReplicas) -> int:
    if number < 0:
        raise MaxReplicasError(f"{limit!r} is negative")
    return number


@dataclass(frozen=True, slots=True)
class _InFlight:
    """The remaining pods in flight, and the active pods, in list order."""

    active: tuple[str, ...]
    creating: Mapping[str, int]
    deleting: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SubsetCounter:
    """Counts the pods of subsets; percentages in maxReplicas refer to ``replicas``."""

    spread: WorkloadSpread
    replicas: int
    side_effects: SyncSideEffects
    quirks: Quirks

    def count(
        self, subset: Subset, pods: Iterable[SpreadPod], old: SubsetStatus | None
    ) -> SubsetStatus:
        """Count the ``pods`` of one subset, without conditions. Raise MaxReplicasError.

        ``old`` is the previous status of the subset.
        """
        limit = limit_for_counting(subset.max_replicas, self.replicas, self.quirks)
        in_flight = self._in_flight(tuple(pods), old)
        return SubsetStatus(
            subset.name,
            missing=UNLIMITED if limit is None else _missing(limit, in_flight, self.quirks),
            replicas=len(in_flight.active),
            creating=in_flight.creating,
            deleting=in_flight.deleting,
        )

    def _in_flight(self, pods: tuple[SpreadPod, ...], old: SubsetStatus | None) -> _InFlight:
        observed = {_creation_id(pod) for pod in pods}
        active = tuple(pod.name for pod in pods if pod.active)
        deleting = NO_PODS if old is None else old.deleting
        creating = NO_PODS if old is None else old.creating
        pod = f"Pod {self.spread.namespace}/{{}}"
        return _InFlight(
            active,
            creating=_unexpired(
                {name: at for name, at in creating.items() if name not in observed},
                CREATION_TIMEOUT_NS,
                ("CreatePodFailed", f"{pod} was expected to be created"),
                self.side_effects,
            ),
            deleting=_unexpired(
                {name: deleting[name] for name in active if name in deleting},
                DELETION_TIMEOUT_NS,
                ("DeletePodFailed", f"{pod} was expected to be deleted"),
                self.side_effects,
            ),
        )


def _creation_id(pod: SpreadPod) -> str:
    """Return the id under which a pod's creation was recorded."""
    return pod.injection.uid if pod.injection is not None and pod.injection.uid else pod.name


def _unexpired(
    entries: Mapping[str, int],
    timeout_ns: int,
    failure: tuple[str, str],
    side_effects: SyncSideEffects,
) -> Mapping[str, int]:
    """Return the entries that have not expired; record an event for the others."""
    reason, expected = failure
    unexpired: dict[str, int] = {}
    for name, since in entries.items():
        if since + timeout_ns < side_effects.now_ns:
            side_effects.record_event(
                Event(WARNING, reason, f"{expected.format(name)} but it wasn't")
            )
        else:
            unexpired[name] = since
            side_effects.requeue_at(since + timeout_ns)
    return unexpired


def _missing(limit: int, in_flight: _InFlight, quirks: Quirks) -> int:
    if ORDER_OF_DELETIONS in quirks:
        return _missing_in_list_order(limit, in_flight)
    staying = len(in_flight.active) - len(in_flight.deleting)
    return max(0, min(limit, limit - staying - len(in_flight.creating)))


def _missing_in_list_order(limit: int, in_flight: _InFlight) -> int:
    """Count down and up again in list order, and never below 0."""
    missing = limit
    for name in in_flight.active:
        missing -= missing > 0
        missing += name in in_flight.deleting and missing < limit
    return max(0, missing - len(in_flight.creating))
