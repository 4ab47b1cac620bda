"""The measures of a report: numbers of one simulation, by name.

A measure has no value (None) where its denominator is 0, and the queueing delay has none without a
pod that was bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from msgspec import Struct

from fakeapi.backtest.statistics import Amounts, GroupStatistics, RunStatistics, merge_groups

Unit = Literal["count", "hours", "seconds", "share"]
Better = Literal["higher", "lower", "neither"]

_HOUR: Final = 3600
_NATIVE: Final = frozenset({"cpu", "ephemeral-storage", "memory", "pods"})
_TITLES: Final = {
    "cascades": "cascades",
    "disruptions": "disruptions",
    "finishedPods": "finished pods",
    "fragmentation": "fragmentation of {}",
    "lostShare": "lost share of {} work",
    "preemptions": "preemptions",
    "queueingP50": "queueing delay p50",
    "queueingP95": "queueing delay p95",
    "refusedAttempts": "refused attempts",
    "repeatedDisruptions": "repeated disruptions",
    "utilization": "utilization of {}",
    "violations": "PDB violations",
}


class Measure(Struct, frozen=True, rename="camel"):
    """A measure: its name, unit, and which direction is better; ``resource`` if it is of one.

    Hours are those of one core of ``cpu``, and of one device of extended resources. Neither
    direction is better for utilization: work that was lost and is done again raises it, too.
    """

    name: str
    unit: Unit
    better: Better
    resource: str = ""

    @property
    def title(self) -> str:
        """The name that people read, such as ``GPU-hours lost (nvidia.com/gpu)``."""
        if self.name == "lostHours":
            return f"{hours_unit(self.resource)} lost{device_suffix(self.resource)}"
        return _TITLES[self.name].format(self.resource)


Values = dict[Measure, float | None]


def disruption_values(group: GroupStatistics, resources: Iterable[str]) -> Values:
    """Return how often a group of pods was disrupted, and the lost work of cpu and devices."""
    values: Values = {
        Measure("disruptions", "count", "lower"): group.disruptions,
        Measure("repeatedDisruptions", "count", "lower"): group.repeated,
    }
    for each in _worked(resources):
        values[Measure("lostHours", "hours", "lower", each)] = hours(group.lost, each)
    return values


def group_values(group: GroupStatistics, resources: Sequence[str]) -> Values:
    """Return all measures of a group of pods."""
    values = disruption_values(group, resources)
    for each in _worked(resources):
        share = _ratio(group.lost.get(each, 0), group.done.get(each, 0))
        values[Measure("lostShare", "share", "lower", each)] = share
    values[Measure("queueingP50", "seconds", "lower")] = group.queueing.quantile(0.5)
    values[Measure("queueingP95", "seconds", "lower")] = group.queueing.quantile(0.95)
    values[Measure("finishedPods", "count", "higher")] = group.finished_pods
    return values


def run_values(run: RunStatistics, resources: Sequence[str]) -> Values:
    """Return the measures that a simulation has as a whole."""
    values: Values = {
        Measure("preemptions", "count", "lower"): run.preemptions,
        Measure("cascades", "count", "lower"): run.cascades,
        Measure("violations", "count", "lower"): run.violations,
        Measure("refusedAttempts", "count", "lower"): run.refused,
    }
    for each in resources:
        share = _ratio(run.allocated.get(each, 0), run.capacity.get(each, 0))
        values[Measure("utilization", "share", "neither", each)] = share
    for each in resources:
        free = run.capacity.get(each, 0) - run.allocated.get(each, 0)
        share = _ratio(run.fragmented.get(each, 0), free)
        values[Measure("fragmentation", "share", "lower", each)] = share
    return values


def simulation_values(run: RunStatistics, resources: Sequence[str]) -> Values:
    """Return all measures of a simulation: those of all of its pods, and those as a whole."""
    return group_values(merge_groups(run.groups.values()), resources) | run_values(run, resources)


def _worked(resources: Iterable[str]) -> list[str]:
    return [each for each in resources if each == "cpu" or is_device(each)]


def is_device(resource: str) -> bool:
    """Return whether a resource counts devices, as all but Kubernetes' own resources do."""
    return resource not in _NATIVE and not resource.startswith("hugepages-")


def hours(amounts: Amounts, resource: str) -> float:
    """Return an amount of work, in resource-seconds, as hours of one core or device."""
    return amounts.get(resource, 0) / (_units(resource) * _HOUR)


def device_hours(amounts: Amounts) -> float:
    """Return the work of all devices in hours."""
    return sum(hours(amounts, each) for each in sorted(amounts) if is_device(each))


def hours_unit(resource: str) -> str:
    """Return the unit of hours of a resource: ``CPU-hours``, ``GPU-hours``, ``device-hours``."""
    if resource == "cpu":
        return "CPU-hours"
    return "GPU-hours" if _is_gpu(resource) else "device-hours"


def device_suffix(resource: str) -> str:
    """Return the name of a device in parentheses; "" for ``cpu``."""
    return "" if resource == "cpu" else f" ({resource})"


def _is_gpu(resource: str) -> bool:
    return resource.rpartition("/")[2] in ("gpu", "gpu-milli")


def _units(resource: str) -> int:
    return 1000 if resource == "cpu" or resource.endswith("gpu-milli") else 1


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole > 0 else None


def format_number(value: float) -> str:
    """Return a number with three significant digits, and all digits of larger ones."""
    return f"{value:,.0f}" if abs(value) >= 99.95 or value == int(value) else f"{value:.3g}"
