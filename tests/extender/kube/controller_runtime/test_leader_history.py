"""Elections under faults: never two leaders at once, and one leader when the faults are over.

Candidates are stopped, started and paused at any time, their wall clocks jump, and their requests
are refused, lost before or after they are carried out, and carried out long after their caller has
given up. All candidates are checked after each step.
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
from tests.extender.kube.lease_candidates import Candidate, Election
from tests.properties.sampling import examples

T = TypeVar("T")

NAMES = ("a", "b", "c")
MAX_LATENCY = 20

_names = st.sampled_from(NAMES)
_seconds = st.sampled_from([1, 3, 6, 12, MAX_LATENCY])


def _late(seconds: int, when: str) -> Fault:
    return fault("latency", seconds=seconds, when=when)


_faults = st.one_of(
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
        self.election = Election(self.cluster, [Candidate(self.cluster, name) for name in NAMES])
        self.do(self._start_all())

    def do(self, act: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end."""
        return self._runner.run(act)

    @rule(seconds=st.sampled_from([0.5, 2, 5, 11, 16]))
    def time_passes(self, seconds: float) -> None:
        self.do(self.election.passes(seconds))

    @rule(data=st.data())
    def plan_faults(self, data: st.DataObject) -> None:
        names = data.draw(st.lists(_names, min_size=1, max_size=3, unique=True))
        each = data.draw(_limits)(data.draw(_faults)).by(tuple(names))
        self.cluster.faults.plan(each, seed=data.draw(st.integers(0, 3)))

    @rule()
    def end_faults(self) -> None:
        self.cluster.faults.end()

    @rule(name=_names)
    def pause(self, name: str) -> None:
        self.election[name].running.clear()

    @rule(name=_names)
    def resume(self, name: str) -> None:
        self.election[name].running.set()

    @rule(name=_names, seconds=st.sampled_from([-3600, -1, 1, 20, 86400]))
    def jump_clock(self, name: str, seconds: int) -> None:
        self.election[name].clock.jumped_ns += seconds * 10**9

    @rule(name=_names)
    def cancel(self, name: str) -> None:
        self.election[name].cancel()

    @rule()
    def start_stopped(self) -> None:
        self.do(self._start_all())

    async def _start_all(self) -> None:
        for candidate in self.election.candidates:
            if not candidate.up:
                candidate.start()

    async def _settle(self) -> None:
        self.cluster.faults.end()
        for candidate in self.election.candidates:
            candidate.running.set()
        await self.election.passes(MAX_LATENCY)
        await self._start_all()
        leader = await self.election.wait_for_leader(25)
        await self.election.passes(20)
        assert self.election.leaders == [leader]
        assert [each.name for each in self.election.candidates if each.working] == [leader]

    def teardown(self) -> None:
        try:
            self.do(self._settle())
        finally:
            self.do(self.election.end_all())
            self.do(self.cluster.__aexit__(None, None, None))
            self._runner.close()


TestContestedLease = ContestedLease.TestCase
TestContestedLease.settings = settings(
    max_examples=examples(40), stateful_step_count=20, deadline=None
)
