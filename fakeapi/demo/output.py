"""Output of the demo: a live display or plain lines while it runs, and tables at the end.

A terminal with cursor control shows the live display; a pipe, a file and a dumb terminal get lines.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final, Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from extender.terminal.plain_tables import plain_table
from fakeapi.demo.observed_state import ObservedNode, ObservedPod, ObservedState
from fakeapi.demo.scenarios.preemption_story import POOL, LoopScenario
from fakeapi.demo.steps import DemoStep
from fakeapi.demo.summary import Summary

_ZONE: Final = "topology.kubernetes.io/zone"


def render_screen(
    step: DemoStep, state: ObservedState, scenario: LoopScenario, lines: Sequence[str]
) -> RenderableType:
    """Return the screen: nodes with their pods, pending pods, and ``lines``, the last changes."""
    head = Text.assemble((step.value, "bold"), f"   {state.seconds:.0f} s")
    texts = (Text(line, "dim", no_wrap=True, overflow="ellipsis") for line in lines)
    return Group(head, _nodes(state, scenario), _pending_pods(state, scenario), *texts)


def _nodes(state: ObservedState, scenario: LoopScenario) -> Table:
    table = plain_table("node", POOL, "zone", "pods", "state")
    for node in state.nodes:
        pods = [pod for pod in state.pods if pod.node == node.name]
        coming = [pod for pod in state.pods if not pod.node and pod.nominated == node.name]
        cells = [_pod(pod, scenario) for pod in sorted(pods, key=lambda pod: pod.key)]
        cells += [Text(f"← {_short(pod, scenario)}", "yellow") for pod in coming]
        table.add_row(
            node.name,
            node.labels.get(POOL, ""),
            node.labels.get(_ZONE, ""),
            Text("  ").join(cells),
            _state(node),
        )
    return table


def _pod(pod: ObservedPod, scenario: LoopScenario) -> Text:
    name = _short(pod, scenario)
    if pod.evicted:
        return Text(f"{name} evicted", "red")
    if pod.deleting:
        return Text(name, "red strike")
    if not pod.ready:
        return Text(name, "italic")
    return Text(name, "bold green" if pod.key in scenario.burst_pods else "")


def _short(pod: ObservedPod, scenario: LoopScenario) -> str:
    return (pod.key if pod.key in scenario.burst_pods else pod.workload).rpartition("/")[2]


def _state(node: ObservedNode) -> Text:
    if node.memory_pressure:
        return Text("MemoryPressure", "red")
    return Text("ready" if node.ready else "not ready", "dim")


def _pending_pods(state: ObservedState, scenario: LoopScenario) -> Text:
    waiting = [pod for pod in state.pods if pod.active and not pod.node]
    if not waiting:
        return Text("no pod is pending", "dim")
    names = sorted(_short(pod, scenario) for pod in waiting)
    return Text(f"pending: {', '.join(names)}", "yellow")


def summary_tables(summary: Summary) -> RenderableType:
    """Return the tables of preemptions with reprieved pods, replacements, evictions and calls."""
    return Group(*_sections(summary))


def _sections(summary: Summary) -> Iterator[RenderableType]:
    yield _headed(
        "Preempted and reprieved pods",
        ("for", "on", "victims", "decided by", "PDBs violated", "reprieved, and why"),
        (
            (
                each.preemptor,
                each.node,
                "\n".join(each.victims),
                each.reason,
                str(each.pdb_violations),
                "\n".join(each.reprieved) or "none",
            )
            for each in summary.preemptions
        ),
    )
    yield _headed(
        "Replacements created by ReplicaSets",
        ("pods", "subset", "result"),
        (("\n".join(each.pods), each.subset, each.outcome) for each in summary.replacements),
    )
    yield _headed(
        "Evicted by kubelets",
        ("pod", "on", "because"),
        ((each.pod, each.node, each.reason) for each in summary.evictions),
    )
    yield _headed(
        "Calls of the extender",
        ("verb", "calls", "outcomes", "decision", "round trip", "notes"),
        (
            (
                each.verb,
                str(each.count),
                each.outcomes,
                f"{each.deciding:.1f} ms",
                f"{each.round_trip:.1f} ms",
                _first(each.notes),
            )
            for each in summary.calls
        ),
    )


def _first(notes: Sequence[str]) -> str:
    more = len(notes) - 1
    return f"{notes[0]} (and {more} more)" if more > 0 else "".join(notes)


def _headed(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> RenderableType:
    table = plain_table(*columns)
    for row in rows:
        table.add_row(*map(Text, row))
    return Group(Rule(title, align="left"), table)


_WIDTH: Final = 140
_MAX_LINES: Final = 10


class Screen(Protocol):
    """Shows the progress of the demo."""

    def show(self, step: DemoStep, state: ObservedState, changes: Sequence[str]) -> None:
        """Show an observed state and its changes."""
        ...


class LineScreen:
    """Prints the changes, each line with the seconds on the cluster's clock."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._step: DemoStep | None = None

    def show(self, step: DemoStep, state: ObservedState, changes: Sequence[str]) -> None:
        """Print the changes; a step's headline precedes its first line."""
        headline = () if step is self._step else (f"== {step.value}",)
        self._step = step
        for line in (*headline, *changes):
            self._console.print(f"{state.seconds:5.1f} s  {line}", markup=False, soft_wrap=True)


class LiveScreen:
    """Updates a live display."""

    def __init__(self, scenario: LoopScenario, live: Live) -> None:
        self._scenario = scenario
        self._live = live
        self._lines: deque[str] = deque(maxlen=_MAX_LINES)

    def show(self, step: DemoStep, state: ObservedState, changes: Sequence[str]) -> None:
        """Update the display."""
        self._lines.extend(changes)
        self._live.update(
            render_screen(step, state, self._scenario, tuple(self._lines)), refresh=True
        )


def output_console() -> Console:
    """Return a console on stdout; if it is not a terminal, its width fits the tables."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(width=_WIDTH, highlight=False)


def open_screen(console: Console, scenario: LoopScenario) -> AbstractContextManager[Screen]:
    """Return the screen that a console supports."""
    if console.is_terminal and not console.is_dumb_terminal:
        return _live(console, scenario)
    return nullcontext(LineScreen(console))


@contextmanager
def _live(console: Console, scenario: LoopScenario) -> Iterator[Screen]:
    with Live(console=console, auto_refresh=False) as live:
        yield LiveScreen(scenario, live)
