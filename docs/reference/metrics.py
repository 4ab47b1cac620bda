"""The page about metrics: those of the extender, of the controllers, and of fakeapi."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from docs.reference.tables import code, table
from extender.config.component_config import ConnectionLimits
from extender.controllers.metrics import ReplicaSetMetrics, WebhookMetrics
from extender.kube.rest.clock import SystemClock
from extender.ledger.writer import WriteCounts
from extender.observability.metrics import Metrics
from extender.secure_serving.connection_limits import ConnectionRegistry
from extender.server.python_gc import CollectionPauses
from extender.server.serving_metrics import register_ledger_metrics, register_serving_metrics
from extender.server.shadow_metrics import ShadowMetrics
from fakeapi.apiserver.wire.http_messages import Request, Response
from fakeapi.simulation.world import create_api

PAGE: Final = "reference/metrics.md"

_HEAD: Final = ("metric", "type", "labels", "meaning")
_SUFFIXES: Final = {"counter": "_total", "info": "_info"}
"""What the text format appends to the name of a metric of some types."""
_TYPES: Final = {"info": "gauge"}
"""The types that the text format does not have, and their replacements."""
_PRIORITY_LEVELS: Final = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"
_PRIORITY_LEVEL: Final = b"""{
  "metadata": {"name": "level"},
  "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
}"""
_TEXT: Final = """# Metrics

All of them have Prometheus's text format. [Operations](../operations.md#metrics) explains those of
the extender.

## Extender

`reprieve serve` has them at `/metrics`.

{extender}
## Controllers

`reprieve controllers --metrics-port PORT` has them at `/metrics`.

{controllers}
## fakeapi

`reprieve fakeapi` has them at `/metrics`. Its [kubelets](../kubelet.md) have metrics of their own.

{fakeapi}
"""


class MetricRow(NamedTuple):
    """A metric by the name that a query uses."""

    name: str
    type: str
    labels: tuple[str, ...]
    meaning: str


@dataclass(frozen=True, slots=True)
class _NoCertificate:
    """The state of a certificate, whose metrics are listed and have no values."""

    error: str = ""
    reloads: int = 0
    failures: int = 0
    not_after: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class _NoLedger:
    """The state of a ledger, whose metrics are listed and have no values."""

    counts: WriteCounts = field(default_factory=WriteCounts)
    waiting: int = 0


def page() -> str:
    """Return the page."""
    return _TEXT.format(
        extender=_table(extender_metrics()),
        controllers=_table(controller_metrics()),
        fakeapi=_table(fakeapi_metrics()),
    )


def extender_metrics() -> list[MetricRow]:
    """Return the metrics of ``reprieve serve``."""
    registry = Metrics().registry
    connections = ConnectionRegistry(ConnectionLimits(), SystemClock())
    register_serving_metrics(registry, connections, _NoCertificate())
    register_ledger_metrics(registry, _NoLedger())
    ShadowMetrics(registry)
    registry.register(CollectionPauses(SystemClock().monotonic))
    return list(_registered(registry))


def controller_metrics() -> list[MetricRow]:
    """Return the metrics of ``reprieve controllers``."""
    registry = CollectorRegistry()
    ReplicaSetMetrics(registry)
    WebhookMetrics(registry)
    return list(_registered(registry))


def fakeapi_metrics() -> list[MetricRow]:
    """Return the metrics of a fakeapi that has a priority level, whose labels are known then."""
    api = create_api(SystemClock(), Random(0))  # noqa: S311 - names of objects
    api.handle(Request("POST", _PRIORITY_LEVELS, body=_PRIORITY_LEVEL))
    answer = api.handle(Request("GET", "/metrics"))
    assert isinstance(answer, Response)
    return [_row(family, ()) for family in text_string_to_metric_families(answer.body.decode())]


def _registered(registry: CollectorRegistry) -> Iterator[MetricRow]:
    """Yield the metrics of a registry; a metric with labels may have no samples yet."""
    for collector in registry._collector_to_names:  # noqa: SLF001 - it has no public name
        for family in collector.collect():
            yield _row(family, getattr(collector, "_labelnames", ()))


def _row(family: Metric, labels: tuple[str, ...]) -> MetricRow:
    sampled = (label for sample in family.samples for label in sample.labels)
    names = labels or tuple(dict.fromkeys(label for label in sampled if label != "le"))
    name = f"{family.name}{_SUFFIXES.get(family.type, '')}"
    return MetricRow(
        name, _TYPES.get(family.type, family.type), names, family.documentation.rstrip(".")
    )


def _table(rows: Iterable[MetricRow]) -> str:
    listed = (
        (code(row.name), row.type, ", ".join(map(code, row.labels)), row.meaning)
        for row in sorted(rows)
    )
    return table(_HEAD, listed)
