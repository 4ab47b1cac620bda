"""What a controller has set in motion and has yet to see happen.

A controller's copy of the world lags behind what it does. After asking for five pods it must not
count the pods that its copy shows and ask for five more; so it notes what it expects to see, and
leaves the object alone until it has seen it:

    expect_creations("default/web", 5)      the counters are (5, 0)
    creation_observed("default/web")        (4, 0); a create that failed counts as observed, too
    satisfied("default/web")                not yet: a counter is above zero

- Setting expectations replaces what was there, and the time; observing lowers a counter by one,
  below zero if need be, and is nothing where nothing was set.
- What has not been seen for more than five minutes is not waited for any longer (a watch may have
  missed it); the counters stay.
- Deletions are known by name, so that a pod that is seen to be told to go and then to be gone
  counts once, and another pod's end not at all.

Source: kubernetes/pkg/controller/controller_utils.go (ControllerExpectations,
UIDTrackingControllerExpectations).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from extender.kube.clock import Clock
from extender.kube.logs import quiet_log

EXPIRY_SECONDS: Final = 300.0


@dataclass(slots=True)
class _Expected:
    """How much is expected, and since when, in seconds of the clock."""

    creations: int
    deletions: int
    since: float


class Expectations:
    """Counters of creations and deletions, for each key; see the module's rules."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._expected: dict[str, _Expected] = {}

    def expect(self, key: str, creations: int, deletions: int) -> None:
        """Expect so much from now on, and nothing else."""
        self._expected[key] = _Expected(creations, deletions, self._clock.monotonic())

    def creation_observed(self, key: str) -> None:
        """Expect one creation less."""
        if expected := self._expected.get(key):
            expected.creations -= 1

    def deletion_observed(self, key: str) -> None:
        """Expect one deletion less."""
        if expected := self._expected.get(key):
            expected.deletions -= 1

    def satisfied(self, key: str) -> bool:
        """Return whether nothing is waited for: all was seen, it is too long ago, or none was set."""
        expected = self._expected.get(key)
        if expected is None or (expected.creations <= 0 and expected.deletions <= 0):
            return True
        return self._clock.monotonic() - expected.since > EXPIRY_SECONDS

    def counts(self, key: str) -> tuple[int, int] | None:
        """Return how many creations and deletions are expected; None if none were set."""
        expected = self._expected.get(key)
        return None if expected is None else (expected.creations, expected.deletions)

    def forget(self, key: str) -> None:
        """Drop what is noted for a key."""
        self._expected.pop(key, None)


class TrackedExpectations:
    """Expectations whose deletions are known by their names."""

    def __init__(self, clock: Clock) -> None:
        self._counters = Expectations(clock)
        self._deleted: dict[str, set[str]] = {}
        self._log = quiet_log()

    def expect_creations(self, key: str, count: int) -> None:
        """Expect ``count`` creations, and no deletion."""
        self._counters.expect(key, count, 0)

    def expect_deletions(self, key: str, names: Iterable[str]) -> None:
        """Expect that what bears these names goes, and no creation."""
        if forgotten := self._deleted.get(key):
            self._log.warning("deletions_no_longer_expected", key=key, names=sorted(forgotten))
        expected = self._deleted[key] = set(names)
        self._counters.expect(key, 0, len(expected))

    def creation_observed(self, key: str) -> None:
        """Expect one creation less."""
        self._counters.creation_observed(key)

    def deletion_observed(self, key: str, name: str) -> None:
        """Expect one deletion less, if it was this one that was expected."""
        expected = self._deleted.get(key)
        if expected is not None and name in expected:
            expected.remove(name)
            self._counters.deletion_observed(key)

    def satisfied(self, key: str) -> bool:
        """Return whether nothing is waited for: all was seen, it is too long ago, or none was set."""
        return self._counters.satisfied(key)

    def counts(self, key: str) -> tuple[int, int] | None:
        """Return how many creations and deletions are expected; None if none were set."""
        return self._counters.counts(key)

    def deletions(self, key: str) -> frozenset[str] | None:
        """Return the names that are expected to go; None if none were ever set."""
        expected = self._deleted.get(key)
        return None if expected is None else frozenset(expected)

    def forget(self, key: str) -> None:
        """Drop what is noted for a key."""
        self._counters.forget(key)
        self._deleted.pop(key, None)
