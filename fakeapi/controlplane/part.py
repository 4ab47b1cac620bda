"""The interface of control plane components, and the context they are created with.

While a component runs, it keeps its caches and enqueues keys; its controller processes them, one
key at a time, unless it is paused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from extender.kube.client import Client
from extender.kube.clock import Clock
from extender.kube.controller import Controller
from extender.kube.events import EventWriter
from extender.kube.informers import SharedInformerFactory
from fakeapi.controllers.spreading.written import AssumedStatuses
from policies.spreading.quirks import FIXED, Quirks

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry  # imported on first use


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """The context of components: client, shared informers, clock, randomness, and Events.

    ``certificate`` is the CA certificate of the API server, in PEM; "" if it serves plain HTTP.
    Metrics are registered in ``registry``; without one each component has its own. ``quirks`` are
    the OpenKruise quirks that are followed. ``assumed_statuses`` holds the components' own writes
    of WorkloadSpreads.
    """

    client: Client
    informers: SharedInformerFactory
    clock: Clock
    rng: Random
    events: EventWriter
    certificate: str = ""
    registry: CollectorRegistry | None = None
    quirks: Quirks = FIXED
    assumed_statuses: AssumedStatuses = field(default_factory=AssumedStatuses)


class Component(Protocol):
    """One component of the control plane."""

    controller: Controller[Any]

    async def run(self) -> None:
        """Run until cancelled."""
        ...


MakeComponent: TypeAlias = Callable[[ControllerContext], Component]
