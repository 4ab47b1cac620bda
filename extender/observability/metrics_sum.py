"""The metrics of several processes as those of one.

Counters and histograms are summed, and so are the gauges of what each process has for itself. Other
gauges, such as the number of known objects, are those of the first process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

_SUMMED: Final = ("counter", "histogram")
_SUMMED_GAUGES: Final = (
    "reprieve_connections",
    "reprieve_queue_length",
    "reprieve_requests_in_flight_bytes",
    "process_open_fds",
    "process_resident_memory_bytes",
    "process_virtual_memory_bytes",
)

Series = tuple[str, tuple[tuple[str, str], ...]]


def sum_expositions(first: bytes, others: Iterable[bytes]) -> bytes:
    """Return the sum of metrics in Prometheus's text format."""
    registry = CollectorRegistry()
    registry.register(_Sum(tuple(map(_parse, (first, *others)))))
    return generate_latest(registry)


def _parse(exposition: bytes) -> dict[str, Metric]:
    families = text_string_to_metric_families(exposition.decode())
    return {family.name: family for family in families}


@dataclass(frozen=True, eq=False)
class _Sum(Collector):
    parts: tuple[dict[str, Metric], ...]

    def collect(self) -> Iterator[Metric]:
        first, *others = self.parts
        for name in {name: None for part in self.parts for name in part}:
            found = [part[name] for part in (first, *others) if name in part]
            family = found[0]
            if family.type in _SUMMED or name in _SUMMED_GAUGES:
                family = _sum(found)
            yield family


def _sum(families: Iterable[Metric]) -> Metric:
    family, *_ = families = list(families)
    values: dict[Series, float] = {}
    for each in families:
        for sample in each.samples:
            series = sample.name, tuple(sorted(sample.labels.items()))
            values[series] = values.get(series, 0.0) + sample.value
    total = Metric(family.name, family.documentation, family.type)
    for (name, labels), value in values.items():
        total.add_sample(name, dict(labels), value)
    return total
