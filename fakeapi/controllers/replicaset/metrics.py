"""What Prometheus may ask of the controller, under upstream's names.

Source: kubernetes/pkg/controller/replicaset/metrics/metrics.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram

from extender.kube.consistency import Stale

_BUCKETS = tuple(0.25 * 2**power for power in range(6))


class Metrics:
    """The figures of one running controller."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = CollectorRegistry() if registry is None else registry
        self._age_ratio = Histogram(
            "replicaset_controller_sorting_deletion_age_ratio",
            "Age of each ready pod chosen for deletion, by that of the youngest ready pod",
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._stale = Counter(
            "replicaset_controller_stale_sync_skips_total",
            "Looks put off because a copy did not show yet what had been written",
            ("group", "resource"),
            registry=self.registry,
        )

    def chosen(self, ratios: Iterable[int]) -> None:
        """Count the ages of pods that were chosen."""
        for ratio in ratios:
            self._age_ratio.observe(ratio)

    def skipped(self, stale: Stale) -> None:
        """Count a look that was put off."""
        self._stale.labels(stale.resource.group, stale.resource.plural).inc()
