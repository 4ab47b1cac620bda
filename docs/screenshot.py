"""The screenshot of the demo: ``python -m docs.screenshot`` writes docs/demo.svg.

It is the last screen of ``reprieve demo`` in the step that creates a burst of important pods. The
fonts are those of the browser: rich would load them from a server.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Final

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console, RenderableType
from rich.text import Text

from fakeapi.demo.driver import DemoDriver
from fakeapi.demo.environment import run_demo_cluster
from fakeapi.demo.observed_state import ObservedState
from fakeapi.demo.output import render_screen
from fakeapi.demo.scenarios.preemption_story import LoopScenario, loop_scenario
from fakeapi.demo.steps import DemoStep

FILE: Final = Path(__file__).parent / "demo.svg"
_COLUMNS: Final = 112
_LINES: Final = 8
_PACE: Final = 4.0


class BurstScreen:
    """Keeps the last screen of the burst."""

    def __init__(self, scenario: LoopScenario) -> None:
        self._scenario = scenario
        self._lines: deque[str] = deque(maxlen=_LINES)
        self.last: RenderableType = Text("")

    def show(self, step: DemoStep, state: ObservedState, changes: Sequence[str]) -> None:
        """Render a state of the burst."""
        self._lines.extend(changes)
        if step is DemoStep.BURST:
            self.last = render_screen(step, state, self._scenario, tuple(self._lines))


async def burst_screen() -> RenderableType:
    """Run the demo, and return the last screen of the burst."""
    scenario = loop_scenario()
    screen = BurstScreen(scenario)
    async with run_demo_cluster(scenario, 0, _PACE) as (stage, _):
        await DemoDriver(stage, scenario, screen).run()
    return screen.last


def main() -> None:
    """Write the file."""
    console = Console(record=True, file=StringIO(), width=_COLUMNS, force_terminal=True)
    console.print(asyncio.run(burst_screen()))
    form = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    FILE.write_text(console.export_svg(title="make demo", code_format=form, unique_id="demo"))


if __name__ == "__main__":
    main()
