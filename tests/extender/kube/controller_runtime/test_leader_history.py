"""Elections under faults: never two leaders at once, and one leader when the faults are over.

Candidates are stopped, started and held in mid-step, their wall clocks jump, and their requests are
refused, lost before or after they are carried out, and carried out long after anybody waits for
them. Between any two moments everybody is looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from fakeapi import VirtualCluster
from fakeapi.testing.faults import Fault, fault
from tests.extender.kube.lease_candidates import Candidate, Race
from tests.sampling import examples

T = TypeVar("T")

NAMES = ("a", "b", "c")
LONGEST_DAWDLE = 20

_names = st.sampled_from(NAMES)
_seconds = st.sampled_from([1, 3, 6, 12, LONGEST_DAWDLE])


def _late(seconds: int, when: str) -> Fault:
    return fault("latency", seconds=seconds, when=when)


_troubles = st.one_of(
    st.sampled_from([fault(503), fault(429), fault("drop"), fault("drop", when="after")]),
    st.builds(_late, _seconds, st.sampled_from(["before", "after"])),
)
_limits = st.sampled_from(
    [
        lambda each: each,
        lambda each: each.once(),
        lambda each: each.times(4),
        lambda each: each.every(2),
        lambda each: each.probability(0.5),
    ]
)


class ContestedLease(RuleBasedStateMachine):
    """Three candidates and all faults."""

    def __init__(self) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self.cluster = VirtualCluster(run="none")
        self.do(self.cluster.__aenter__())
        self.race = Race(self.cluster, [Candidate(self.cluster, name) for name in NAMES])
        self.do(self._start_all())

    def do(self, act: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end."""
        return self._runner.run(act)

    @rule(seconds=st.sampled_from([0.5, 2, 5, 11, 16]))
    def time_passes(self, seconds: float) -> None:
        self.do(self.race.passes(seconds))

    @rule(data=st.data())
    def trouble_comes(self, data: st.DataObject) -> None:
        who = data.draw(st.lists(_names, min_size=1, max_size=3, unique=True))
        each = data.draw(_limits)(data.draw(_troubles)).by(tuple(who))
        self.cluster.faults.plan(each, seed=data.draw(st.integers(0, 3)))

    @rule()
    def trouble_ends(self) -> None:
        self.cluster.faults.end()

    @rule(name=_names)
    def one_stands_still(self, name: str) -> None:
        self.race[name].running.clear()

    @rule(name=_names)
    def one_goes_on(self, name: str) -> None:
        self.race[name].running.set()

    @rule(name=_names, seconds=st.sampled_from([-3600, -1, 1, 20, 86400]))
    def a_wall_clock_jumps(self, name: str, seconds: int) -> None:
        self.race[name].clock.jumped_ns += seconds * 10**9

    @rule(name=_names)
    def one_is_told_to_stop(self, name: str) -> None:
        self.race[name].order_to_stop()

    @rule()
    def those_that_stopped_are_started(self) -> None:
        self.do(self._start_all())

    async def _start_all(self) -> None:
        for candidate in self.race.candidates:
            if not candidate.up:
                candidate.start()

    async def _come_to_rest(self) -> None:
        self.cluster.faults.end()
        for candidate in self.race.candidates:
            candidate.running.set()
        await self.race.passes(LONGEST_DAWDLE)
        await self._start_all()
        leader = await self.race.until_somebody_leads(25)
        await self.race.passes(20)
        assert self.race.leaders == [leader]
        assert [each.name for each in self.race.candidates if each.working] == [leader]

    def teardown(self) -> None:
        try:
            self.do(self._come_to_rest())
        finally:
            self.do(self.race.end())
            self.do(self.cluster.__aexit__(None, None, None))
            self._runner.close()


TestContestedLease = ContestedLease.TestCase
TestContestedLease.settings = settings(
    max_examples=examples(40), stateful_step_count=20, deadline=None
)
