"""Metrics of the server's connections and certificate, and a readiness warning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from extender.front.connections import Visits
from extender.front.rotation import Rotation
from extender.service import Service


def watch_front(service: Service, visits: Visits, rotation: Rotation | None) -> None:
    """Register the metrics of connections and, with TLS, of the certificate and its warning."""
    service.metrics.registry.register(_Connections(visits))
    if rotation is not None:
        service.metrics.registry.register(_Certificate(rotation))

        def alarm() -> str:
            said = rotation.alarm()
            return said and f"certificate {said}"

        service.readiness.alarms.append(alarm)


@dataclass(frozen=True)
class _Connections(Collector):
    visits: Visits

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("reprieve_connections", "Connections", value=len(self.visits))
        cut = CounterMetricFamily(
            "reprieve_connections_cut", "Connections cut off for taking too long", labels=("phase",)
        )
        for phase, times in self.visits.cut.items():
            cut.add_metric((phase.value,), times)
        yield cut
        yield CounterMetricFamily(
            "reprieve_connections_full", "Connections that met a full house", value=self.visits.full
        )


@dataclass(frozen=True)
class _Certificate(Collector):
    rotation: Rotation

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            "reprieve_certificate_expires_seconds",
            "When the certificate in use ends, in seconds since the epoch",
            value=self.rotation.ends,
        )
        yield GaugeMetricFamily(
            "reprieve_certificate_trouble",
            "Whether the certificate's files are of no use as they are: 1 or 0",
            value=bool(self.rotation.trouble),
        )
        yield CounterMetricFamily(
            "reprieve_certificate_reloads", "Certificates put to use", value=self.rotation.reloads
        )
        yield CounterMetricFamily(
            "reprieve_certificate_failures",
            "Certificates that could not be put to use",
            value=self.rotation.failures,
        )
