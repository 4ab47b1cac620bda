"""``advise eviction`` as a process: look, show, respond, rest, and look again."""

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
    """What to look at and how often: a node or all of them, seconds from one look to the next.

    ``samples`` are taken before one answer; None goes on and on. ``at_once`` is how many kubelets
    are asked at a time.
    """

    release: EvictionRelease
    node: str | None = None
    interval: float = 15.0
    samples: int | None = 2
    at_once: int = 32


@dataclass(frozen=True, slots=True)
class Doing:
    """What to do for nodes that run short, ``really`` or only in words."""

    terms: Terms
    per_minute: float
    really: bool


@dataclass(frozen=True, slots=True)
class Local:
    """What to look at on this machine: a control group, and what its kubelet was told."""

    group: str
    flags: KubeletFlags
    proc: Path


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The time, chance (for jitter alone), and where answers are shown."""

    clock: Clock
    rng: random.Random
    screen: Screen


async def advise(
    transport: Transport, looking: Looking, doing: Doing | None, around: Surroundings
) -> int:
    """Look at a cluster, and give the exit code.

    Raises ConfigError for a node that is not there; ApiError, MalformedError or TransportError if
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
    """Look at this machine, and at what a cluster knows of it; gives the exit code.

    Raises as :func:`advise` does, MeasureError, and what the kubelet's flags raise.
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
    """Keep an inventory; raises ConfigError if the node that was asked for is not in it."""
    of = (client, around.clock, around.rng, looking.release, looking.node)
    async with inventory(*of) as known:
        if looking.node is not None and looking.node not in known.hosts:
            raise ConfigError(f"--node: no node {looking.node!r} in the cluster")
        yield known


@asynccontextmanager
async def _responding(
    client: Client, known: Inventory, doing: Doing | None, around: Surroundings
) -> AsyncIterator[Response]:
    """Return the response; what it tells as Events has been written in the end."""
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
    """Look and respond until there have been enough samples, or for ever; gives the exit code."""
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
