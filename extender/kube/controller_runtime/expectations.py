"""Expectations: creations and deletions that a controller requested and has not yet observed.

A controller's cache lags behind its writes. After it has created five pods, it must not count the
pods in its cache and create five more. So it records what it expects to observe, and does not sync
the object until the expectations are fulfilled:

    expect_creations("default/web", 5)      the counters are (5, 0)
    creation_observed("default/web")        (4, 0); a create that failed counts as observed, too
    satisfied("default/web")                not yet: a counter is above zero

- Setting expectations replaces the earlier counters and their time. An observation lowers a counter
  by one, below zero if need be, and has no effect on a key without expectations.
- Expectations expire after five minutes (a watch may have missed an event); the counters stay.
- Deletions are tracked by name, so that a pod that is first marked for deletion and then removed
  counts once, and the deletion of another pod does not count.

Source: kubernetes/pkg/controller/controller_utils.go (ControllerExpectations,
UIDTrackingControllerExpectations).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from extender.kube.rest.clock import Clock
from extender.kube.rest.rate_limited_log import quiet_log

EXPIRY_SECONDS: Final = 300.0


@dataclass(slots=True)
class _Expected:
    """The expected counts, and when they were set, in seconds of the clock."""

    creations: int
    deletions: int
    since: float


class ControllerExpectations:
    """Counters of creations and deletions, for each key; see the module's rules."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._expected: dict[str, _Expected] = {}

    def expect(self, key: str, creations: int, deletions: int) -> None:
        """Set the expectations of a key, replacing earlier ones."""
        self._expected[key] = _Expected(creations, deletions, self._clock.monotonic())

    def creation_observed(self, key: str) -> None:
        """Lower the expected creations by one."""
        if expected := self._expected.get(key):
            expected.creations -= 1

    def deletion_observed(self, key: str) -> None:
        """Lower the expected deletions by one."""
        if expected := self._expected.get(key):
            expected.deletions -= 1

    def satisfied(self, key: str) -> bool:
        """Return whether a key's expectations are fulfilled, expired, or were never set."""
        expected = self._expected.get(key)
        if expected is None or (expected.creations <= 0 and expected.deletions <= 0):
            return True
        return self._clock.monotonic() - expected.since > EXPIRY_SECONDS

    def counts(self, key: str) -> tuple[int, int] | None:
        """Return the expected creations and deletions; None if none were set."""
        expected = self._expected.get(key)
        return None if expected is None else (expected.creations, expected.deletions)

    def forget(self, key: str) -> None:
        """Delete the expectations of a key."""
        self._expected.pop(key, None)


class UIDTrackingControllerExpectations:
    """Expectations whose deletions are tracked by name."""

    def __init__(self, clock: Clock) -> None:
        self._counters = ControllerExpectations(clock)
        self._deleted: dict[str, set[str]] = {}
        self._log = quiet_log()

    def expect_creations(self, key: str, count: int) -> None:
        """Expect ``count`` creations, and no deletion."""
        self._counters.expect(key, count, 0)

    def expect_deletions(self, key: str, names: Iterable[str]) -> None:
        """Expect the deletion of the objects with these names, and no creation."""
        if forgotten := self._deleted.get(key):
            self._log.warning("deletions_no_longer_expected", key=key, names=sorted(forgotten))
        expected = self._deleted[key] = set(names)
        self._counters.expect(key, 0, len(expected))

    def creation_observed(self, key: str) -> None:
        """Lower the expected creations by one."""
        self._counters.creation_observed(key)

    def deletion_observed(self, key: str, name: str) -> None:
        """Lower the expected deletions by one, if the deletion of this name was expected."""
        expected = self._deleted.get(key)
        if expected is not None and name in expected:
            expected.remove(name)
            self._counters.deletion_observed(key)

    def satisfied(self, key: str) -> bool:
        """Return whether a key's expectations are fulfilled, expired, or were never set."""
        return self._counters.satisfied(key)

    def counts(self, key: str) -> tuple[int, int] | None:
        """Return the expected creations and deletions; None if none were set."""
        return self._counters.counts(key)

    def deletions(self, key: str) -> frozenset[str] | None:
        """Return the names whose deletion is expected; None if none were ever set."""
        expected = self._deleted.get(key)
        return None if expected is None else frozenset(expected)

    def forget(self, key: str) -> None:
        """Delete the expectations of a key."""
        self._counters.forget(key)
        self._deleted.pop(key, None)
