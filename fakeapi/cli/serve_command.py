"""``reprieve fakeapi``: the API server as a process, and the options of its components.

Tests start it often and wait for it, so this module imports nothing that only other commands need.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Final

import typer

from extender.config.strict_decoding import ConfigError
from extender.controllers.process.controller_manager import UnknownComponentError
from extender.kube.decoders.manifests import ManifestError
from extender.secure_serving.open_files import MANY_FILES, raise_open_file_limit
from extender.secure_serving.pem import MissingExtraError
from extender.terminal.command_line import FeatureGatesOption, stop_signal
from extender.terminal.loop_errors import log_loop_errors
from extender.terminal.program import log_line
from fakeapi.apiserver.store.object_store import StoreEvent
from fakeapi.apiserver.testing.fault_injection import PlanError
from fakeapi.apiserver.wire.errors import StatusError
from fakeapi.controlplane.components import COMPONENTS, DEFAULT_RUN, parse_run
from fakeapi.controlplane.kubelet.scripts import MAX_NODES, ScriptError
from fakeapi.controlplane.scheduler.options import SchedulerConfigError
from fakeapi.testing.fake_cluster import FakeCluster
from policies.kubernetes.releases import NEWEST, UnknownReleaseError, gate_warnings
from policies.workloadspread.quirks import UnknownModeError

KubeconfigOut = Annotated[
    Path | None,
    typer.Option("--kubeconfig-out", metavar="F", help="File to write a kubeconfig to."),
]
KubeletScriptFile = Annotated[
    str, typer.Option("--kubelet", metavar="FILE", help="Simulation script of the kubelets.")
]
SchedulerConfig = Annotated[
    str, typer.Option("--scheduler-config", metavar="FILE", help="A KubeSchedulerConfiguration.")
]
UpstreamVersion = Annotated[
    str,
    typer.Option("--upstream", metavar="V", help="kube-scheduler release to follow, such as 1.34."),
]

_WITHOUT_CONTROLLER: Final = {
    "cronjobs.batch": ("job", "no component creates their Jobs"),
    "horizontalpodautoscalers.autoscaling": ("deployment", "no component scales their targets"),
}
"""Kinds that have no controller here, by resource; with the component that users expect it from."""

_FREEZE_SECONDS: Final = 10.0
_COLLECTED_SHARE: Final = 4.0
_COMPONENT_NOUNS: Final = {"kubelet": "kubelets", "scheduler": "scheduler"}


def read_component_file(option: str, path: str, component: str, run: str) -> bytes:
    """Read the file of an option that needs a component.

    Return b"" for an empty path. Raise ConfigError and UnknownComponentError.
    """
    if not path:
        return b""
    check_component_runs(option, component, run)
    return read_option_file(option, path)


def check_scheduler_options(run: str, options: Mapping[str, str]) -> None:
    """Check the scheduler's options; raises ConfigError and UnknownComponentError."""
    for option, value in options.items():
        if value:
            check_component_runs(option, "scheduler", run)
    url = options["--extender"]
    if url and not url.startswith(("http://", "https://")):
        raise ConfigError(f"--extender: {url!r}; expected http://HOST:PORT, optionally with a path")


def check_component_runs(option: str, component: str, run: str) -> None:
    """Check that an option's component runs; raises ConfigError, UnknownComponentError."""
    if component not in parse_run(run):
        missing = f"no {_COMPONENT_NOUNS[component]} in --run {run}"
        raise ConfigError(f"{option}: {missing}; expected '{component}' in it, or 'all'")


def read_option_file(option: str, file: str) -> bytes:
    """Read the file of an option ("-": standard input); raises ConfigError."""
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(f"{option}: {display_name(file)}: {error.strerror or error}") from None


def display_name(file: str) -> str:
    """Return the name of a file in messages."""
    return "standard input" if file == "-" else file


@contextmanager
def component_option_errors(kubelet: str, scheduler_config: str) -> Iterator[None]:
    """Raise ConfigError, with the option, for errors of the options of components."""
    try:
        yield
    except ScriptError as error:
        raise ConfigError(f"--kubelet: {display_name(kubelet)}: {error}") from None
    except SchedulerConfigError as error:
        where = f"--scheduler-config: {display_name(scheduler_config)}"
        raise ConfigError(f"{where}: {error}") from None
    except UnknownReleaseError as error:
        raise ConfigError(f"--upstream: {error}") from None


EXAMPLE: Final = "fakeapi --port 0 --run all --nodes 3 --load cluster.yaml"
_QUIRKS: Final = "WorkloadSpread: with OpenKruise's quirks (upstream) or without (fixed)."
_RUN: Final = f"Components: {', '.join(COMPONENTS)}; or all, or none."


@dataclass(frozen=True, slots=True)
class OutputFiles:
    """The files that the server writes: a kubeconfig and a recording."""

    kubeconfig: Path | None
    record: str


def serve_fakeapi(
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any free port.")] = 8001,
    load: Annotated[
        list[str] | None,
        typer.Option(
            "--load",
            metavar="FILE",
            help="Objects to load at startup (or a glob); may be repeated.",
        ),
    ] = None,
    kubeconfig_out: KubeconfigOut = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of UIDs, generated names, faults.")] = 0,
    faults: Annotated[
        str, typer.Option("--faults", metavar="FILE", help="Fault injection plan.")
    ] = "",
    kubelet: KubeletScriptFile = "",
    nodes: Annotated[
        int,
        typer.Option("--nodes", min=0, max=MAX_NODES, help="Simulated nodes (8 CPUs, 32Gi each)."),
    ] = 0,
    quirks: Annotated[str, typer.Option("--quirks", metavar="MODE", help=_QUIRKS)] = "fixed",
    extender: Annotated[
        str, typer.Option("--extender", metavar="URL", help="URL prefix of a scheduler extender.")
    ] = "",
    scheduler_config: SchedulerConfig = "",
    upstream: UpstreamVersion = "",
    feature_gates: FeatureGatesOption = None,
    run: Annotated[str, typer.Option("--run", metavar="NAME,…", help=_RUN)] = DEFAULT_RUN,
    record: Annotated[
        str, typer.Option("--record", metavar="F", help="File to record all events to, for replay.")
    ] = "",
    tls: Annotated[  # noqa: FBT002 - a flag of the command line
        bool, typer.Option("--tls", help="Serve HTTPS; the kubeconfig has a client certificate.")
    ] = False,
    token: Annotated[
        str, typer.Option("--token", metavar="T", help="The administrator's token; needs --tls.")
    ] = "",
    rbac: Annotated[  # noqa: FBT002 - a flag of the command line
        bool, typer.Option("--rbac", help="Enforce RBAC.")
    ] = False,
    bootstrap: Annotated[  # noqa: FBT002 - a flag of the command line
        bool, typer.Option("--bootstrap", help="Create the objects of kube-apiserver itself.")
    ] = False,
    service: Annotated[
        list[str] | None,
        typer.Option(
            "--service",
            metavar="NAMESPACE/NAME=URL",
            help="Address of a Service that webhooks refer to; may be repeated.",
        ),
    ] = None,
) -> None:
    """Serve a Kubernetes API from this process."""
    services = dict(_read_service(text) for text in service or ())
    if token and not tls:
        raise ConfigError("--token: clients send tokens over TLS only; expected --tls as well")
    try:
        script = read_component_file("--kubelet", kubelet, "kubelet", run)
        if nodes:
            check_component_runs("--nodes", "kubelet", run)
        configuration = read_component_file(
            "--scheduler-config", scheduler_config, "scheduler", run
        )
        check_scheduler_options(
            run,
            {
                "--extender": extender,
                "--upstream": upstream,
                "--feature-gates": ",".join(feature_gates or ()),
            },
        )
    except UnknownComponentError as error:
        raise ConfigError(str(error)) from None

    def create() -> FakeCluster:
        return FakeCluster(
            run=run,
            seed=seed,
            host=host,
            port=port,
            tls=tls,
            token=token,
            rbac=rbac,
            bootstrap=bootstrap,
            services=services,
            kubelet=script,
            nodes=nodes,
            quirks=quirks,
            scheduler=configuration,
            extender=extender,
            upstream=upstream,
            feature_gates=feature_gates,
        )

    unwritten = _recording_errors() if record else ()
    try:
        with component_option_errors(kubelet, scheduler_config):
            for warning in gate_warnings(upstream or NEWEST.name, feature_gates or {}):
                log_line(f"--feature-gates: {warning}")
            asyncio.run(_serve(create, load or [], faults, OutputFiles(kubeconfig_out, record)))
    except unwritten as error:
        log_line(f"--record: {error}")
        raise typer.Exit(1) from None
    except (MissingExtraError, UnknownComponentError) as error:
        raise ConfigError(str(error)) from None
    except UnknownModeError as error:
        raise ConfigError(f"--{error}") from None


def _read_service(text: str) -> tuple[str, str]:
    """Read ``namespace/name=URL``; raises ConfigError."""
    service, _, url = text.partition("=")
    namespace, _, name = service.partition("/")
    if not namespace or not name or not url.startswith("https://"):
        raise ConfigError(f"--service: {text!r}; expected NAMESPACE/NAME=https://HOST[:PORT]")
    return service, url


async def _serve(
    create: Callable[[], FakeCluster], files: list[str], faults: str, outputs: OutputFiles
) -> None:
    raise_open_file_limit(MANY_FILES)
    log_loop_errors()
    cluster = create()
    _log_missing_controllers(cluster)
    try:
        cluster.load(files)
    except StatusError as error:
        raise ManifestError(error.message) from None
    if faults:
        _plan_faults(cluster, faults)
    async with AsyncExitStack() as stack:
        stop = stop_signal()  # before files are written, which the end of the block completes
        recording = _record(cluster, outputs.record, stack) if outputs.record else None
        await _start(cluster, stack)
        _limit_collections(stack)
        _write_kubeconfig(cluster, outputs.kubeconfig)
        print(f"listening on {cluster.url}", flush=True)  # noqa: T201 - part of the interface
        if recording is not None:
            recording.add_done_callback(lambda _: stop.set())
        await stop.wait()
        if recording is not None and recording.done():
            recording.result()


def _limit_collections(stack: AsyncExitStack) -> None:
    """Keep the objects of a large cluster out of garbage collections until the block ends.

    They are frozen often, because heartbeats and pods add many of them, and rarely collected all
    together, which can take a second: nearly all that are replaced are freed without a collection.
    """
    from extender.kube.rest.clock import SystemClock  # imported on use: start-up time
    from extender.server.python_gc import limit_collections

    clock = SystemClock()
    freezing = limit_collections(
        partial(clock.sleep, 1), clock, interval_seconds=_FREEZE_SECONDS, share=_COLLECTED_SHARE
    )
    task = asyncio.create_task(freezing)
    stack.callback(task.cancel)


def _log_missing_controllers(cluster: FakeCluster) -> None:
    """Log the first object of a kind without a controller, where one is expected."""
    logs = {
        resource: cache(partial(log_line, f"{resource}: stored without effect, {missing}"))
        for resource, (companion, missing) in _WITHOUT_CONTROLLER.items()
        if companion in cluster.control_plane.run
    }

    def log_first(event: StoreEvent | None) -> None:
        log = logs.get(event.kind.resource) if event else None
        if log is not None:
            log()

    cluster.api.store.tap(log_first)


def _recording_errors() -> tuple[type[Exception], ...]:
    from extender.recording.files import RecordingError  # imported on use: start-up time

    return (RecordingError,)


def _record(cluster: FakeCluster, path: str, stack: AsyncExitStack) -> asyncio.Task[None]:
    """Start recording and return the task that flushes the file."""
    from extender.kube.rest.clock import SystemClock  # imported on use: start-up time

    try:
        file = stack.enter_context(cluster.record(path))
    except _recording_errors() as error:
        raise ConfigError(f"--record: {error}") from None
    task = asyncio.create_task(file.flush_periodically(SystemClock()))
    stack.callback(task.cancel)
    return task


def _plan_faults(cluster: FakeCluster, file: str) -> None:
    try:
        cluster.world.management.faults.read(read_option_file("--faults", file))
    except PlanError as error:
        raise ConfigError(f"--faults: {display_name(file)}: {error}") from None


async def _start(cluster: FakeCluster, stack: AsyncExitStack) -> None:
    try:
        await stack.enter_async_context(cluster)
    except OSError as error:
        raise ConfigError(f"{cluster.address}: {error.strerror or error}") from None


def _write_kubeconfig(cluster: FakeCluster, path: Path | None) -> None:
    try:
        if path is not None:
            cluster.write_kubeconfig(path)
    except OSError as error:
        raise ConfigError(f"--kubeconfig-out: {path}: {error.strerror or error}") from None
