"""The commands that do not need fakeapi: ``serve``, ``explain``, ``advise`` and ``record``.

:func:`build_command_line` returns the typer application; its argument starts the embedded cluster
of ``serve --embedded``. A usage error exits with code 2 and one line on stderr.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from typer.exceptions import TyperException

from extender.cli import workloadspread_commands
from extender.cli.config_validation import load_serving_config
from extender.config.component_config import Config, filters_from_config, find_policy, load_config
from extender.config.strict_decoding import ConfigError
from extender.eviction.advise.command import ADVISE_EXAMPLE, advise_eviction
from extender.eviction.command import EVICT_EXAMPLE, explain_evict
from extender.explain.cluster_files import (
    ReplicaFileError,
    load_cluster,
    load_pod,
    load_replica_set_pods,
)
from extender.explain.decisions import (
    UnknownNodeError,
    explain_preempt,
    filter_document,
    preempt_document,
    require_known_nodes,
    scale_down_document,
)
from extender.explain.workloadspread_files import SpreadFileError
from extender.kube.decoders.manifests import ManifestError
from extender.kube.decoders.pods import epoch_ns
from extender.kube.decoders.typed_decoder import ObjectError
from extender.kube.rest.api_errors import ConnectionConfigError
from extender.kube.rest.clock import SystemClock
from extender.kube.rest.kubeconfig import connect
from extender.kube.rest.transport import Transport
from extender.observability.decision_log import DecisionLog
from extender.protocol.verb_context import Search
from extender.recording import command as recording
from extender.secure_serving.dynamic_certificates import CertificateError
from extender.secure_serving.open_files import require_open_files
from extender.server.process import ServerProcess, run_server
from extender.server.python_gc import limit_collections
from extender.terminal.command_line import (
    ClusterFilesOption,
    ConfigFileOption,
    FeatureGatesOption,
    FiltersOption,
    KubeconfigOption,
    NowOption,
    OutputOption,
    PodFileOption,
    ServerOption,
    UpstreamOption,
    exit_with_errors,
    log_line,
    log_to_stderr,
    parse_namespaced_name,
    print_output,
    split_names,
    stop_signal,
    usage_example,
)
from extender.terminal.loop_errors import log_loop_errors
from extender.terminal.tables import filter_table, preempt_table, scale_down_table
from policies import decide_filter
from policies.kubernetes.releases import UnknownReleaseError, gate_warnings, release
from policies.preemption.filtering import UnknownFilterError, filters_named
from policies.preemption.policy import SchedulerRules
from policies.replicaset import decide_scale_down


@dataclass(frozen=True, slots=True)
class EmbeddedCluster:
    """A cluster in this process, a decision log, and a callback for when the extender is served."""

    transport: Transport
    decision_log: DecisionLog
    on_serving: Callable[[ServerProcess], Awaitable[None]]


StartEmbedded = Callable[[str], AbstractAsyncContextManager[EmbeddedCluster]]
"""Starts the cluster of a shipped scenario by name; raises ConfigError."""

USER_ERRORS = (
    CertificateError,
    ConfigError,
    ConnectionConfigError,
    ManifestError,
    ObjectError,
    ReplicaFileError,
    SpreadFileError,
    UnknownFilterError,
    UnknownNodeError,
    UnknownReleaseError,
)


def build_command_line(embed: StartEmbedded) -> typer.Typer:
    """Return the command line; ``embed`` starts the cluster that ``serve --embedded`` names."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    explain = typer.Typer(rich_markup_mode=None)
    app.add_typer(explain, name="explain", help="Explain a decision; no server needed.")
    explain.command("filter", epilog=usage_example("explain filter --cluster c.yaml --pod p.yaml"))(
        _explain_filter
    )
    explain.command(
        "preempt", epilog=usage_example("explain preempt --cluster c.yaml --pod p.yaml")
    )(_explain_preempt)
    command = "explain scaledown --cluster c.yaml --replicaset default/web --delete 2"
    explain.command("scaledown", epilog=usage_example(command))(_explain_scaledown)
    explain.command("evict", epilog=usage_example(EVICT_EXAMPLE))(explain_evict)
    explain.command("spread", epilog=workloadspread_commands.EXAMPLE)(
        workloadspread_commands.explain_spread_command
    )
    advise = typer.Typer(rich_markup_mode=None)
    app.add_typer(advise, name="advise", help="Forecast evictions in a live cluster.")
    advise.command("eviction", epilog=usage_example(ADVISE_EXAMPLE))(advise_eviction)
    app.command("check-config", epilog=usage_example("check-config reprieve.yaml"))(_check_config)
    app.command("serve", epilog=usage_example("serve --embedded demo --port 0"))(
        _serve_command(embed)
    )
    app.command("record", epilog=recording.EXAMPLE)(recording.record_events)
    return app


def run_command_line(app: typer.Typer) -> None:
    """Run a command line; a usage error prints one line on stderr and exits with code 2."""
    log_to_stderr()
    try:
        code = app(prog_name="reprieve", standalone_mode=False)
    except TyperException as error:
        exit_with_errors(f"{error.format_message().rstrip('.')}; see reprieve --help")
    except ConfigError as error:
        exit_with_errors(*error.errors)
    except USER_ERRORS as error:
        exit_with_errors(str(error))
    sys.exit(code)


def _check_config(
    file: Annotated[Path, typer.Argument(metavar="F", help="A configuration file, as for serve.")],
) -> None:
    """Validate a configuration file, and print all of its errors."""
    _log_gate_warnings(load_serving_config(file, {}, SystemClock()))
    print(f"{file}: valid")  # noqa: T201 - the answer


def _explain_filter(
    cluster: ClusterFilesOption,
    pod: PodFileOption,
    config: ConfigFileOption = None,
    upstream: UpstreamOption = None,
    feature_gates: FeatureGatesOption = None,
    filters: FiltersOption = None,
    now: NowOption = None,  # noqa: ARG001 - filtering is independent of time; every explain has it
    output: OutputOption = None,
) -> None:
    """Show the nodes on which a pod fits now, and why each other node is rejected."""
    settings = _explanation_settings(config, upstream, feature_gates)
    rules = _explanation_rules(settings, filters)
    files = load_cluster(cluster, rules.release)
    decision = decide_filter(load_pod(pod, files, rules.release), files.snapshot, rules)
    print_output(output, lambda: filter_document(decision), lambda: filter_table(decision))


def _explain_preempt(
    cluster: ClusterFilesOption,
    pod: PodFileOption,
    config: ConfigFileOption = None,
    policy: Annotated[
        str | None,
        typer.Option("--policy", metavar="NAME|FILE", help="Order of victims and candidates."),
    ] = None,
    upstream: UpstreamOption = None,
    feature_gates: FeatureGatesOption = None,
    nodes: Annotated[
        str | None, typer.Option("--nodes", metavar="a,b", help="Try only these nodes.")
    ] = None,
    filters: FiltersOption = None,
    now: NowOption = None,  # noqa: ARG001 - preemption is independent of time; every explain has it
    output: OutputOption = None,
) -> None:
    """Show which pods would be preempted for a pod, which are reprieved, and why."""
    settings = _explanation_settings(config, upstream, feature_gates)
    rules = _explanation_rules(settings, filters, policy)
    files = load_cluster(cluster, rules.release)
    preemptor = load_pod(pod, files, rules.release)
    potential = None
    if nodes is not None:
        source = f"--cluster {', '.join(cluster)}"
        potential = require_known_nodes(split_names(nodes), files.snapshot, source)
    order = rules.policy.candidates
    decision = explain_preempt(preemptor, files.snapshot, rules, potential)
    print_output(output, lambda: preempt_document(decision), lambda: preempt_table(decision, order))


def _explain_scaledown(
    cluster: ClusterFilesOption,
    replicaset: Annotated[
        str,
        typer.Option(
            "--replicaset",
            metavar="NS/NAME",
            parser=parse_namespaced_name,
            help="The ReplicaSet to scale down.",
        ),
    ],
    delete: Annotated[
        int, typer.Option("--delete", metavar="N", min=0, help="Number of pods to delete.")
    ],
    now: NowOption = None,
    output: OutputOption = None,
) -> None:
    """Show which pods a ReplicaSet would delete first when it is scaled down, and why."""
    replicas = load_replica_set_pods(cluster, replicaset, delete)
    now_ns = SystemClock().now_ns() if now is None else epoch_ns(now)
    decision = decide_scale_down(replicas.active, replicas.crowding, delete, now_ns)
    print_output(
        output,
        lambda: scale_down_document(decision),
        lambda: scale_down_table(decision, replicaset),
    )


def _serve_command(embed: StartEmbedded) -> Callable[..., None]:
    def serve(
        config: Annotated[
            Path | None, typer.Option("--config", metavar="F", help="A configuration file.")
        ] = None,
        kubeconfig: KubeconfigOption = None,
        server: ServerOption = None,
        embedded: Annotated[
            str | None,
            typer.Option("--embedded", metavar="SCENARIO", help="Start a bundled fake cluster."),
        ] = None,
        host: Annotated[str | None, typer.Option("--host", help="Default 127.0.0.1.")] = None,
        port: Annotated[
            int | None,
            typer.Option("--port", min=0, max=65535, help="Default 8888; 0: any free port."),
        ] = None,
        policy: Annotated[
            str | None, typer.Option("--policy", metavar="NAME|FILE", help="Order of victims.")
        ] = None,
        search: Annotated[
            Search | None, typer.Option("--search", help="Nodes that preempt considers.")
        ] = None,
        upstream: UpstreamOption = None,
        feature_gates: FeatureGatesOption = None,
    ) -> None:
        """Answer kube-scheduler's filter and preempt calls."""
        flags = {
            "host": host,
            "port": port,
            "policy": policy,
            "search": search,
            "upstream": upstream,
            "feature_gates": feature_gates,
        }
        overrides = {name: value for name, value in flags.items() if value is not None}
        settings = load_serving_config(config, overrides, SystemClock())
        _log_gate_warnings(settings)
        if sum(source is not None for source in (kubeconfig, server, embedded)) > 1:
            raise ConfigError("--kubeconfig, --server and --embedded exclude each other")
        if embedded is not None and settings.tls is not None:
            raise ConfigError("--embedded serves plain HTTP; expected no tls")
        require_open_files(settings.limits.connections)
        asyncio.run(_serve(settings, kubeconfig, server, embedded, embed))

    return serve


async def _serve(
    config: Config,
    kubeconfig: Path | None,
    server: str | None,
    embedded: str | None,
    embed: StartEmbedded,
) -> None:
    log_loop_errors()
    async with AsyncExitStack() as stack:
        cluster: EmbeddedCluster | None = None
        transport: Transport
        if embedded is not None:
            cluster = await stack.enter_async_context(embed(embedded))
            transport = cluster.transport
        else:
            transport = await connect(server, kubeconfig)
            stack.push_async_callback(transport.close)
        decision_log = None if cluster is None else cluster.decision_log
        # Used for jitter only: no decision depends on it.
        rng = random.Random()  # noqa: S311
        try:
            extender = await stack.enter_async_context(
                run_server(config, transport, SystemClock(), rng, decision_log)
            )
        except OSError as error:
            raise ConfigError(f"{config.host}:{config.port}: {error.strerror}") from None
        stop = stop_signal()  # before the line that tells a parent process that the server is up
        print(f"listening on {extender.url}", flush=True)  # noqa: T201 - part of the interface
        if cluster is not None:
            await cluster.on_serving(extender)
        limiting = asyncio.create_task(
            limit_collections(extender.wait_synced, SystemClock(), extender.is_idle)
        )
        await stop.wait()
        limiting.cancel()


def _explanation_settings(
    config: Path | None, upstream: str | None, feature_gates: dict[str, bool] | None
) -> Config:
    """Return the configuration of an explanation, overridden by flags."""
    settings = Config() if config is None else load_config(config)
    settings = msgspec.structs.replace(
        settings,
        upstream=upstream or settings.upstream,
        feature_gates=settings.feature_gates if feature_gates is None else feature_gates,
    )
    _log_gate_warnings(settings)
    return settings


def _explanation_rules(
    settings: Config, filters: str | None, policy: str | None = None
) -> SchedulerRules:
    """Return the rules of an explanation."""
    known = filters_from_config(settings)
    return SchedulerRules(
        release(settings.upstream, settings.feature_gates),
        known if filters is None else filters_named(split_names(filters), known),
        find_policy(policy or settings.policy),
        frozenset(settings.scheduler_names),
    )


def _log_gate_warnings(settings: Config) -> None:
    """Log one line for each feature gate that has no effect in the configured release."""
    for warning in gate_warnings(settings.upstream, settings.feature_gates):
        log_line(f"featureGates: {warning}")
