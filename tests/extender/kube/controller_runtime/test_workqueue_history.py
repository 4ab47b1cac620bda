"""The queue equals a plain model of it, for any calls in any order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from extender.kube.controller_runtime.workqueue import WorkQueue
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from tests.properties.sampling import examples

_keys = st.sampled_from("abcd")


class Model:
    """client-go's queue in plain Python: keys that wait, are dirty, and are being processed."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waiting: list[str] = []
        self.dirty: set[str] = set()
        self.processing: set[str] = set()
        self.later: list[tuple[float, str]] = []
        self.shut = False

    def add(self, key: str) -> None:
        if self.shut or key in self.dirty:
            return
        self.dirty.add(key)
        if key not in self.processing:
            self.waiting.append(key)

    def add_after(self, key: str, seconds: float) -> None:
        if self.shut:
            return
        if seconds <= 0:
            self.add(key)
            return
        due = self.now + seconds
        if all(other != key or due < at for at, other in self.later):
            self.later = [entry for entry in self.later if entry[1] != key]
            self.later.append((due, key))

    def take(self) -> str | None:
        if not self.waiting:
            return None
        key = self.waiting.pop(0)
        self.dirty.remove(key)
        self.processing.add(key)
        return key

    def done(self, key: str) -> None:
        self.processing.remove(key)
        if key in self.dirty:
            self.waiting.append(key)

    def advance(self, seconds: float) -> None:
        self.now += seconds
        for entry in sorted(self.later, key=lambda entry: entry[0]):
            if entry[0] <= self.now:
                self.later.remove(entry)
                self.add(entry[1])

    def shut_down(self) -> None:
        self.shut = True
        self.later.clear()


class TwoQueues(RuleBasedStateMachine):
    """Both queues receive the same calls."""

    def __init__(self) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self.clock = VirtualClock()
        self.model = Model()
        self.queue: WorkQueue[str] = WorkQueue(self.clock)

    @rule(key=_keys)
    def add(self, key: str) -> None:
        self._runner.run(self._in_loop(lambda: self.queue.add(key)))
        self.model.add(key)

    @rule(key=_keys, seconds=st.sampled_from([-1, 0, 1, 2, 3, 5]))
    def add_after(self, key: str, seconds: int) -> None:
        self._runner.run(self._in_loop(lambda: self.queue.add_after(key, seconds)))
        self.model.add_after(key, seconds)

    @rule()
    def take(self) -> None:
        assert self.queue.take() == self.model.take()

    @precondition(lambda self: self.model.processing)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.model.processing)))
        self._runner.run(self._in_loop(lambda: self.queue.done(key)))
        self.model.done(key)

    @rule(seconds=st.sampled_from([0, 1, 2, 4]))
    def time_passes(self, seconds: int) -> None:
        self._runner.run(self.clock.advance(seconds))
        self.model.advance(seconds)

    @precondition(lambda self: len(self.model.processing) > 1)
    @rule()
    def shut_down(self) -> None:
        self._runner.run(self._in_loop(self.queue.shut_down))
        self.model.shut_down()

    @invariant()
    def both_contain_the_same(self) -> None:
        assert len(self.queue) == len(self.model.waiting)
        assert self.queue.idle == (not self.model.waiting and not self.model.processing)
        due = {key: at - self.model.now for at, key in self.model.later}
        assert {key: self.queue.due_in(key) for key in "abcd"} == {k: due.get(k) for k in "abcd"}

    def teardown(self) -> None:
        self._runner.run(self._in_loop(self.queue.close))
        self._runner.close()

    async def _in_loop(self, act: Callable[[], None]) -> None:
        act()


TestTwoQueues = TwoQueues.TestCase
TestTwoQueues.settings = settings(max_examples=examples(100), stateful_step_count=40, deadline=None)
