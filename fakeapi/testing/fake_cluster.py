"""Fake clusters: an API server with a control plane for a test or a program.

    async with FakeCluster() as cluster:
        cluster.load([node, pod])
        await cluster.wait_for("pod", "web", "Ready")
        kubectl = {"KUBECONFIG": str(cluster.kubeconfig_path)}

    with FakeCluster() as cluster:                 # the same in a thread, with plain calls
    with FakeCluster.as_process() as cluster:      # for code that must not share an interpreter
    async with VirtualCluster() as cluster:        # no sockets, on a virtual clock

Every form leaves nothing behind, and has load, export, snapshot, restore, fork, reset, clock,
faults, history, requests, and get, list, apply, delete and wait_for of objects. ``run`` names the
control-plane components that run (:mod:`fakeapi.controlplane.components`); the default is garbage
collection, namespace deletion and quotas.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from extender.kube.decoders.object_meta import format_time
from extender.kube.informers.shared_informer import cancel_tasks
from extender.kube.rest.client import Client
from extender.kube.rest.clock import Clock
from extender.kube.rest.http_transport import AiohttpTransport
from fakeapi.apiserver.auth.authentication import ANONYMOUS_USER
from fakeapi.apiserver.discovery.version_and_health import DEFAULT_SERVER_VERSION, ServerVersion
from fakeapi.apiserver.registry.system_objects import ServerAddress, system_objects
from fakeapi.apiserver.serving.client_access import (
    ClientAccess,
    UserAccess,
    create_tls,
    user_access,
)
from fakeapi.apiserver.serving.http_server import Server, ServerOptions
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from fakeapi.apiserver.store.object_store import DEFAULT_HISTORY
from fakeapi.apiserver.webhooks.calls import WebhookFunction
from fakeapi.apiserver.wire.http_messages import User
from fakeapi.controlplane.components import (
    DEFAULT_RUN,
    parse_run,
    read_scheduler_options,
    read_simulation_script,
    register_nodes,
)
from fakeapi.controlplane.kubelet.scripts import ScriptSource
from fakeapi.controlplane.scheduler.options import (
    ConfigurationSource,
    ExtenderFunction,
    ExtenderWait,
)
from fakeapi.simulation.background_tasks import BackgroundTasks, restore_system_objects
from fakeapi.simulation.world import ComponentOptions, World, create_world
from fakeapi.testing.cluster import Cluster
from fakeapi.testing.process_cluster import ProcessCluster
from fakeapi.testing.threaded_cluster import ThreadedCluster
from policies.workloadspread.quirks import quirks_of_mode


class ServedCluster(Cluster):
    """A cluster whose API is served on a socket, as an async context manager."""

    bootstraps = False
    """Whether the server creates its own objects when it starts."""

    def __init__(
        self, world: World, run: tuple[str, ...], access: ClientAccess, host: str, port: int
    ) -> None:
        super().__init__(world, run, access.certificate)
        self._access = access
        self._address = (host, port)
        self.server = self._serve(world, self._background_tasks)
        self.kubeconfig_path = Path()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            directory = Path(stack.enter_context(TemporaryDirectory(prefix="fakeapi-")))
            stack.push_async_callback(self.server.stop)
            await self.server.start(*self._address)
            if self.bootstraps:
                await stack.enter_async_context(self._system_objects())
            self.kubeconfig_path = self.write_kubeconfig(directory / "kubeconfig")
            self.client = Client(AiohttpTransport(self._access.endpoint(self.url)))
            stack.push_async_callback(self.client.close)
            self._stack = stack.pop_all()
        return self

    @asynccontextmanager
    async def _system_objects(self) -> AsyncIterator[None]:
        """Create the objects of this server, and restore them until the block ends."""
        api, (host, _), port = self.world.api, self._address, int(self.url.rpartition(":")[2])
        address = ServerAddress(host, port, self._access.certificate)
        now = format_time(self.world.clock.now_ns())
        api.seed(system_objects(address, api.builtin.group_versions, now))
        task = asyncio.create_task(restore_system_objects(api, self.world.clock))
        try:
            yield
        finally:
            await cancel_tasks([task])

    @property
    def url(self) -> str:
        """The server's base URL."""
        return self.server.url

    @property
    def clock(self) -> VirtualClock:
        """The cluster's clock; raises TypeError if it is not a VirtualClock."""
        clock = self.world.clock
        if not isinstance(clock, VirtualClock):
            raise TypeError(f"the cluster was created with a clock of another type: {clock!r}")
        return clock

    def add_user(self, name: str, groups: Sequence[str] = ()) -> UserAccess:
        """Add a user, and return the token and a kubeconfig; raises ValueError without TLS."""
        issue = self.world.management.add_user
        return user_access(self.kubeconfig_path, name, lambda: issue(name, groups))

    @property
    def address(self) -> str:
        """The host and port that were passed to the cluster."""
        host, port = self._address
        return f"{host}:{port}"

    def write_kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig with the administrator's credentials."""
        return self._access.write_kubeconfig(path, self.url)

    def fork(self, snapshot: str = "") -> ServedCluster:
        """Return a new cluster, not yet entered, with the state of a snapshot or the current one.

        It listens on a free port and accepts the same credentials. Raises StatusError (404).
        """
        world = self.world.fork(snapshot)
        return ServedCluster(world, self._run, self._access, self._address[0], 0)

    def _serve_fork(self, snapshot: str) -> Server:
        world = self.world.fork(snapshot)
        return self._serve(world, BackgroundTasks(world, self._run, self._access.certificate))

    def _serve(self, world: World, background_tasks: BackgroundTasks) -> Server:
        options = ServerOptions(
            authenticator=self._access.authenticator(world.api.tokens.user_of),
            tls=self._access.tls.server if self._access.tls else None,
            management=world.management,
            fork=self._serve_fork,
            background_tasks=background_tasks,
        )
        return Server(world.api, world.clock, world.rng, options)


class FakeCluster(ServedCluster):
    """An API server on a free port of the loopback interface, as an async context manager.

    ``run`` names the control-plane components that run: ``none``, ``all``, or a comma-separated
    list (UnknownComponentError for others). Without ``clock`` the cluster uses the host's time
    until :attr:`clock` is paused or moved. ``port`` 0 picks a free port. ``history`` is how many
    events of a resource can be replayed. ``tls`` requires the extra of that name
    (MissingExtraError); clients without credentials are rejected. ``token`` is the administrator's,
    ``tokens`` are other users'; both need ``tls`` (ValueError). ``rbac``: the roles and bindings in
    the store are enforced, and clients without credentials are ``system:anonymous``, as upstream.
    ``bootstrap``: the server has the objects that kube-apiserver creates for itself, such as the
    Service ``kubernetes`` and the default ClusterRoles.
    ``release`` is the Kubernetes release that the server reports (ServerVersionError).

    ``webhooks`` are functions, plain or async, that replace admission webhooks, by name: each takes
    an AdmissionReview and returns it with a response. ``services`` are the URLs of Services that
    webhook configurations name, by ``namespace/name``. ``kubelet`` is the simulation script of
    hollow kubelets, as a document or as YAML (ScriptError; see docs/kubelet.md); ``nodes`` is how
    many nodes they register, each with 8 CPUs and 32Gi (ValueError without kubelets). ``quirks``
    selects whether the component ``workloadspread`` has OpenKruise's quirks: ``fixed`` or
    ``upstream`` (UnknownModeError; see docs/workloadspread.md).

    ``scheduler`` is a KubeSchedulerConfiguration for the component of that name, as a document or
    as YAML (SchedulerConfigError; see docs/testing-your-extender.md); ``upstream`` is the release
    of kube-scheduler that it follows ("1.34"; UnknownReleaseError), with its default feature gates
    except ``feature_gates``. ``extender`` is the URL of an extender that is called for filter and
    preempt. ``extenders`` are functions, plain or async, by URL; each replaces the extender at that
    URL.
    """

    def __init__(
        self,
        *,
        run: str = DEFAULT_RUN,
        seed: int = 0,
        host: str = "127.0.0.1",
        port: int = 0,
        history: int = DEFAULT_HISTORY,
        clock: Clock | None = None,
        tls: bool = False,
        token: str = "",
        tokens: Mapping[str, User] | None = None,
        rbac: bool = False,
        bootstrap: bool = False,
        release: str = DEFAULT_SERVER_VERSION.name,
        webhooks: Mapping[str, WebhookFunction] | None = None,
        services: Mapping[str, str] | None = None,
        kubelet: ScriptSource = "",
        nodes: int = 0,
        quirks: str = "fixed",
        scheduler: ConfigurationSource = "",
        extender: str = "",
        extenders: Mapping[str, ExtenderFunction] | None = None,
        upstream: str = "",
        feature_gates: Mapping[str, bool] | None = None,
        waiting: ExtenderWait | None = None,
    ) -> None:
        components = parse_run(run)
        options = ComponentOptions(
            register_nodes(read_simulation_script(kubelet), nodes, components),
            read_scheduler_options(
                scheduler, extender, extenders, upstream, waiting, feature_gates
            ),
            quirks_of_mode(quirks),
        )
        clock = clock or VirtualClock.from_host()
        world = create_world(clock, seed, history, ServerVersion(release), options)
        world.api.webhooks.handlers.update(webhooks or {})
        world.api.services.update(services or {})
        if rbac:
            world.api.enforce_rbac()
        anonymous = ANONYMOUS_USER if rbac else None
        access = ClientAccess(create_tls(host) if tls else None, token, tokens or {}, anonymous)
        super().__init__(world, components, access, host, port)
        self.bootstraps = bootstrap
        self._thread = ThreadedCluster[ServedCluster](lambda: self)

    def __enter__(self) -> ThreadedCluster[ServedCluster]:
        """Run this cluster in a thread, and return it with plain calls."""
        return self._thread.__enter__()

    def __exit__(self, *error: object) -> None:
        self._thread.__exit__(*error)

    @staticmethod
    def in_thread(**options: Any) -> ThreadedCluster[ServedCluster]:
        """Return a cluster with the same options in its own thread, as a context manager."""
        return ThreadedCluster(lambda: FakeCluster(**options))

    @staticmethod
    def as_process(
        *,
        run: str = DEFAULT_RUN,
        seed: int = 0,
        tls: bool = False,
        token: str = "",
        rbac: bool = False,
        bootstrap: bool = False,
        services: Mapping[str, str] | None = None,
        kubelet: Path | None = None,
        nodes: int = 0,
        quirks: str = "fixed",
        scheduler: Path | None = None,
        extender: str = "",
        upstream: str = "",
        feature_gates: Mapping[str, bool] | None = None,
    ) -> ProcessCluster:
        """Return a cluster in its own process, as a context manager.

        ``kubelet`` and ``scheduler`` are files with the simulation script and the scheduler's
        configuration.
        """
        arguments = ["--run", run, "--seed", str(seed), "--quirks", quirks]
        given = {
            "--kubelet": kubelet,
            "--nodes": nodes,
            "--scheduler-config": scheduler,
            "--extender": extender,
            "--upstream": upstream,
            "--feature-gates": ",".join(
                f"{name}={str(enabled).lower()}" for name, enabled in (feature_gates or {}).items()
            ),
        }
        for option, value in given.items():
            arguments += [option, str(value)] if value else []
        for service, url in (services or {}).items():
            arguments += ["--service", f"{service}={url}"]
        flags = {"--tls": tls, "--rbac": rbac, "--bootstrap": bootstrap}
        arguments += [flag for flag, is_set in flags.items() if is_set]
        return ProcessCluster((*arguments, *(["--token", token] if token else [])))
