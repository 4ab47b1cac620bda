"""Prometheus metrics of the ReplicaSet controller and of the WorkloadSpread webhooks.

Those of the ReplicaSet controller have upstream's names; source:
kubernetes/pkg/controller/replicaset/metrics/metrics.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram

from extender.kube.informers.consistency_store import StaleCache

_AGE_RATIO_BUCKETS = tuple(0.25 * 2**power for power in range(6))
_LATENCY_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class ReplicaSetMetrics:
    """The metrics of one running ReplicaSet controller."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = CollectorRegistry() if registry is None else registry
        self._age_ratio = Histogram(
            "replicaset_controller_sorting_deletion_age_ratio",
            "Ratio of the ages of each ready pod chosen for deletion and the youngest ready pod",
            buckets=_AGE_RATIO_BUCKETS,
            registry=self.registry,
        )
        self._stale = Counter(
            "replicaset_controller_stale_sync_skips_total",
            "Number of syncs skipped because the cache did not contain an earlier write yet",
            ("group", "resource"),
            registry=self.registry,
        )

    def observe_deletion_ages(self, ratios: Iterable[int]) -> None:
        """Observe the age ratios of pods that were chosen for deletion."""
        for ratio in ratios:
            self._age_ratio.observe(ratio)

    def count_stale_sync(self, stale: StaleCache) -> None:
        """Count a sync that was skipped because a cache is stale."""
        self._stale.labels(stale.resource.group, stale.resource.plural).inc()


class WebhookMetrics:
    """Counters and histograms, registered in ``registry`` if given."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        registry = registry or CollectorRegistry()
        self.seconds = Histogram(
            "workloadspread_webhook_seconds",
            "Latency of admission reviews in seconds.",
            ["path"],
            buckets=_LATENCY_BUCKETS,
            registry=registry,
        )
        self.refused = Counter(
            "workloadspread_webhook_refusals",
            "Number of rejected admission reviews.",
            ["path"],
            registry=registry,
        )
        self.conflicts = Counter(
            "workloadspread_webhook_conflicts",
            "Number of status updates retried because of a conflict.",
            registry=registry,
        )
        self.injected = Counter(
            "workloadspread_webhook_pods_injected",
            "Number of created pods with an injected subset.",
            registry=registry,
        )
