"""Metrics of the server's connections and certificate, and a readiness warning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from extender.front.connections import ConnectionRegistry
from extender.front.rotation import CertificateReloader
from extender.service import Service


def register_serving_metrics(
    service: Service, connections: ConnectionRegistry, reloader: CertificateReloader | None
) -> None:
    """Register the metrics of connections and, with TLS, of the certificate and its warning."""
    service.metrics.registry.register(_ConnectionMetrics(connections))
    if reloader is not None:
        service.metrics.registry.register(_CertificateMetrics(reloader))

        def alarm() -> str:
            said = reloader.warning()
            return said and f"certificate {said}"

        service.readiness.warnings.append(alarm)


@dataclass(frozen=True)
class _ConnectionMetrics(Collector):
    connections: ConnectionRegistry

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("reprieve_connections", "Connections", value=len(self.connections))
        cut = CounterMetricFamily(
            "reprieve_connections_cut", "Connections cut off for taking too long", labels=("phase",)
        )
        for phase, times in self.connections.aborted.items():
            cut.add_metric((phase.value,), times)
        yield cut
        yield CounterMetricFamily(
            "reprieve_connections_full",
            "Connections that met a full house",
            value=self.connections.at_limit,
        )


@dataclass(frozen=True)
class _CertificateMetrics(Collector):
    reloader: CertificateReloader

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            "reprieve_certificate_expires_seconds",
            "When the certificate in use ends, in seconds since the epoch",
            value=self.reloader.not_after,
        )
        yield GaugeMetricFamily(
            "reprieve_certificate_trouble",
            "Whether the certificate's files are of no use as they are: 1 or 0",
            value=bool(self.reloader.error),
        )
        yield CounterMetricFamily(
            "reprieve_certificate_reloads", "Certificates put to use", value=self.reloader.reloads
        )
        yield CounterMetricFamily(
            "reprieve_certificate_failures",
            "Certificates that could not be put to use",
            value=self.reloader.failures,
        )
