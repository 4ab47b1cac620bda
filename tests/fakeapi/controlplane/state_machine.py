"""State machines of a cluster: Hypothesis draws requests and the progress of components.

Rules are synchronous functions; coroutines run on a loop of the machine's own. Before each rule
components may have finished their work, taken some steps, or none, so that requests occur between
any two steps of a controller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from fakeapi import VirtualCluster
from tests.builders import Document
from tests.stage import Stage

T = TypeVar("T")


class WorldMachine(RuleBasedStateMachine):
    """A cluster with the components of ``run``, which are paused except during rules."""

    run: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self.cluster = VirtualCluster(run=self.run)
        self.stage = Stage(self.cluster)
        self.components = self.run.split(",")
        self.do(self.cluster.__aenter__())
        self.do(self.stage.passes(1))
        for name in self.components:
            self.cluster.control_plane[name].pause()

    def listed(self, kind: str) -> list[Document]:
        """Return the objects of a kind."""
        return list(list(self.cluster.history(kind).states())[-1])

    def do(self, act: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end."""
        return self._runner.run(act)

    @rule(data=st.data(), steps=st.integers(1, 4))
    def a_component_takes_steps(self, data: st.DataObject, steps: int) -> None:
        component = data.draw(st.sampled_from(self.components))
        self.do(self.cluster.clock.advance(0))
        for _ in range(steps):
            self.do(self.cluster.control_plane[component].step())

    @rule(seconds=st.sampled_from([0, 1, 20, 90]))
    def time_passes(self, seconds: int) -> None:
        self.do(self.stage.passes(seconds))

    @rule()
    def the_components_finish(self) -> None:
        self.wait_idle(0)

    def wait_idle(self, seconds: float) -> None:
        """Resume the components for a while, and pause them again."""
        for name in self.components:
            self.cluster.control_plane[name].resume()
        self.do(self.stage.passes(seconds))
        for name in self.components:
            self.cluster.control_plane[name].pause()

    def check(self) -> None:
        """Check what must hold in the end, when the components are idle."""

    def teardown(self) -> None:
        try:
            self.wait_idle(60)
            self.check()
        finally:
            self.do(self.cluster.__aexit__(None, None, None))
            self._runner.close()
