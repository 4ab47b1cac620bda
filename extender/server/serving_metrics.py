"""The metrics of a serving process: its build, its connections, and its certificate."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Protocol

from prometheus_client import CollectorRegistry, Info, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from extender.secure_serving.connection_limits import ConnectionRegistry

if TYPE_CHECKING:
    from extender.ledger.writer import WriteCounts  # loaded only with a ledger


class CertificateState(Protocol):
    """The certificate in use, and how often its files were loaded."""

    @property
    def reloads(self) -> int:
        """How often new files were loaded."""
        ...

    @property
    def failures(self) -> int:
        """How often the files could not be loaded."""
        ...

    @property
    def error(self) -> str:
        """Why the files cannot be loaded now, or an empty text."""
        ...

    @property
    def not_after(self) -> float:
        """The expiry of the certificate, in seconds since the epoch."""
        ...


class LedgerState(Protocol):
    """How many decisions the ledger was given, and what became of them."""

    @property
    def counts(self) -> WriteCounts:
        """The decisions that were written or dropped, and the batches that failed."""
        ...

    @property
    def waiting(self) -> int:
        """The number of decisions that are not written yet."""
        ...


def register_serving_metrics(
    registry: CollectorRegistry, connections: ConnectionRegistry, state: CertificateState | None
) -> None:
    """Register the metrics of the process, connections and, with TLS, of the certificate."""
    ProcessCollector(registry=registry)
    about = {"version": version("reprieve"), "python": platform.python_version()}
    Info("reprieve_build", "Version of Reprieve and of Python", registry=registry).info(about)
    registry.register(_ConnectionMetrics(connections))
    if state is not None:
        registry.register(_CertificateMetrics(state))


def register_ledger_metrics(registry: CollectorRegistry, ledger: LedgerState) -> None:
    """Register the metrics of a ledger."""
    registry.register(_LedgerMetrics(ledger))


@dataclass(frozen=True)
class _ConnectionMetrics(Collector):
    connections: ConnectionRegistry

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("reprieve_connections", "Connections", value=len(self.connections))
        cut = CounterMetricFamily(
            "reprieve_connections_cut",
            "Connections closed because they took too long",
            labels=("phase",),
        )
        for phase, times in self.connections.aborted.items():
            cut.add_metric((phase.value,), times)
        yield cut
        yield CounterMetricFamily(
            "reprieve_connections_full",
            "Connections rejected at the connection limit",
            value=self.connections.at_limit,
        )
        yield GaugeMetricFamily(
            "reprieve_requests_in_flight_bytes",
            "Bytes of unanswered requests",
            value=self.connections.in_flight,
        )
        yield CounterMetricFamily(
            "reprieve_requests_refused",
            "Requests refused because too many bytes of requests were in flight",
            value=self.connections.refused,
        )


@dataclass(frozen=True)
class _CertificateMetrics(Collector):
    state: CertificateState

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            "reprieve_certificate_expires_seconds",
            "Expiry of the certificate in use, in seconds since the epoch",
            value=self.state.not_after,
        )
        yield GaugeMetricFamily(
            "reprieve_certificate_trouble",
            "Whether the certificate's files cannot be loaded: 1 or 0",
            value=bool(self.state.error),
        )
        yield CounterMetricFamily(
            "reprieve_certificate_reloads", "Certificates loaded", value=self.state.reloads
        )
        yield CounterMetricFamily(
            "reprieve_certificate_failures",
            "Certificates that could not be loaded",
            value=self.state.failures,
        )


@dataclass(frozen=True)
class _LedgerMetrics(Collector):
    ledger: LedgerState

    def collect(self) -> Iterator[Metric]:
        counts = self.ledger.counts
        for name, meaning, value in (
            ("entries", "Decisions written to the ledger", counts.written),
            ("dropped", "Decisions that were not written to the ledger", counts.dropped),
            ("failures", "Batches of decisions that could not be written", counts.failures),
        ):
            yield CounterMetricFamily(f"reprieve_ledger_{name}", meaning, value=value)
        waiting = "Decisions that are to be written to the ledger"
        yield GaugeMetricFamily("reprieve_ledger_waiting", waiting, value=self.ledger.waiting)
