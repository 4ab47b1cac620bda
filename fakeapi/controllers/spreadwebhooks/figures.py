"""Prometheus metrics of the WorkloadSpread webhooks."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

_LATENCY_BUCKETS = (
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
)


class WebhookMetrics:
    """Counters and histograms, registered in ``registry`` if given."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        kept = registry or CollectorRegistry()
        self.seconds = Histogram(
            "workloadspread_webhook_seconds",
            "Seconds until a review was answered.",
            ["path"],
            buckets=_LATENCY_BUCKETS,
            registry=kept,
        )
        self.refused = Counter(
            "workloadspread_webhook_refusals",
            "Reviews answered with no.",
            ["path"],
            registry=kept,
        )
        self.conflicts = Counter(
            "workloadspread_webhook_conflicts",
            "Statuses that had to be decided again, since somebody else wrote in between.",
            registry=kept,
        )
        self.injected = Counter(
            "workloadspread_webhook_pods_injected",
            "New pods that were put into a subset.",
            registry=kept,
        )
