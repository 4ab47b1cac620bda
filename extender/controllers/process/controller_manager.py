"""The controller manager: components by name, each of them on, off, paused or stepped.

    manager = ControllerManager(client, clock, rng, ("gc", "namespaces"))
    manager.start()
    manager["gc"].pause()          keys are enqueued, but not processed
    await manager["gc"].step()     one key is processed
    manager["gc"].resume()
    manager["disruption"].start()  components can be switched on and off at any time
    await manager.stop()

All components share one client, one clock, one event recorder and, per resource and decoder, one
informer. While a component runs, it keeps its caches and enqueues keys; its controller processes
them, one key at a time, unless it is paused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from extender.controllers.context import ControllerContext
from extender.controllers.webhooks.webhook_endpoint import WebhookEndpoint
from extender.controllers.workloadspread.assumed_statuses import AssumedStatuses
from extender.kube.controller_runtime.controller import Controller
from extender.kube.controller_runtime.event_recorder import (
    EventCallback,
    EventForwarder,
    EventWriter,
)
from extender.kube.informers.shared_informer import SharedInformerFactory, cancel_tasks
from extender.kube.rest.client import Client
from extender.kube.rest.clock import Clock
from policies.workloadspread.quirks import FIXED, Quirks

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


@dataclass(frozen=True, slots=True)
class ComponentContext(ControllerContext):
    """The context that components are created with.

    ``certificate`` is the CA certificate of the API server, in PEM; "" if it serves plain HTTP.
    ``quirks`` are the OpenKruise quirks that are followed. ``assumed_statuses`` holds the
    components' own writes of WorkloadSpreads.
    """

    certificate: str = ""
    quirks: Quirks = FIXED
    assumed_statuses: AssumedStatuses = field(default_factory=AssumedStatuses)


class Component(Protocol):
    """One component of the control plane."""

    controller: Controller[Any]

    async def run(self) -> None:
        """Run until cancelled."""
        ...


MakeComponent: TypeAlias = Callable[[ComponentContext], Component]


def _make_replica_set_controller(context: ControllerContext) -> Component:
    from extender.controllers.replicaset import ReplicaSetController  # imported on first use

    return ReplicaSetController(context)


def _make_workload_spread_controller(context: ComponentContext) -> Component:
    from extender.controllers.workloadspread.sync import WorkloadSpreadController
    from policies.workloadspread.reconcile import SpreadRules

    rules = SpreadRules(quirks=context.quirks)
    return WorkloadSpreadController(context, context.assumed_statuses, rules=rules)


def _make_workload_spread_webhooks(
    context: ComponentContext, webhook_endpoint: WebhookEndpoint
) -> Component:
    from extender.controllers.webhooks.handlers import WorkloadSpreadWebhooks
    from policies.workloadspread.reconcile import SpreadRules

    rules = SpreadRules(quirks=context.quirks)
    return WorkloadSpreadWebhooks(context, context.assumed_statuses, webhook_endpoint, rules=rules)


WORKLOADS: Final[Mapping[str, MakeComponent]] = {
    "replicaset": _make_replica_set_controller,
    "workloadspread": _make_workload_spread_controller,
}
"""The workload controllers, which ``reprieve controllers`` runs against any API server."""

SPREAD_WEBHOOKS: Final = "spreadwebhooks"
COMPANIONS: Final[Mapping[str, tuple[str, ...]]] = {"workloadspread": (SPREAD_WEBHOOKS,)}
"""Components that are started together with another one."""


class UnknownComponentError(ValueError):
    """``run`` names a control plane component that does not exist."""


def parse_workloads(run: str) -> tuple[str, ...]:
    """Return the workload controllers to run; raises UnknownComponentError."""
    return parse_names(run, WORKLOADS, "controller", WORKLOADS)


def companions_of(name: str) -> tuple[str, ...]:
    """Return the components that are started together with another one."""
    return COMPANIONS.get(name, ())


def parse_names(
    run: str, known: Container[str], kind: str, offered: Iterable[str]
) -> tuple[str, ...]:
    """Return comma-separated names of components of a ``kind``, each once.

    Raises UnknownComponentError with the ``offered`` names.
    """
    names = tuple(dict.fromkeys(name.strip() for name in run.split(",")))
    for name in names:
        if name not in known:
            expected = ", ".join(offered)
            raise UnknownComponentError(f"run: no {kind} {name!r}; expected one of: {expected}")
    return names


class ComponentSwitch:
    """Starts, pauses and stops one component."""

    def __init__(
        self,
        name: str,
        make: MakeComponent,
        context: ComponentContext,
        failed: asyncio.Event | None = None,
    ) -> None:
        self.name = name
        self._make = make
        self._context = context
        self._component: Component | None = None
        self._task: asyncio.Task[None] | None = None
        self._paused = False
        self._failed = failed or asyncio.Event()

    @property
    def on(self) -> bool:
        """Whether the component runs, paused or not."""
        return self._task is not None

    @property
    def paused(self) -> bool:
        """Whether the component does not process keys by itself."""
        return self._paused

    @property
    def pending(self) -> int:
        """The number of keys that are ready to be processed."""
        return len(self._component.controller.queue) if self._component else 0

    def start(self) -> None:
        """Start the component; it begins with the current state of the cluster."""
        if self._task is None:
            self._component = self._make(self._context)
            if self._paused:
                self._component.controller.queue.pause()
            self._task = asyncio.create_task(self._component.run())
            self._task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Stop the component and drop its state. Raises the error that ended it before."""
        task, self._task, self._component = self._task, None, None
        if task is not None:
            await cancel_tasks((task,))

    async def drain(self) -> None:
        """Drain the component: accept no further keys, and wait until the queue is empty."""
        if self._component is not None:
            await self._component.controller.drain()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._failed.set()

    def pause(self) -> None:
        """Pause the component: keys are enqueued, but not processed."""
        self._paused = True
        if self._component is not None:
            self._component.controller.queue.pause()

    def resume(self) -> None:
        """Resume processing."""
        self._paused = False
        if self._component is not None:
            self._component.controller.queue.resume()

    async def step(self) -> str:
        """Process the next key and return it as text; "" if none is ready."""
        done = await self._component.controller.step() if self._component else None
        return "" if done is None else str(done)


@dataclass(frozen=True, slots=True)
class ManagerOptions:
    """The components of a controller manager, and their common options.

    ``certificate`` is the server's CA certificate, in PEM; "" for plain HTTP. Metrics are
    registered in ``registry``; without one each component keeps its own. ``quirks`` are the
    OpenKruise quirks that are followed. The webhooks exist only with a ``webhook_endpoint`` that
    serves them. ``on_event`` is called with each Event of the components, in place of writing it.
    """

    certificate: str = ""
    registry: CollectorRegistry | None = None
    quirks: Quirks = FIXED
    webhook_endpoint: WebhookEndpoint | None = None
    components: Mapping[str, MakeComponent] = field(default_factory=lambda: WORKLOADS)
    on_event: EventCallback | None = None


class ControllerManager(Mapping[str, ComponentSwitch]):
    """All components by name; :meth:`start` starts those in ``run``."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        rng: Random,
        run: Iterable[str],
        options: ManagerOptions | None = None,
    ) -> None:
        options = options or ManagerOptions()
        self.run = tuple(run)
        self._informers = SharedInformerFactory(client, clock, rng)
        self._events = (
            EventWriter(client, clock, rng)
            if options.on_event is None
            else EventForwarder(client, clock, rng, options.on_event)
        )
        self._failed = self._informers.failure
        common = client, self._informers, clock, rng, self._events
        context = ComponentContext(*common, options.registry, options.certificate, options.quirks)
        components = dict(options.components)
        if options.webhook_endpoint is not None:
            components[SPREAD_WEBHOOKS] = partial(
                _make_workload_spread_webhooks, webhook_endpoint=options.webhook_endpoint
            )
        self._switches = {
            name: ComponentSwitch(name, make, context, self._failed)
            for name, make in components.items()
        }

    def __getitem__(self, name: str) -> ComponentSwitch:
        return self._switches[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._switches)

    def __len__(self) -> int:
        return len(self._switches)

    def start(self) -> None:
        """Start the components to run, each with its companions."""
        for name in self.run:
            for component in (name, *companions_of(name)):
                if component in self._switches:
                    self._switches[component].start()

    async def wait_for_failure(self) -> None:
        """Wait until a component or an informer has failed; :meth:`stop` then raises the error."""
        await self._failed.wait()

    async def drain(self) -> None:
        """Drain all components."""
        await asyncio.gather(*(switch.drain() for switch in self._switches.values()))

    async def stop(self) -> None:
        """Stop all components; raises the error that ended one before."""
        try:
            for switch in self._switches.values():
                await switch.stop()
            await self._events.flush()
        finally:
            await self._informers.stop()
