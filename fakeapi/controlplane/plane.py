"""The control plane as a whole: parts by name, each of them on, off, paused or stepped.

    plane = ControlPlane(client, clock, rng, ("gc", "namespaces"))
    plane.start()
    plane["gc"].pause()          it notes what is to be done, and does nothing
    await plane["gc"].step()     it does one thing
    plane["gc"].resume()
    plane["disruption"].start()  parts can be switched on and off at any time
    await plane.stop()

All parts share one client, one clock, one writer of Events and, where they read the same, one copy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final

from extender.kube.client import Client
from extender.kube.clock import Clock
from extender.kube.events import EventWriter
from extender.kube.informers import Informers, end
from fakeapi.controllers.spreading.reception import Reception
from fakeapi.controlplane.disruption import DisruptionController
from fakeapi.controlplane.gc import GarbageCollector
from fakeapi.controlplane.kubelet.outfits import NO_OUTFIT, Outfit
from fakeapi.controlplane.namespaces import NamespaceController
from fakeapi.controlplane.nodelifecycle import NodeLifecycleController
from fakeapi.controlplane.part import MakePart, Part, Setting
from fakeapi.controlplane.podgc import PodCollector
from fakeapi.controlplane.scheduler.outfits import SchedulerOutfit
from fakeapi.controlplane.serviceaccounts import AccountController
from fakeapi.controlplane.tainteviction import TaintEvictor
from policies.spreading.quirks import FIXED, Quirks

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry  # who needs it, loads it


def _replica_sets(setting: Setting) -> Part:
    from fakeapi.controllers.replicaset import ReplicaSetController  # who needs it, loads it

    given = setting.client, setting.informers, setting.clock, setting.rng, setting.events
    return ReplicaSetController(*given, registry=setting.registry)


def _workload_spreads(setting: Setting) -> Part:
    from fakeapi.controllers.workloadspread import (
        WorkloadSpreadController,  # who needs it, loads it
    )
    from policies.spreading.reconciling import SpreadRules

    given = setting.client, setting.informers, setting.clock, setting.rng, setting.events
    rules = SpreadRules(quirks=setting.quirks)
    return WorkloadSpreadController(*given, setting.written, rules=rules)


def _kubelets(setting: Setting, outfit: Outfit = NO_OUTFIT) -> Part:
    from fakeapi.controlplane.kubelet.kubelets import Kubelets  # who needs it, loads it

    return Kubelets(setting, outfit)


def _spread_webhooks(setting: Setting, reception: Reception) -> Part:
    from fakeapi.controllers.spreadwebhooks import SpreadWebhooks  # who needs it, loads it
    from policies.spreading.reconciling import SpreadRules

    given = setting.client, setting.informers, setting.clock, setting.rng, setting.written
    rules = SpreadRules(quirks=setting.quirks)
    return SpreadWebhooks(*given, reception, rules=rules, registry=setting.registry)


def _scheduler(setting: Setting, outfit: SchedulerOutfit | None = None) -> Part:
    from fakeapi.controlplane.scheduler.scheduler import Scheduler  # who needs it, loads it

    return Scheduler(setting, outfit or SchedulerOutfit())


PARTS: Final[Mapping[str, MakePart]] = {
    "gc": GarbageCollector,
    "namespaces": NamespaceController,
    "podgc": PodCollector,
    "serviceaccounts": AccountController,
    "disruption": DisruptionController,
    "nodelifecycle": NodeLifecycleController,
    "tainteviction": TaintEvictor,
    "replicaset": _replica_sets,
    "workloadspread": _workload_spreads,
    "kubelet": _kubelets,
    "scheduler": _scheduler,
}
DEFAULT_RUN: Final = "gc,namespaces"
WORKLOADS: Final = ("replicaset", "workloadspread")
"""The parts that keep workloads, which ``reprieve controllers`` runs against any API server."""

SPREAD_WEBHOOKS: Final = "spreadwebhooks"
COMPANIONS: Final[Mapping[str, tuple[str, ...]]] = {"workloadspread": (SPREAD_WEBHOOKS,)}
"""The parts that are switched on with another one."""


class UnknownPartError(ValueError):
    """``run`` names a control-plane part that does not exist."""


def parse_run(run: str) -> tuple[str, ...]:
    """Read which parts are to run: ``none``, ``all``, or names with commas between.

    Raises UnknownPartError.
    """
    if run in ("none", "all"):
        return tuple(PARTS) if run == "all" else ()
    return _named(run, PARTS, "control-plane part", ("none", "all", *PARTS))


def parse_workloads(run: str) -> tuple[str, ...]:
    """Read which controllers of workloads are to run; raises UnknownPartError."""
    return _named(run, WORKLOADS, "controller", WORKLOADS)


def companions_of(name: str) -> tuple[str, ...]:
    """Return the parts that are switched on with another one."""
    return COMPANIONS.get(name, ())


def _named(run: str, known: Container[str], kind: str, offered: Iterable[str]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in run.split(",")))
    for name in names:
        if name not in known:
            expected = ", ".join(offered)
            raise UnknownPartError(f"run: no {kind} {name!r}; expected one of: {expected}")
    return names


class Switch:
    """One part: off until it is started."""

    def __init__(
        self, name: str, make: MakePart, setting: Setting, fault: asyncio.Event | None = None
    ) -> None:
        self.name = name
        self._make = make
        self._setting = setting
        self._part: Part | None = None
        self._task: asyncio.Task[None] | None = None
        self._paused = False
        self._fault = fault or asyncio.Event()

    @property
    def on(self) -> bool:
        """Whether the part runs, paused or not."""
        return self._task is not None

    @property
    def paused(self) -> bool:
        """Whether the part does nothing of its own accord."""
        return self._paused

    @property
    def pending(self) -> int:
        """How many things there are to be done at once."""
        return len(self._part.controller.queue) if self._part else 0

    def start(self) -> None:
        """Switch the part on; it begins with what there is."""
        if self._task is None:
            self._part = self._make(self._setting)
            if self._paused:
                self._part.controller.queue.pause()
            self._task = asyncio.create_task(self._part.run())
            self._task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Switch the part off; it forgets everything. Raises what had ended it before."""
        task, self._task, self._part = self._task, None, None
        if task is not None:
            await end((task,))

    async def finish(self) -> None:
        """Have the part take up nothing more, and return when it has done what there is."""
        if self._part is not None:
            await self._part.controller.drain()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._fault.set()

    def pause(self) -> None:
        """Have the part note what is to be done, and do nothing."""
        self._paused = True
        if self._part is not None:
            self._part.controller.queue.pause()

    def resume(self) -> None:
        """Have the part work again."""
        self._paused = False
        if self._part is not None:
            self._part.controller.queue.resume()

    async def step(self) -> str:
        """Do the one thing that is next, and say what it was; "" if there is nothing to do."""
        done = await self._part.controller.step() if self._part else None
        return "" if done is None else str(done)


class ControlPlane(Mapping[str, Switch]):
    """All parts by name; ``run`` are those that :meth:`start` switches on.

    ``certificate`` is that of the server's authority, in PEM; ``outfit`` is what kubelets need,
    ``scheduler`` what the scheduler does; ``quirks`` are the oddities of OpenKruise's that are
    followed. There are webhooks only where there is a ``reception`` for them.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        rng: Random,
        run: Iterable[str],
        certificate: str = "",
        registry: CollectorRegistry | None = None,
        outfit: Outfit = NO_OUTFIT,
        quirks: Quirks = FIXED,
        reception: Reception | None = None,
        scheduler: SchedulerOutfit | None = None,
    ) -> None:
        self.run = tuple(run)
        self._informers = Informers(client, clock, rng)
        self._events = EventWriter(client, clock, rng)
        self._fault = self._informers.fault
        common = client, self._informers, clock, rng, self._events
        setting = Setting(*common, certificate, registry, quirks)
        parts: dict[str, MakePart] = {
            **PARTS,
            "kubelet": partial(_kubelets, outfit=outfit),
            "scheduler": partial(_scheduler, outfit=scheduler),
        }
        if reception is not None:
            parts[SPREAD_WEBHOOKS] = partial(_spread_webhooks, reception=reception)
        self._switches = {
            name: Switch(name, make, setting, self._fault) for name, make in parts.items()
        }

    def __getitem__(self, name: str) -> Switch:
        return self._switches[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._switches)

    def __len__(self) -> int:
        return len(self._switches)

    def start(self) -> None:
        """Switch on the parts that are to run, each with its companions."""
        for name in self.run:
            for part in (name, *companions_of(name)):
                if part in self._switches:
                    self._switches[part].start()

    async def wait_for_fault(self) -> None:
        """Return when a part or a copy has come to an end, which :meth:`stop` then raises."""
        await self._fault.wait()

    async def finish(self) -> None:
        """Take up nothing more, and return when all that there is to do has been done."""
        await asyncio.gather(*(switch.finish() for switch in self._switches.values()))

    async def stop(self) -> None:
        """Switch everything off; raises what had ended a part before."""
        try:
            for switch in self._switches.values():
                await switch.stop()
            await self._events.flush()
        finally:
            await self._informers.stop()
