"""The process of ``advise eviction``: observe, print, respond, wait, repeat."""

from __future__ import annotations

import random
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from extender.advising.acting import COMPONENT, Actor
from extender.advising.asking import Kubelets
from extender.advising.inventory import Inventory, inventory
from extender.advising.local import Beside, LocalRounds, listening, this_machine
from extender.advising.responding import Performance, Rehearsal, Response, Silence
from extender.advising.rounds import Rounds, Watcher
from extender.advising.screens import Screen
from extender.config import ConfigError
from extender.eviction.flags import KubeletFlags
from extender.kube.client import Client
from extender.kube.clock import Clock
from extender.kube.events import EventWriter
from extender.kube.transport import Transport
from policies.eviction.configuration import planned
from policies.eviction.filesystems import Layout
from policies.eviction.forestalling import Terms
from policies.eviction.releases import EvictionRelease

UNREAD: Final = 1
"""The exit code if no node could be read."""


@dataclass(frozen=True, slots=True)
class Looking:
    """The options of observation: one node or all of them, and the seconds between rounds.

    ``samples`` is the number of rounds before the answer; None repeats without end. ``concurrency``
    is the number of concurrent requests to kubelets.
    """

    release: EvictionRelease
    node: str | None = None
    interval: float = 15.0
    samples: int | None = 2
    at_once: int = 32


@dataclass(frozen=True, slots=True)
class Doing:
    """The options of relief; without ``execute`` it is a dry run."""

    terms: Terms
    per_minute: float
    really: bool


@dataclass(frozen=True, slots=True)
class Local:
    """The options of local observation: a control group, and the flags of the kubelet."""

    group: str
    flags: KubeletFlags
    proc: Path


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The clock, the randomness (for jitter only), and the output."""

    clock: Clock
    rng: random.Random
    screen: Screen


async def advise(
    transport: Transport, looking: Looking, doing: Doing | None, around: Surroundings
) -> int:
    """Observe a cluster, and return the exit code.

    Raise ConfigError for a node that does not exist; ApiError, MalformedError or TransportError if
    the server cannot be read.
    """
    client = Client(transport)
    async with (
        _known(client, looking, around) as known,
        _responding(client, known, doing, around) as response,
    ):
        kubelets = Kubelets(client, around.clock, looking.release, looking.at_once)
        watcher = Rounds(known, kubelets, around.clock)
        return await _go_round(watcher, response, looking, around)


async def advise_here(
    transport: Transport | None, local: Local, looking: Looking, around: Surroundings
) -> int:
    """Observe this machine, with the data of a cluster if there is one, and return the exit code.

    Raise the errors of :func:`advise`, MemoryReadError, and the errors of the kubelet's flags.
    """
    node = looking.node or socket.gethostname()
    machine = this_machine(node, local.group, local.proc)
    plan = planned(local.flags.configuration(Layout(), looking.release))
    async with AsyncExitStack() as stack:
        beside = None
        if transport is not None:
            client = Client(transport)
            known = await stack.enter_async_context(_known(client, looking, around))
            beside = Beside(known, Kubelets(client, around.clock, looking.release, 1))
        ears = await stack.enter_async_context(listening(around.clock))
        watcher = LocalRounds(machine, plan, around.clock, ears, beside)
        return await _go_round(watcher, Silence(around.screen), looking, around)


@asynccontextmanager
async def _known(
    client: Client, looking: Looking, around: Surroundings
) -> AsyncIterator[Inventory]:
    """Run an inventory; raise ConfigError if the node of the options does not exist."""
    of = (client, around.clock, around.rng, looking.release, looking.node)
    async with inventory(*of) as known:
        if looking.node is not None and looking.node not in known.hosts:
            raise ConfigError(f"--node: no node {looking.node!r} in the cluster")
        yield known


@asynccontextmanager
async def _responding(
    client: Client, known: Inventory, doing: Doing | None, around: Surroundings
) -> AsyncIterator[Response]:
    """Return the response; its Events are written on exit."""
    clock, screen = around.clock, around.screen
    if doing is None:
        yield Silence(screen)
    elif not doing.really:
        yield Rehearsal(screen, doing.terms)
    else:
        events = EventWriter(client, clock, around.rng)
        recorder = events.recorder(COMPONENT)
        actor = Actor(client, clock, recorder, doing.per_minute, screen.deed)
        try:
            yield Performance(screen, doing.terms, actor, known, clock)
        finally:
            await events.flush()


async def _go_round(
    watcher: Watcher, response: Response, looking: Looking, around: Surroundings
) -> int:
    """Observe and respond for the number of samples, or without end; return the exit code."""
    clock, left = around.clock, looking.samples
    while True:
        due = clock.monotonic() + looking.interval
        seen = await watcher.look()
        if left is None:
            around.screen.seen(seen)
            await response.follow(seen, due)
        elif left <= 1:
            around.screen.seen(seen)
            code = await response.conclude(seen)
            return code or (UNREAD if seen.unread and not seen.outlooks else 0)
        else:
            left -= 1
        await watcher.rest(due - clock.monotonic())
