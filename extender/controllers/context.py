"""The context of a controller: what every controller of a process shares."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from extender.kube.controller_runtime.event_recorder import EventWriter
from extender.kube.informers.shared_informer import SharedInformerFactory
from extender.kube.rest.client import Client
from extender.kube.rest.clock import Clock

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """Client, shared informers, clock, randomness, and Events.

    Metrics are registered in ``registry``; without one each controller has its own.
    """

    client: Client
    informers: SharedInformerFactory
    clock: Clock
    rng: Random
    events: EventWriter
    registry: CollectorRegistry | None = None
