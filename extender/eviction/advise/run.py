"""The process of ``advise eviction``: observe, print, respond, wait, repeat.

The response to a round is nothing, a dry run, or execution. Each action is printed immediately.
"""

from __future__ import annotations

import random
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from extender.config.strict_decoding import ConfigError
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

EXIT_UNREAD: Final = 1
"""The exit code if no node could be read."""

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
        self._printer = printer

    async def respond(
        self,
        observed: ObservationRound,
        until: float,  # noqa: ARG002 - see RoundResponse
    ) -> None:
        """Print the round."""
        self._printer.finish_round(observed, None)

    async def respond_last(self, observed: ObservationRound) -> int:
        """Print the round."""
        self._printer.finish_round(observed, None)
        return 0


class DryRunResponse:
    """Prints the actions that would be taken."""

    def __init__(self, printer: Printer, limits: ReliefLimits) -> None:
        self._printer = printer
        self._limits = limits

    async def respond(
        self,
        observed: ObservationRound,
        until: float,  # noqa: ARG002 - see RoundResponse
    ) -> None:
        """Print the actions."""
        await self.respond_last(observed)

    async def respond_last(self, observed: ObservationRound) -> int:
        """Print the actions."""
        actions = planned_actions(plan_relief(observed.forecasts, observed.pod_facts, self._limits))
        for action in actions:
            self._printer.print_action(action)
        self._printer.finish_round(observed, actions)
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
        self._printer = printer
        self._limits = limits
        self._executor = executor
        self._inventory = inventory
        self._clock = clock

    async def respond(self, observed: ObservationRound, until: float) -> None:
        """Take the actions that are possible before the next round, which decides anew."""
        actions = await self._executor.execute(observed, self._inventory.nodes, self._limits, until)
        self._printer.finish_round(observed, actions)

    async def respond_last(self, observed: ObservationRound) -> int:
        """Take all actions, with retries, within the time of the forecast."""
        until = self._clock.monotonic() + self._limits.within_ns / _SECOND
        actions = await self._executor.execute(observed, self._inventory.nodes, self._limits, until)
        actions += await self._executor.retry_blocked(until)
        self._printer.finish_round(observed, actions)
        return EXIT_INCOMPLETE if _is_incomplete(actions) else 0


def _is_incomplete(actions: Iterable[Action]) -> bool:
    """Return whether an action failed and no later attempt succeeded."""
    last = {(action.step.relief.node, action.step.pod): action.result for action in actions}
    return any(outcome in _FAILURES for outcome in last.values())


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
        _checked_inventory(client, observation, context) as inventory,
        _open_response(client, inventory, relief, context) as response,
    ):
        kubelets = KubeletClient(
            client, context.clock, observation.release, observation.concurrency
        )
        rounds = ClusterRounds(inventory, kubelets, context.clock)
        return await _run_rounds(rounds, response, observation, context)


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
    config = resolve(local.flags.eviction_config(Layout(), observation.release))
    async with AsyncExitStack() as stack:
        cluster = None
        if transport is not None:
            client = Client(transport)
            inventory = await stack.enter_async_context(
                _checked_inventory(client, observation, context)
            )
            cluster = NodeClusterContext(
                inventory, KubeletClient(client, context.clock, observation.release, 1)
            )
        listener = await stack.enter_async_context(open_listener(context.clock))
        rounds = LocalRounds(machine, config, context.clock, listener, cluster)
        return await _run_rounds(rounds, NoResponse(context.printer), observation, context)


@asynccontextmanager
async def _checked_inventory(
    client: Client, observation: ObservationOptions, context: RunContext
) -> AsyncIterator[NodeInventory]:
    """Run an inventory; raise ConfigError if the node of the options does not exist."""
    arguments = (context.clock, context.rng, observation.release, observation.node)
    async with run_inventory(client, *arguments) as inventory:
        if observation.node is not None and observation.node not in inventory.nodes:
            raise ConfigError(f"--node: no node {observation.node!r} in the cluster")
        yield inventory


@asynccontextmanager
async def _open_response(
    client: Client, inventory: NodeInventory, relief: ReliefOptions | None, context: RunContext
) -> AsyncIterator[RoundResponse]:
    """Return the response; its Events are written on exit."""
    clock, printer = context.clock, context.printer
    if relief is None:
        yield NoResponse(printer)
    elif not relief.execute:
        yield DryRunResponse(printer, relief.limits)
    else:
        events = EventWriter(client, clock, context.rng)
        recorder = events.recorder(COMPONENT)
        executor = Executor(client, clock, recorder, relief.per_minute, printer.print_action)
        try:
            yield Execution(printer, relief.limits, executor, inventory, clock)
        finally:
            await events.flush()


async def _run_rounds(
    rounds: RoundSource,
    response: RoundResponse,
    observation: ObservationOptions,
    context: RunContext,
) -> int:
    """Observe and respond for the number of samples, or without end; return the exit code."""
    clock, left = context.clock, observation.samples
    while True:
        due = clock.monotonic() + observation.interval
        observed = await rounds.observe()
        if left is None:
            context.printer.print_round(observed)
            await response.respond(observed, due)
        elif left <= 1:
            context.printer.print_round(observed)
            code = await response.respond_last(observed)
            return code or (EXIT_UNREAD if observed.unread and not observed.forecasts else 0)
        else:
            left -= 1
        await rounds.wait(due - clock.monotonic())
