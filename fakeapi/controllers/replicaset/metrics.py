"""Prometheus metrics of the ReplicaSet controller, under upstream's names.

Source: kubernetes/pkg/controller/replicaset/metrics/metrics.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram

from extender.kube.consistency import StaleCache

_AGE_RATIO_BUCKETS = tuple(0.25 * 2**power for power in range(6))


class ReplicaSetMetrics:
    """The metrics of one running ReplicaSet controller."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = CollectorRegistry() if registry is None else registry
        self._age_ratio = Histogram(
            "replicaset_controller_sorting_deletion_age_ratio",
            "Age of each ready pod chosen for deletion, by that of the youngest ready pod",
            buckets=_AGE_RATIO_BUCKETS,
            registry=self.registry,
        )
        self._stale = Counter(
            "replicaset_controller_stale_sync_skips_total",
            "Looks put off because a copy did not show yet what had been written",
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
