"""The webhooks as a component: their caches, handlers and registration."""

from __future__ import annotations

import asyncio
from random import Random
from uuid import UUID

from prometheus_client import CollectorRegistry

from extender.kube.client import Client
from extender.kube.clock import Clock
from extender.kube.informers import Informers
from extender.kube.logs import OnceLog
from fakeapi.controllers.spreading.configuration import Configuration
from fakeapi.controllers.spreading.copies import SpreadCopies
from fakeapi.controllers.spreading.reception import Reception
from fakeapi.controllers.spreading.workloads import Workloads
from fakeapi.controllers.spreading.written import Written
from fakeapi.controllers.spreadwebhooks.figures import Figures
from fakeapi.controllers.spreadwebhooks.handlers import handlers
from fakeapi.controllers.spreadwebhooks.known import Known
from fakeapi.controllers.spreadwebhooks.pods import PodWebhooks
from fakeapi.controllers.spreadwebhooks.registration import Registration
from fakeapi.controllers.spreadwebhooks.spreads import SpreadWebhook
from fakeapi.controllers.spreadwebhooks.statuses import StatusWriter
from fakeapi.controllers.spreadwebhooks.trying import TryingGround
from policies.spreading.reconciling import DEFAULT_SPREAD_RULES, SpreadRules


class SpreadWebhooks:
    """The component ``spreadwebhooks``: assigns new pods to subsets, and counts pods.

    ``assumed_statuses`` is shared with the controller of the same process. Metrics are registered
    in ``registry``, if given.
    """

    def __init__(
        self,
        client: Client,
        informers: Informers,
        clock: Clock,
        rng: Random,
        written: Written,
        reception: Reception,
        *,
        rules: SpreadRules = DEFAULT_SPREAD_RULES,
        registry: CollectorRegistry | None = None,
    ) -> None:
        log = OnceLog(controller="spreadwebhooks")
        self.figures = Figures(registry)
        copies = SpreadCopies(informers, written, log)
        workloads = Workloads(client, informers)
        known = Known(copies, Configuration(informers, log), workloads, clock)
        self._reception = reception
        self._ground = TryingGround(client, clock, rng)
        writer = StatusWriter(client, copies, written, clock, rng, self.figures)
        pods = PodWebhooks(
            client, known, writer, self._ground, clock, _Ids(rng), rules, self.figures
        )
        spreads = SpreadWebhook(known, reception.check_pod, rules.quirks)
        self.handlers = handlers(pods, spreads, clock, self.figures)
        self._registration = Registration(client, informers, clock, copies, reception.leads_to, log)
        self.controller = self._registration.controller

    async def run(self) -> None:
        """Serve the webhooks and keep them registered in the API server until cancelled."""
        dismiss = self._reception.attend(self.handlers)
        try:
            await self._registration.run()
            await asyncio.Event().wait()  # draining: serve the other components
        finally:
            dismiss()
            await self._ground.stop()


class _Ids:
    """Returns random ids for pods without a name."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def __call__(self) -> str:
        return str(UUID(int=self._rng.getrandbits(128), version=4))
