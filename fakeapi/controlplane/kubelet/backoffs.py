"""The backoff of container restarts and image pulls.

The first failure has no delay; then 10 s, 20 s, … at most 5 min, counted from the failure. The
backoff is reset when a container has not failed for ten minutes.

    runs     5 s      5 s      5 s      11 min    5 s
    waits        0 s      10 s     20 s       0 s      10 s

Sources: doBackOff in pkg/kubelet/kuberuntime/kuberuntime_manager.go,
k8s.io/client-go/util/flowcontrol/backoff.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fakeapi.controlplane.kubelet.durations import SECOND

INITIAL_BACKOFF: Final = 10 * SECOND
MAX_BACKOFF: Final = 300 * SECOND
BACKOFF_RESET_AFTER: Final = 2 * MAX_BACKOFF


@dataclass(frozen=True, slots=True)
class ContainerBackoff:
    """The delay after the next failure, set at ``since``; 0 before the first failure."""

    delay: int = 0
    since: int = 0

    def retry_at(self, failed: int) -> int:
        """Return the time of the retry after a failure."""
        return failed if self._forgotten(failed) else failed + self.delay

    def next_backoff(self, failed: int, now: int) -> ContainerBackoff:
        """Return the backoff after a retry at ``now``."""
        if self._forgotten(failed):
            return ContainerBackoff(INITIAL_BACKOFF, now)
        return ContainerBackoff(min(2 * self.delay, MAX_BACKOFF), now)

    def _forgotten(self, failed: int) -> bool:
        return not self.delay or failed - self.since > BACKOFF_RESET_AFTER
