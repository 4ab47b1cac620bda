"""``reprieve demo``: a whole cluster, or captured requests of kube-scheduler."""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Annotated, Final

import structlog
import typer
from rich.console import Console
from rich.rule import Rule

from extender.config.strict_decoding import ConfigError
from fakeapi.demo.captured_requests import run_captured_requests, wide_console
from fakeapi.demo.driver import DemoDriver, DemoOutcome
from fakeapi.demo.environment import run_demo_cluster
from fakeapi.demo.output import open_screen, output_console, summary_tables
from fakeapi.demo.scenarios.preemption_story import loop_scenario
from fakeapi.demo.summary import summarize

EXAMPLE: Final = "demo"

_PACE: Final = 2.0
_FASTEST: Final = 10.0
"""Above this factor, brief load on the host makes kubelets seem dead and the extender late."""

_WARNING: Final = 30
_NEXT: Final = """\
What's next:
  reprieve demo questions                 explain requests that a real kube-scheduler sent
  reprieve explain preempt --help         explain decisions about your own cluster, from files
  README.md, "Beside a kube-scheduler"    configure a real kube-scheduler
  docs/testing-your-extender.md           test your own extender with the simulated scheduler"""


class DemoName(Enum):
    """The demos."""

    LOOP = "loop"
    QUESTIONS = "questions"


def show_demo(
    scenario: Annotated[
        DemoName,
        typer.Argument(
            metavar="STORY", help="loop: a simulated cluster; questions: explained decisions."
        ),
    ] = DemoName.LOOP,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Seed of the loop's randomness; default 0.")
    ] = None,
    speed: Annotated[
        float | None,
        typer.Option("--speed", metavar="X", help="Speed of the loop's clock; default 2."),
    ] = None,
) -> None:
    """Show what Reprieve does; fails if a step of the loop does not complete."""
    # Warnings are the only log lines on the screen.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(_WARNING))
    if scenario is DemoName.QUESTIONS:
        if seed is not None or speed is not None:
            raise ConfigError("demo questions: --seed and --speed apply to demo loop only")
        asyncio.run(run_captured_requests(wide_console()))
        return
    pace = _PACE if speed is None else speed
    if not 0 < pace <= _FASTEST:
        raise ConfigError(f"--speed: {pace:g}; expected a number above 0, at most {_FASTEST:g}")
    outcome = asyncio.run(run_loop(output_console(), seed or 0, pace))
    if outcome.missing:
        raise typer.Exit(1)


async def run_loop(console: Console, seed: int, pace: float) -> DemoOutcome:
    """Run the loop and print its summary on ``console``."""
    scenario = loop_scenario()
    async with run_demo_cluster(scenario, seed, pace) as (stage, addresses):
        console.print(f"fakeapi listens on {addresses.server}, reprieve on {addresses.extender}")
        console.print(f"The cluster's clock runs {pace:g} times as fast as yours.")
        with open_screen(console, scenario) as screen:
            outcome = await DemoDriver(stage, scenario, screen).run()
    console.print()
    console.print(summary_tables(summarize(outcome.state, scenario, pace)))
    print_outcome(console, outcome)
    return outcome


def print_outcome(console: Console, outcome: DemoOutcome) -> None:
    """Print further commands to try, or the unmet conditions."""
    console.print(Rule())
    if not outcome.missing:
        console.print(_NEXT, markup=False, soft_wrap=True)
        return
    console.print(f"The demo did not complete. Step {outcome.step.value!r} is not complete:")
    for line in outcome.missing:
        console.print(f"  {line}", markup=False, soft_wrap=True)
