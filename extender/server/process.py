"""The extender as a process: reflectors that fill its cache, the server of its API, its metrics."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog

from extender.cluster.event_handlers import build_reflectors
from extender.cluster.readiness import ReadinessLog
from extender.cluster.scheduler_cache import SchedulerCache
from extender.config.component_config import Config, Mode
from extender.config.rules_source import build_rules, read_rules_source
from extender.kube.controller_runtime.event_recorder import EventWriter
from extender.kube.informers.reflector import ReflectorContext
from extender.kube.rest.client import Client
from extender.kube.rest.clock import Clock
from extender.kube.rest.transport import Transport
from extender.observability.decision_history import DecisionHistory
from extender.observability.decision_log import DecisionLog
from extender.observability.metrics import Metrics
from extender.observability.preemption_events import COMPONENT, PreemptionEventRecorder
from extender.protocol.verb_context import Search
from extender.secure_serving.connection_limits import ConnectionRegistry
from extender.secure_serving.dynamic_certificates import CertificateReloader
from extender.secure_serving.listener import ClientCertAuthorizer, ContextSource, serve_app
from extender.server.call_queue import CallQueue
from extender.server.fallback_policy import configured_fallbacks
from extender.server.http_handlers import build_app
from extender.server.policy_reloader import PolicyUse, ServedPolicies
from extender.server.python_gc import observed_collections
from extender.server.service import Service
from extender.server.serving_metrics import register_ledger_metrics, register_serving_metrics
from extender.server.worker_processes import WorkerGroup
from extender.server.worker_requests import join_group
from policies.engine_selection import build_engine
from policies.kubernetes.feature_gates import FeatureGate
from policies.preemption.policy import SchedulerRules
from policies.preemption.reference_engine import ReferenceEngine

if TYPE_CHECKING:
    from extender.ledger.decision_recorder import DecisionRecorder
    from extender.ledger.writer import LedgerWriter
    from extender.server.shadow_decisions import ShadowDecisions

_REFRESH_INTERVAL_SECONDS = 0.1
_GATES: Final[Mapping[str, FeatureGate]] = {
    "podgroups": FeatureGate.GENERIC_WORKLOAD,
    "compositepodgroups": FeatureGate.COMPOSITE_POD_GROUP,
    "resourceclaims": FeatureGate.DYNAMIC_RESOURCE_ALLOCATION,
}
"""The gate without which the API server does not serve a kind."""


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A served extender: its base URL, its service, and its open connections.

    ``page_url`` is the URL of the pages of its ledger, "" without any.
    """

    url: str
    service: Service
    connections: ConnectionRegistry
    page_url: str = ""

    async def wait_synced(self) -> None:
        """Return when every informer has its first list, or the server refuses its kind."""
        for informer in self.service.informers.values():
            await informer.wait_settled()

    def is_idle(self) -> bool:
        """Return whether no call is in progress."""
        return self.connections.is_idle


def serving_rules(config: Config) -> SchedulerRules:
    """Return the rules of a configuration. Raise ConfigError and UnknownReleaseError."""
    return build_rules(read_rules_source(config))


@asynccontextmanager
async def run_server(
    config: Config,
    transport: Transport,
    clock: Clock,
    rng: random.Random,
    decision_log: DecisionLog | None = None,
    load_rules: Callable[[Config], SchedulerRules] = serving_rules,
    workers: WorkerGroup | None = None,
) -> AsyncIterator[ServerProcess]:
    """Serve while the block runs; then become not ready, finish calls in progress, and stop.

    ``load_rules`` is called again when the policy file changes. The caches are filled in the
    background; until they are, calls are answered with 503. ``workers`` are the processes that
    serve the same address, if there are several. Raise ConfigError, UnknownReleaseError,
    CertificateError, and OSError for the socket.
    """
    metrics = Metrics()
    policies = ServedPolicies(config, load_rules, metrics)
    read = policies.rules_read
    cluster = SchedulerCache(clock.monotonic, lambda *changes: service.follow(*changes))
    client = Client(transport)
    reflector_context = ReflectorContext(
        client,
        clock,
        rng,
        silence_seconds=config.watch_silence_seconds,
        is_locked=lambda: cluster.is_locked,
    )
    reflectors = build_reflectors(reflector_context, cluster, read)
    events = EventWriter(client, clock, rng)
    service = Service(
        cluster,
        ReferenceEngine(policies.rules),
        clock,
        config.search if config.mode is Mode.ENFORCE else Search.OFFERED,
        config.promise_seconds,
        reflectors,
        metrics,
        decision_log=decision_log or DecisionLog(),
        fallback_policy=configured_fallbacks(config),
        call_queue=CallQueue(config.queue_limit, clock.monotonic),
        decision_history=DecisionHistory(config.decisions_kept),
        preemption_events=(
            PreemptionEventRecorder(events.recorder(COMPONENT))
            if config.events and config.mode is Mode.ENFORCE
            else None
        ),
        ledger=_recorder(config, cluster, clock, rng),
        mode=config.mode,
    )
    ledger = None if service.ledger is None else service.ledger.writer
    connections = ConnectionRegistry(config.limits, clock)
    if policies.shadows and (workers is None or workers.is_primary):
        service.shadows = _shadows(config, policies, service, connections)
    reloader = None if config.tls is None else CertificateReloader(config.tls, clock)
    register_serving_metrics(service.metrics.registry, connections, reloader)
    if reloader is not None:
        service.readiness.warnings.append(lambda: describe_certificate(reloader))
    if ledger is not None:
        register_ledger_metrics(service.metrics.registry, ledger)
        service.readiness.warnings.append(ledger.warning)
    service.readiness.warnings += policies.warnings()
    service.readiness.warnings.append(lambda: describe_assumed_gates(service))
    authorizer = None
    if config.tls is not None and config.tls.client_ca:
        authorizer = ClientCertAuthorizer(config.tls.allowed_client_names)
    body_limit, id_prefix = config.body_limit_mib * 2**20, f"{rng.getrandbits(32):08x}"
    build = partial(build_app, service, config.path_prefixes, body_limit)
    context = None if reloader is None else lambda: reloader.context
    async with (
        observed_collections(service.metrics.registry, clock.monotonic),
        _exporting_traces(service, config, clock),
        join_group(
            workers, service, lambda guard: build(None, f"{id_prefix}-w", guard), clock
        ) as forwarding,
        serve_app(
            build(authorizer, id_prefix, forwarding),
            config,
            connections,
            context,
            None if workers is None else workers.listening,
        ) as listener,
        _serving_page(config, cluster, clock, context) as page_url,
        asyncio.TaskGroup() as group,
    ):
        work = [informer.run() for informer in service.informers.values()]
        readiness_log = ReadinessLog(service.readiness)
        work += [_refresh(cluster, readiness_log, clock), connections.run_sweeper()]
        policy_use = PolicyUse(
            service,
            reflectors,
            read.annotations,
            reflector_context,
            lambda reflector: tasks.append(group.create_task(reflector.run())),
        )
        work += [_log_assumed_gates(service), _follow_policies(service, policies, policy_use)]
        if service.shadows is not None:
            work.append(service.shadows.run(_wait_settled(service), cluster.snapshot))
        if reloader is not None:
            work.append(reloader.run())
        if ledger is not None:
            work.append(_write_ledger(ledger, service))
        tasks = [group.create_task(each) for each in work]
        try:
            yield ServerProcess(listener.url, service, connections, page_url)
        finally:
            service.readiness.stopping = True
            readiness_log.update()
            stopping = asyncio.sleep(0) if workers is None else workers.stop_workers()
            stopped = asyncio.ensure_future(stopping)
            await clock.sleep(config.shutdown_delay_seconds)
            await listener.finish()
            await stopped
            await events.flush()
            if ledger is not None:
                await ledger.close()
            for task in tasks:
                task.cancel()


def describe_certificate(reloader: CertificateReloader) -> str:
    """Return the warning about the certificate for ``/readyz?verbose``, "" if there is none."""
    warning = reloader.warning()
    return warning and f"certificate {warning}"


def describe_assumed_gates(service: Service) -> str:
    """Return which gates are taken as on because the API server serves their objects, or ""."""
    gates, informers = service.engine.rules.assumed_gates, service.informers
    served = [kind for kind in _GATES if kind in informers and informers[kind].synced]
    found = [_GATES[kind] for kind in served if _GATES[kind] in gates]
    if not found:
        return ""
    return (
        f"taken as on, because the API server serves their objects: {', '.join(found)}; "
        "set featureGates to those of kube-scheduler"
    )


@asynccontextmanager
async def _serving_page(
    config: Config, cluster: SchedulerCache, clock: Clock, context: ContextSource | None
) -> AsyncIterator[str]:
    """Serve the pages of the ledger while the block runs, if the configuration has them."""
    if config.page is None or config.ledger is None:
        yield ""
        return
    from extender.server.page_use import serve_page  # imported on use: start-up time

    serving = serve_page(config, config.page, config.ledger, cluster, clock, context)
    async with serving as url:
        yield url


def _recorder(
    config: Config, cluster: SchedulerCache, clock: Clock, rng: random.Random
) -> DecisionRecorder | None:
    """Return what records decisions in the ledger, if the configuration has one."""
    if config.ledger is None:
        return None
    from extender.server.ledger_use import build_recorder  # imported on use: start-up time

    return build_recorder(config, config.ledger, cluster.pods, clock, rng)


def _shadows(
    config: Config, policies: ServedPolicies, service: Service, connections: ConnectionRegistry
) -> ShadowDecisions:
    """Return what decides by the shadow policies when no call is in progress."""
    from extender.server.shadow_use import build_shadows  # imported on use: start-up time

    clock, queue = service.clock, service.call_queue

    def idle_seconds() -> float:
        return clock.monotonic() - queue.last_used if connections.is_idle else 0.0

    rules = [each.rules for each in policies.shadows]
    ledger = None if service.ledger is None else service.ledger.writer
    return build_shadows(config, rules, clock, idle_seconds, service.metrics.registry, ledger)


async def _follow_policies(service: Service, policies: ServedPolicies, use: PolicyUse) -> None:
    """Replace the reference engine by the fastest one that is installed, then follow the policies.

    The process listens before: to import NumPy takes a tenth of a second. A service that observes
    decides nothing.
    """
    if service.mode is Mode.ENFORCE:
        rules = service.engine.rules
        service.replace_engine(await asyncio.to_thread(build_engine, rules))
    await policies.run(use, service.clock)


async def _wait_settled(service: Service) -> None:
    for informer in list(service.informers.values()):
        await informer.wait_settled()


async def _write_ledger(ledger: LedgerWriter, service: Service) -> None:
    """Write to the ledger from the time on at which the pods are known."""
    await service.informers["pods"].wait_settled()
    await ledger.run()


async def _log_assumed_gates(service: Service) -> None:
    """Log once which gates are taken as on."""
    await _wait_settled(service)
    assumed = describe_assumed_gates(service)
    if assumed:
        structlog.get_logger().info("feature_gates", detail=assumed)


@asynccontextmanager
async def _exporting_traces(service: Service, config: Config, clock: Clock) -> AsyncIterator[None]:
    """Export traces of calls while the block runs, if tracing is configured."""
    if config.tracing is None:
        yield
        return
    from extender.observability.opentelemetry_export import export_traces  # needs the extra "otel"

    async with export_traces(config.tracing, clock) as service.tracer:
        yield


async def _refresh(cluster: SchedulerCache, readiness_log: ReadinessLog, clock: Clock) -> None:
    """Rebuild the snapshot regularly, so that no call has many watch events to apply.

    Changes of readiness are logged in the same interval.
    """
    while True:
        cluster.snapshot()
        readiness_log.update()
        await clock.sleep(_REFRESH_INTERVAL_SECONDS)
