"""Background tasks of a world: its control plane, the TTL of its Events, and compaction.

The tasks run while the ``async with`` block runs; the world exists before and after. The control
plane uses a client like any other component, but its requests are not in the request log. Some
components enable admission plugins (:mod:`fakeapi.apiserver.admission.builtin_plugins`); others
install the CustomResourceDefinition of their kind (:mod:`fakeapi.apiserver.kinds.schemas`).

An API in the same process calls the control plane's webhooks directly. Their configurations name a
Service, as if they ran in the cluster. The Service is not resolved while they are served;
afterwards requests fail as they do for a Service without endpoints.

Events are deleted one hour after their last write. As with etcd leases, the store deletes them
directly: there is no request, and no admission or finalizer delays the deletion. Events that exist
at the start, or are restored from a snapshot, have the full hour.

Every five minutes, lists at states that are five minutes old or older expire, continue tokens
included, as after kube-apiserver's compaction of etcd.

Sources: kube-apiserver's ``--event-ttl``, ``--etcd-compaction-interval``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, Self

import orjson

from extender.controllers.process.controller_manager import ControllerManager, ManagerOptions
from extender.controllers.webhooks.webhook_endpoint import (
    Detach,
    Document,
    Handler,
    Handlers,
    WebhookEndpoint,
)
from extender.kube.informers.shared_informer import cancel_tasks
from extender.kube.rest.client import Client
from extender.kube.rest.clock import Clock
from fakeapi.apiserver.admission.builtin_plugins import COMPONENT_PLUGINS
from fakeapi.apiserver.endpoints import Api, Response
from fakeapi.apiserver.kinds.builtin import EVENTS
from fakeapi.apiserver.kinds.schemas import shipped_definitions
from fakeapi.apiserver.registry.system_objects import RESTORED_KINDS
from fakeapi.apiserver.store.object_store import Store
from fakeapi.apiserver.store.store_errors import ExpiredError
from fakeapi.apiserver.validation.object_validation import pod_spec_errors
from fakeapi.apiserver.webhooks.calls import WebhookFunction
from fakeapi.controlplane.components import components
from fakeapi.controlplane.kubelet.scripts import USER_AGENT, KubeletEndpoint, KubeletOptions
from fakeapi.simulation.world import Upkeep, World, copy_random

_SERVICE: Final = {"namespace": "reprieve-system", "name": "reprieve-webhooks"}


def in_process_endpoint(api: Api) -> WebhookEndpoint:
    """Return the webhook endpoint by which an API calls webhooks of its own process."""

    def attend(handlers: Handlers) -> Detach:
        return _serve_webhooks(api, handlers)

    return WebhookEndpoint(_client_config, attend, pod_spec_errors)


def _client_config(path: str) -> Document:
    return {"service": {**_SERVICE, "path": path}}


def _serve_webhooks(api: Api, handlers: Handlers) -> Detach:
    # Imported here to keep the start-up time of other components short.
    from extender.controllers.webhooks.registration import PATHS
    from extender.controllers.webhooks.workloadspread_webhook import answer_conversion
    from extender.controllers.workloadspread.spread_cache import DEFINITION

    def convert(review: dict[str, Any]) -> Any:
        return orjson.loads(answer_conversion(orjson.dumps(review)))

    hooks = {name: _in_process_webhook(handlers[path]) for name, path in PATHS.items()}
    api.webhooks.handlers.update(hooks)
    api.converters[DEFINITION] = convert

    def detach() -> None:
        for name, hook in hooks.items():
            if api.webhooks.handlers.get(name) is hook:
                del api.webhooks.handlers[name]
        if api.converters.get(DEFINITION) is convert:
            del api.converters[DEFINITION]

    return detach


def _in_process_webhook(handler: Handler) -> WebhookFunction:
    async def hook(review: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = orjson.loads(await handler(orjson.dumps(review)))
        return answer

    return hook


TTL_SECONDS: Final = 3600.0


class EventTTLController:
    """Deletes the Events of one store when their TTL is over."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._due: deque[tuple[float, str, int]] = deque()
        self._read = 0
        self._written = asyncio.Event()

    async def run(self) -> None:
        """Delete expired Events until cancelled."""
        stop = self._store.listen(EVENTS, self._record_writes)
        try:
            self._list_all()
            while True:
                await self._wait()
                self._delete_expired()
        finally:
            stop()

    async def _wait(self) -> None:
        """Wait until the next Event is due or, if there is none, until one is written."""
        if self._due:
            await self._clock.sleep(self._due[0][0] - self._clock.monotonic())
        else:
            self._written.clear()
            await self._written.wait()

    def _list_all(self) -> None:
        due = self._clock.monotonic() + TTL_SECONDS
        self._read = self._store.version
        self._due = deque((due, e.key, e.version) for e in self._store.entries(EVENTS))

    def _record_writes(self) -> None:
        """Record the latest writes; list all Events again if the store was restored."""
        try:
            events = self._store.since(EVENTS, self._read)
        except ExpiredError:
            self._list_all()
            events = ()
        due = self._clock.monotonic() + TTL_SECONDS
        for event in events:
            if event.type != "DELETED":
                self._due.append((due, event.entry.key, event.version))
            self._read = event.version
        self._written.set()

    def _delete_expired(self) -> None:
        now = self._clock.monotonic()
        while self._due and self._due[0][0] <= now:
            _, key, version = self._due.popleft()
            entry = self._store.get(EVENTS, key)
            if entry is not None and entry.version == version:
                self._store.delete(EVENTS, key, entry.document(), version)


COMPACTION_SECONDS: Final = 300.0


async def compact_periodically(store: Store, clock: Clock) -> None:
    """Expire lists at old states until cancelled, five minutes after a write."""
    written = asyncio.Event()
    stop = store.tap(lambda _event: written.set())
    try:
        while True:
            await written.wait()
            written.clear()
            version = store.version
            await clock.sleep(COMPACTION_SECONDS)
            store.expire_reads(version)
    finally:
        stop()


RESTORE_SECONDS: Final = 10.0


async def restore_system_objects(api: Api, clock: Clock) -> None:
    """Create the server's own objects again, 10 seconds after one is deleted, until cancelled."""
    deleted = asyncio.Event()
    deleted.set()  # what was deleted before this task began is restored, too
    kinds = [kind for kind in api.builtin.all if kind.kind in RESTORED_KINDS]
    stops = [api.store.listen(kind, deleted.set) for kind in kinds]
    try:
        while True:
            await deleted.wait()
            await clock.sleep(RESTORE_SECONDS)
            deleted.clear()
            api.ensure_initial_objects()
    finally:
        for stop in stops:
            stop()


class BackgroundTasks:
    """The background tasks of one world, as an async context manager.

    ``run`` names control-plane components; ``certificate`` is the server's CA certificate in PEM.
    """

    def __init__(self, world: World, run: tuple[str, ...], certificate: str = "") -> None:
        world.api.registry.plugins = tuple(
            COMPONENT_PLUGINS[name] for name in run if name in COMPONENT_PLUGINS
        )
        world.api.seed(shipped_definitions(run))
        self._store, self._clock = world.api.store, world.clock
        self._client, self._kubelets = (
            Client(world.internal_transport(agent)) for agent in ("", USER_AGENT)
        )
        component_options = world.component_options
        kubelet = KubeletOptions(
            component_options.simulation_script,
            self._kubelets,
            _node_proxy_registrar(world.api),
            world.management.on_reset,
            component_options.upkeep is Upkeep.FULL,
        )
        options = ManagerOptions(
            certificate=certificate,
            quirks=component_options.quirks,
            webhook_endpoint=in_process_endpoint(world.api),
            components=components(kubelet, component_options.scheduler),
            on_event=component_options.on_event,
        )
        rng = copy_random(world.rng)
        self.control_plane = ControllerManager(self._client, world.clock, rng, run, options)
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        expiry = EventTTLController(self._store, self._clock)
        compaction = compact_periodically(self._store, self._clock)
        self._tasks = [asyncio.create_task(expiry.run()), asyncio.create_task(compaction)]
        self.control_plane.start()
        return self

    async def __aexit__(self, *_error: object) -> None:
        try:
            await self.control_plane.stop()
        finally:
            await cancel_tasks(self._tasks)
            await self._kubelets.close()
            await self._client.close()


def _node_proxy_registrar(api: Api) -> Callable[[KubeletEndpoint], Callable[[], None]]:
    """Return a function that registers the handler of an API's node proxy requests."""

    def attend(endpoint: KubeletEndpoint) -> Callable[[], None]:
        def answer(node: str, path: str, query: Mapping[str, str]) -> Response | None:
            response = endpoint(node, path, query)
            return (
                None
                if response is None
                else Response(response.status, response.body, response.content_type)
            )

        return api.node_proxy.register(answer)

    return attend
