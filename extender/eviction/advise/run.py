"""The process of ``advise eviction``: observe, print, respond, wait, repeat.

The response to a round: nothing, a dry run, or execution; each action is printed immediately.
"""

from __future__ import annotations

import random
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from extender.config.component_config import ConfigError
from extender.eviction.advise.executor import (
    COMPONENT,
    Action,
    ActionResult,
    Executor,
    planned_actions,
)
from extender.eviction.advise.kubelet_client import KubeletClient
from extender.eviction.advise.local_node import (
    LocalRounds,
    NodeClusterContext,
    find_local_node,
    open_listener,
)
from extender.eviction.advise.node_inventory import NodeInventory, run_inventory
from extender.eviction.advise.output import Printer
from extender.eviction.advise.rounds import ClusterRounds, ObservationRound, RoundSource
from extender.eviction.kubelet_flags import KubeletFlags
from extender.kube.controller_runtime.event_recorder import EventWriter
from extender.kube.rest.client import Client
from extender.kube.rest.clock import Clock
from extender.kube.rest.transport import Transport
from policies.eviction.config import resolve
from policies.eviction.filesystems import Layout
from policies.eviction.kubelet_releases import EvictionRelease
from policies.eviction.proactive_eviction import ReliefLimits, plan_relief

EXIT_INCOMPLETE: Final = 1
"""The exit code if an action failed or remained blocked."""

_SECOND: Final = 10**9
_FAILURES: Final = frozenset({ActionResult.BLOCKED, ActionResult.FAILED})


class RoundResponse(Protocol):
    """The response to a round."""

    async def respond(self, observed: ObservationRound, until: float) -> None:
        """Respond to one of many rounds, before the next is due at ``until`` (monotonic)."""
        ...

    async def respond_last(self, observed: ObservationRound) -> int:
        """Respond to the only round, and return the exit code."""
        ...


class NoResponse:
    """Prints rounds, without any action."""

    def __init__(self, printer: Printer) -> None:
        self._screen = printer

    async def respond(self, observed: ObservationRound, until: float) -> None:  # noqa: ARG002 - as of Response
        """Print the round."""
        self._screen.finish_round(observed, None)

    async def respond_last(self, observed: ObservationRound) -> int:
        """Print the round."""
        self._screen.finish_round(observed, None)
        return 0


class DryRunResponse:
    """Prints the actions that would be taken."""

    def __init__(self, printer: Printer, limits: ReliefLimits) -> None:
        self._screen = printer
        self._terms = limits

    async def respond(self, observed: ObservationRound, until: float) -> None:  # noqa: ARG002 - as of Response
        """Print the actions."""
        await self.respond_last(observed)

    async def respond_last(self, observed: ObservationRound) -> int:
        """Print the actions."""
        deeds = planned_actions(plan_relief(observed.forecasts, observed.pod_facts, self._terms))
        for deed in deeds:
            self._screen.print_action(deed)
        self._screen.finish_round(observed, deeds)
        return 0


class Execution:
    """Takes the actions; evictions that a budget blocks are retried."""

    def __init__(
        self,
        printer: Printer,
        limits: ReliefLimits,
        executor: Executor,
        inventory: NodeInventory,
        clock: Clock,
    ) -> None:
        self._screen = printer
        self._terms = limits
        self._actor = executor
        self._known = inventory
        self._clock = clock

    async def respond(self, observed: ObservationRound, until: float) -> None:
        """Take the actions that are possible before the next round, which decides anew."""
        deeds = await self._actor.execute(observed, self._known.nodes, self._terms, until)
        self._screen.finish_round(observed, deeds)

    async def respond_last(self, observed: ObservationRound) -> int:
        """Take all actions, with retries, within the time of the forecast."""
        until = self._clock.monotonic() + self._terms.within_ns / _SECOND
        deeds = await self._actor.execute(observed, self._known.nodes, self._terms, until)
        deeds += await self._actor.retry_blocked(until)
        self._screen.finish_round(observed, deeds)
        return EXIT_INCOMPLETE if _is_incomplete(deeds) else 0


def _is_incomplete(deeds: Iterable[Action]) -> bool:
    """Return whether an action failed and no later attempt succeeded."""
    last = {(deed.step.relief.node, deed.step.pod): deed.result for deed in deeds}
    return any(outcome in _FAILURES for outcome in last.values())


EXIT_UNREAD: Final = 1
"""The exit code if no node could be read."""


@dataclass(frozen=True, slots=True)
class ObservationOptions:
    """The options of observation: one node or all of them, and the seconds between rounds.

    ``samples`` is the number of rounds before the answer; None repeats without end. ``concurrency``
    is the number of concurrent requests to kubelets.
    """

    release: EvictionRelease
    node: str | None = None
    interval: float = 15.0
    samples: int | None = 2
    concurrency: int = 32


@dataclass(frozen=True, slots=True)
class ReliefOptions:
    """The options of relief; without ``execute`` it is a dry run."""

    limits: ReliefLimits
    per_minute: float
    execute: bool


@dataclass(frozen=True, slots=True)
class LocalNodeOptions:
    """The options of local observation: a control group, and the flags of the kubelet."""

    group: str
    flags: KubeletFlags
    proc: Path


@dataclass(frozen=True, slots=True)
class RunContext:
    """The clock, the randomness (for jitter only), and the output."""

    clock: Clock
    rng: random.Random
    printer: Printer


async def advise(
    transport: Transport,
    observation: ObservationOptions,
    relief: ReliefOptions | None,
    context: RunContext,
) -> int:
    """Observe a cluster, and return the exit code.

    Raise ConfigError for a node that does not exist; ApiError, MalformedError or TransportError if
    the server cannot be read.
    """
    client = Client(transport)
    async with (
        _checked_inventory(client, observation, context) as known,
        _open_response(client, known, relief, context) as response,
    ):
        kubelets = KubeletClient(
            client, context.clock, observation.release, observation.concurrency
        )
        watcher = ClusterRounds(known, kubelets, context.clock)
        return await _run_rounds(watcher, response, observation, context)


async def advise_local(
    transport: Transport | None,
    local: LocalNodeOptions,
    observation: ObservationOptions,
    context: RunContext,
) -> int:
    """Observe this machine, with the data of a cluster if there is one, and return the exit code.

    Raise the errors of :func:`advise`, MemoryReadError, and the errors of the kubelet's flags.
    """
    node = observation.node or socket.gethostname()
    machine = find_local_node(node, local.group, local.proc)
    plan = resolve(local.flags.eviction_config(Layout(), observation.release))
    async with AsyncExitStack() as stack:
        beside = None
        if transport is not None:
            client = Client(transport)
            known = await stack.enter_async_context(
                _checked_inventory(client, observation, context)
            )
            beside = NodeClusterContext(
                known, KubeletClient(client, context.clock, observation.release, 1)
            )
        ears = await stack.enter_async_context(open_listener(context.clock))
        watcher = LocalRounds(machine, plan, context.clock, ears, beside)
        return await _run_rounds(watcher, NoResponse(context.printer), observation, context)


@asynccontextmanager
async def _checked_inventory(
    client: Client, looking: ObservationOptions, around: RunContext
) -> AsyncIterator[NodeInventory]:
    """Run an inventory; raise ConfigError if the node of the options does not exist."""
    of = (client, around.clock, around.rng, looking.release, looking.node)
    async with run_inventory(*of) as known:
        if looking.node is not None and looking.node not in known.nodes:
            raise ConfigError(f"--node: no node {looking.node!r} in the cluster")
        yield known


@asynccontextmanager
async def _open_response(
    client: Client, known: NodeInventory, doing: ReliefOptions | None, around: RunContext
) -> AsyncIterator[RoundResponse]:
    """Return the response; its Events are written on exit."""
    clock, screen = around.clock, around.printer
    if doing is None:
        yield NoResponse(screen)
    elif not doing.execute:
        yield DryRunResponse(screen, doing.limits)
    else:
        events = EventWriter(client, clock, around.rng)
        recorder = events.recorder(COMPONENT)
        actor = Executor(client, clock, recorder, doing.per_minute, screen.print_action)
        try:
            yield Execution(screen, doing.limits, actor, known, clock)
        finally:
            await events.flush()


async def _run_rounds(
    watcher: RoundSource, response: RoundResponse, looking: ObservationOptions, around: RunContext
) -> int:
    """Observe and respond for the number of samples, or without end; return the exit code."""
    clock, left = around.clock, looking.samples
    while True:
        due = clock.monotonic() + looking.interval
        seen = await watcher.observe()
        if left is None:
            around.printer.print_round(seen)
            await response.respond(seen, due)
        elif left <= 1:
            around.printer.print_round(seen)
            code = await response.respond_last(seen)
            return code or (EXIT_UNREAD if seen.unread and not seen.forecasts else 0)
        else:
            left -= 1
        await watcher.wait(due - clock.monotonic())
