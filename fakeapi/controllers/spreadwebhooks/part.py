"""The webhooks as a component: their caches, handlers and registration."""

from __future__ import annotations

import asyncio
from random import Random
from uuid import UUID

from prometheus_client import CollectorRegistry

from extender.kube.client import Client
from extender.kube.clock import Clock
from extender.kube.informers import SharedInformerFactory
from extender.kube.logs import OnceLog
from fakeapi.controllers.spreading.configuration import KruiseConfiguration
from fakeapi.controllers.spreading.copies import WorkloadSpreadCache
from fakeapi.controllers.spreading.reception import WebhookEndpoint
from fakeapi.controllers.spreading.workloads import ControllerFinder
from fakeapi.controllers.spreading.written import AssumedStatuses
from fakeapi.controllers.spreadwebhooks.figures import WebhookMetrics
from fakeapi.controllers.spreadwebhooks.handlers import webhook_handlers
from fakeapi.controllers.spreadwebhooks.known import WebhookCaches
from fakeapi.controllers.spreadwebhooks.pods import PodWebhooks
from fakeapi.controllers.spreadwebhooks.registration import WebhookRegistration
from fakeapi.controllers.spreadwebhooks.spreads import WorkloadSpreadWebhook
from fakeapi.controllers.spreadwebhooks.statuses import WorkloadSpreadStatusWriter
from fakeapi.controllers.spreadwebhooks.trying import SchedulingSimulator
from policies.spreading.reconciling import DEFAULT_SPREAD_RULES, SpreadRules


class WorkloadSpreadWebhooks:
    """The component ``spreadwebhooks``: assigns new pods to subsets, and counts pods.

    ``assumed_statuses`` is shared with the controller of the same process. Metrics are registered
    in ``registry``, if given.
    """

    def __init__(
        self,
        client: Client,
        informers: SharedInformerFactory,
        clock: Clock,
        rng: Random,
        assumed_statuses: AssumedStatuses,
        webhook_endpoint: WebhookEndpoint,
        *,
        rules: SpreadRules = DEFAULT_SPREAD_RULES,
        registry: CollectorRegistry | None = None,
    ) -> None:
        log = OnceLog(controller="spreadwebhooks")
        self.metrics = WebhookMetrics(registry)
        copies = WorkloadSpreadCache(informers, assumed_statuses, log)
        workloads = ControllerFinder(client, informers)
        known = WebhookCaches(copies, KruiseConfiguration(informers, log), workloads, clock)
        self._reception = webhook_endpoint
        self._ground = SchedulingSimulator(client, clock, rng)
        writer = WorkloadSpreadStatusWriter(
            client, copies, assumed_statuses, clock, rng, self.metrics
        )
        pods = PodWebhooks(
            client, known, writer, self._ground, clock, _RandomIds(rng), rules, self.metrics
        )
        spreads = WorkloadSpreadWebhook(known, webhook_endpoint.check_pod, rules.quirks)
        self.handlers = webhook_handlers(pods, spreads, clock, self.metrics)
        self._registration = WebhookRegistration(
            client, informers, clock, copies, webhook_endpoint.client_config, log
        )
        self.controller = self._registration.controller

    async def run(self) -> None:
        """Serve the webhooks and keep them registered in the API server until cancelled."""
        dismiss = self._reception.serve(self.handlers)
        try:
            await self._registration.run()
            await asyncio.Event().wait()  # draining: serve the other components
        finally:
            dismiss()
            await self._ground.stop()


class _RandomIds:
    """Returns random ids for pods without a name."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def __call__(self) -> str:
        return str(UUID(int=self._rng.getrandbits(128), version=4))
