"""What a part of the control plane is, and what it is given.

A part keeps its copies and notes what is to be done for as long as it runs; its controller does it,
one key at a time, unless it is paused.
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
from extender.kube.informers import Informers
from fakeapi.controllers.spreading.written import Written
from policies.spreading.quirks import FIXED, Quirks

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry  # who needs it, loads it


@dataclass(frozen=True, slots=True)
class Setting:
    """What a part works with: the way to the API server, shared copies, time, dice, and events.

    ``certificate`` is that of the API server's authority, in PEM; "" if it speaks plain HTTP.
    Figures go into ``registry``; without one each part keeps its own. ``quirks`` are the oddities
    of OpenKruise's that are followed. ``written`` is what parts have written of WorkloadSpreads.
    """

    client: Client
    informers: Informers
    clock: Clock
    rng: Random
    events: EventWriter
    certificate: str = ""
    registry: CollectorRegistry | None = None
    quirks: Quirks = FIXED
    written: Written = field(default_factory=Written)


class Part(Protocol):
    """One controller of the control plane."""

    controller: Controller[Any]

    async def run(self) -> None:
        """Do its work until cancelled."""
        ...


MakePart: TypeAlias = Callable[[Setting], Part]
