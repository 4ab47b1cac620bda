"""``reprieve explain filter``, ``preempt`` and ``scaledown``: decisions on a cluster in files."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from extender.cli.config_validation import log_gate_warnings
from extender.config.component_config import Config, filters_from_config, load_config
from extender.config.preemption_policy import find_policy
from extender.explain.cluster_files import (
    LoadedCluster,
    load_cluster,
    load_pod,
    load_replica_set_pods,
)
from extender.explain.cluster_objects import (
    SCHEDULING_KINDS,
    ClusterObjects,
    WarnAboutFields,
    find_pod,
)
from extender.explain.cluster_source import ClusterSource
from extender.explain.decisions import (
    explain_preempt,
    filter_document,
    preempt_document,
    require_known_nodes,
    scale_down_document,
    victim_names,
)
from extender.kube.decoders.pods import epoch_ns
from extender.kube.rest.clock import SystemClock
from extender.terminal.command_line import (
    ClusterFilesOption,
    ConfigFileOption,
    ContextOption,
    FeatureGatesOption,
    FiltersOption,
    KubeconfigOption,
    NowOption,
    OutputOption,
    PodOption,
    ServerOption,
    UpstreamOption,
    parse_namespaced_name,
    split_names,
)
from extender.terminal.output import Answer, OutputFormat, print_answer
from extender.terminal.program import log_warnings
from extender.terminal.tables import filter_table, preempt_table, scale_down_table
from policies import decide_filter
from policies.kubernetes.releases import release
from policies.kubernetes.snapshot import Snapshot
from policies.preemption.explanation import PreemptionExplanation
from policies.preemption.filtering import filters_named
from policies.preemption.policy import SchedulerRules
from policies.replicaset import decide_scale_down

FILTER_EXAMPLE: Final = "explain filter --cluster c.yaml --pod p.yaml"
PREEMPT_EXAMPLE: Final = "explain preempt --cluster c.yaml --pod p.yaml"
SCALEDOWN_EXAMPLE: Final = "explain scaledown --cluster c.yaml --replicaset default/web --delete 2"


def explain_filter_command(warn: WarnAboutFields) -> Callable[..., None]:
    """Return the command; ``warn`` prints unknown fields of files."""

    def explain_filter(
        pod: PodOption,
        cluster: ClusterFilesOption = None,
        kubeconfig: KubeconfigOption = None,
        context: ContextOption = None,
        server: ServerOption = None,
        config: ConfigFileOption = None,
        upstream: UpstreamOption = None,
        feature_gates: FeatureGatesOption = None,
        filters: FiltersOption = None,
        now: NowOption = None,  # noqa: ARG001 - filtering is independent of time; every explain has it
        output: OutputOption = OutputFormat.TABLE,
    ) -> None:
        """Show the nodes on which a pod fits now, and why each other node is rejected."""
        settings = explanation_settings(config, upstream, feature_gates)
        rules = explanation_rules(settings, filters)
        objects = ClusterSource(cluster or (), kubeconfig, context, server, warn).read(
            SCHEDULING_KINDS
        )
        loaded = _load_with_warnings(objects, rules)
        scheduled = load_pod(find_pod(pod, objects, warn), loaded, rules.release)
        decision = decide_filter(scheduled, loaded.snapshot, rules)
        answer = Answer(
            lambda: filter_document(decision),
            lambda rows: filter_table(decision, rows),
            lambda: (f"node/{name}" for name in sorted(decision.feasible)),
        )
        print_answer(output, answer)

    return explain_filter


def explain_preempt_command(warn: WarnAboutFields) -> Callable[..., None]:
    """Return the command; ``warn`` prints unknown fields of files."""

    def explain_preempt_pod(
        pod: PodOption,
        cluster: ClusterFilesOption = None,
        kubeconfig: KubeconfigOption = None,
        context: ContextOption = None,
        server: ServerOption = None,
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
        now: NowOption = None,
        output: OutputOption = OutputFormat.TABLE,
    ) -> None:
        """Show which pods would be preempted for a pod, which are reprieved, and why."""
        settings = explanation_settings(config, upstream, feature_gates)
        rules = explanation_rules(settings, filters, policy)
        objects = ClusterSource(cluster or (), kubeconfig, context, server, warn).read(
            SCHEDULING_KINDS
        )
        loaded = _load_with_warnings(objects, rules)
        found = find_pod(pod, objects, warn)
        preemptor = load_pod(found, loaded, rules.release, rules.annotations)
        snapshot = loaded.at(_decision_time(now))
        potential = None
        if nodes is not None:
            potential = require_known_nodes(split_names(nodes), snapshot, objects.source)
        explanation = explain_preempt(preemptor, snapshot, rules, potential)
        answer = Answer(
            lambda: preempt_document(explanation),
            lambda rows: preempt_table(explanation, rows),
            lambda: victim_names(explanation),
            page=lambda: _preempt_page(explanation, snapshot, rules),
        )
        print_answer(output, answer)

    return explain_preempt_pod


def explain_scaledown_command(warn: WarnAboutFields) -> Callable[..., None]:
    """Return the command; ``warn`` prints unknown fields of files."""

    def explain_scaledown(
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
        cluster: ClusterFilesOption = None,
        kubeconfig: KubeconfigOption = None,
        context: ContextOption = None,
        server: ServerOption = None,
        now: NowOption = None,
        output: OutputOption = OutputFormat.TABLE,
    ) -> None:
        """Show which pods a ReplicaSet would delete first when it is scaled down, and why."""
        objects = ClusterSource(cluster or (), kubeconfig, context, server, warn).read(
            SCHEDULING_KINDS
        )
        replicas = load_replica_set_pods(objects, replicaset, delete)
        decision = decide_scale_down(
            replicas.active, replicas.crowding, delete, _decision_time(now)
        )
        answer = Answer(
            lambda: scale_down_document(decision),
            lambda rows: scale_down_table(decision, replicaset, rows),
            lambda: (f"pod/{replica.name}" for replica in decision.victims),
        )
        print_answer(output, answer)

    return explain_scaledown


def _preempt_page(
    explanation: PreemptionExplanation, snapshot: Snapshot, rules: SchedulerRules
) -> str:
    from extender.ledger_page.explanation_view import explanation_document  # imports jinja2

    return explanation_document(explanation, snapshot, rules)


def explanation_settings(
    config: Path | None, upstream: str | None, feature_gates: dict[str, bool] | None
) -> Config:
    """Return the configuration of an explanation, overridden by flags."""
    settings = Config() if config is None else load_config(config)
    settings = msgspec.structs.replace(
        settings,
        upstream=upstream or settings.upstream,
        feature_gates=settings.feature_gates if feature_gates is None else feature_gates,
    )
    log_gate_warnings(settings)
    return settings


def explanation_rules(
    settings: Config, filters: str | None, policy: str | None = None
) -> SchedulerRules:
    """Return the rules of an explanation."""
    known = filters_from_config(settings)
    found = find_policy(policy or settings.policy)
    return SchedulerRules(
        release(settings.upstream, settings.feature_gates),
        known if filters is None else filters_named(split_names(filters), known),
        found.default,
        frozenset(settings.scheduler_names),
        policy_rules=found.rules,
    )


def _decision_time(now: datetime | None) -> int:
    """Return the time of a decision in nanoseconds since the epoch; the current one by default."""
    return SystemClock().now_ns() if now is None else epoch_ns(now)


def _load_with_warnings(objects: ClusterObjects, rules: SchedulerRules) -> LoadedCluster:
    """Return the cluster; print the pods whose priority is unknown, up to a limit."""
    loaded = load_cluster(objects, rules.release, rules.annotations)
    log_warnings(loaded.warnings(), "pods of unknown PriorityClasses")
    return loaded
