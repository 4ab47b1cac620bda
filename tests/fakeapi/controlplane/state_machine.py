"""State machines that act in a world: hypothesis draws what happens, and how far the parts come.

A machine's rules are plain functions; what awaits runs on a loop of the machine's own. Before each
rule the parts may have done everything, one thing each, or nothing, so that acts fall between any
two steps of a controller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from fakeapi import VirtualCluster
from tests.stage import Stage

T = TypeVar("T")


class WorldMachine(RuleBasedStateMachine):
    """A world with the parts of ``run``, all of them paused unless a rule lets them act."""

    run: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self.cluster = VirtualCluster(run=self.run)
        self.stage = Stage(self.cluster)
        self.parts = self.run.split(",")
        self.do(self.cluster.__aenter__())
        self.do(self.stage.passes(1))
        for name in self.parts:
            self.cluster.control_plane[name].pause()

    def do(self, act: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end."""
        return self._runner.run(act)

    @rule(data=st.data(), steps=st.integers(1, 4))
    def some_part_does_something(self, data: st.DataObject, steps: int) -> None:
        part = data.draw(st.sampled_from(self.parts))
        self.do(self.cluster.clock.advance(0))
        for _ in range(steps):
            self.do(self.cluster.control_plane[part].step())

    @rule(seconds=st.sampled_from([0, 1, 20, 90]))
    def time_passes(self, seconds: int) -> None:
        self.do(self.stage.passes(seconds))

    @rule()
    def the_parts_do_all_they_can(self) -> None:
        self.come_to_rest(0)

    def come_to_rest(self, seconds: float) -> None:
        """Let the parts work undisturbed for a while, and pause them again."""
        for name in self.parts:
            self.cluster.control_plane[name].resume()
        self.do(self.stage.passes(seconds))
        for name in self.parts:
            self.cluster.control_plane[name].pause()

    def check(self) -> None:
        """Check what must hold in the end; the parts have come to rest."""

    def teardown(self) -> None:
        try:
            self.come_to_rest(60)
            self.check()
        finally:
            self.do(self.cluster.__aexit__(None, None, None))
            self._runner.close()
