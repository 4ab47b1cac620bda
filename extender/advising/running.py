"""The process of ``advise eviction``: observe, print, respond, wait, repeat."""

from __future__ import annotations

import random
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from extender.advising.acting import COMPONENT, Executor
from extender.advising.asking import KubeletClient
from extender.advising.inventory import NodeInventory, run_inventory
from extender.advising.local import LocalRounds, NodeClusterContext, find_local_node, open_listener
from extender.advising.responding import DryRunResponse, Execution, NoResponse, RoundResponse
from extender.advising.rounds import ClusterRounds, RoundSource
from extender.advising.screens import Printer
from extender.config import ConfigError
from extender.eviction.flags import KubeletFlags
from extender.kube.client import Client
from extender.kube.clock import Clock
from extender.kube.events import EventWriter
from extender.kube.transport import Transport
from policies.eviction.configuration import resolve
from policies.eviction.filesystems import Layout
from policies.eviction.forestalling import ReliefLimits
from policies.eviction.releases import EvictionRelease

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
