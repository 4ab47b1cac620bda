"""The commands for WorkloadSpreads: ``explain spread`` and ``validate workloadspread``."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Annotated, Final

import msgspec
import typer

from extender.explain.cluster_files import load_cluster
from extender.explain.cluster_objects import (
    SPREAD_KINDS,
    ClusterObjects,
    WarnAboutFields,
    find_pod,
    read_objects,
)
from extender.explain.cluster_source import ClusterSource
from extender.explain.validate_workloadspread import load_spread, spread_errors, validation_document
from extender.explain.workloadspread import (
    Operation,
    SpreadQuery,
    build_query,
    explain_spread,
    spread_document,
)
from extender.explain.workloadspread_files import WorkloadSpreadFiles
from extender.explain.workloadspread_tables import errors_table, spread_table
from extender.kube.decoders.manifests import ManifestError
from extender.kube.decoders.pods import epoch_ns
from extender.kube.decoders.typed_decoder import ObjectError
from extender.kube.rest.clock import SystemClock
from extender.kube.workloadspread.patch_validation import PodSpecValidation
from extender.kube.workloadspread.pod_injection import SchedulingSimulation
from extender.terminal.command_line import (
    ClusterFilesOption,
    ContextOption,
    KubeconfigOption,
    NowOption,
    OutputOption,
    ServerOption,
    parse_namespaced_name,
    split_names,
)
from extender.terminal.output import Answer, OutputFormat, print_answer
from policies.preemption.policy import DEFAULT_RULES
from policies.workloadspread.quirks import MODES, Quirks
from policies.workloadspread.reconcile import SpreadRules
from policies.workloadspread.workload_versions import DEFAULT_VERSIONED_KINDS, versioned_kinds

SPREAD_EXAMPLE: Final = "explain spread --cluster c.yaml --workloadspread default/web"
VALIDATE_EXAMPLE: Final = "validate workloadspread spread.yaml --cluster c.yaml"


class QuirksChoice(Enum):
    """Whether the quirks of OpenKruise are followed or fixed."""

    UPSTREAM = "upstream"
    FIXED = "fixed"

    @property
    def quirks(self) -> Quirks:
        """The quirks that are switched on."""
        return MODES[self.value]


QuirksOption = Annotated[
    QuirksChoice,
    typer.Option("--quirks", help="With OpenKruise's quirks (upstream) or without (fixed)."),
]


def explain_spread_command(warn: WarnAboutFields) -> Callable[..., None]:
    """Return the command; ``warn`` prints unknown fields of files."""

    def explain_spread_of_workload(
        workloadspread: Annotated[
            str,
            typer.Option(
                "--workloadspread",
                metavar="NS/NAME",
                parser=parse_namespaced_name,
                help="The WorkloadSpread to explain.",
            ),
        ],
        cluster: ClusterFilesOption = None,
        kubeconfig: KubeconfigOption = None,
        context: ContextOption = None,
        server: ServerOption = None,
        now: NowOption = None,
        pod: Annotated[
            str | None,
            typer.Option(
                "--pod", metavar="FILE", help="The pod of an admission request; see --operation."
            ),
        ] = None,
        operation: Annotated[
            Operation | None,
            typer.Option("--operation", help="Operation of the admission request."),
        ] = None,
        versioned_kinds: Annotated[
            str | None,
            typer.Option(
                "--versioned-kinds",
                metavar="KIND,…",
                help="Kinds whose versions are counted separately; default deployment,replicaset.",
            ),
        ] = None,
        quirks: QuirksOption = QuirksChoice.FIXED,
        output: OutputOption = OutputFormat.TABLE,
    ) -> None:
        """Show the subset of each pod of a workload, which pods are deleted first and why.

        With --pod, also show the subset that a pod would get.
        """
        if operation is not None and pod is None:
            raise typer.BadParameter("--operation needs --pod")
        objects = ClusterSource(cluster or (), kubeconfig, context, server, warn).read(SPREAD_KINDS)
        files = WorkloadSpreadFiles(objects)
        now_ns = SystemClock().now_ns() if now is None else epoch_ns(now)
        query = _read_query(pod, objects, workloadspread, operation or Operation.CREATE)
        rules = SpreadRules(_parse_versioned_kinds(versioned_kinds), quirks.quirks)
        explained = explain_spread(
            files, workloadspread, now_ns, rules, query, lambda: _build_simulation(objects)
        )
        answer = Answer(
            lambda: spread_document(explained),
            lambda rows: spread_table(explained, rows),
            lambda: (f"pod/{each.pod.name}" for each in explained.outcome.pods_to_delete),
        )
        print_answer(output, answer)

    return explain_spread_of_workload


def validate_workloadspread_command(validate_pod: PodSpecValidation) -> Callable[..., None]:
    """Return the command; ``validate_pod`` validates the spec of a pod."""

    def workloadspread(
        file: Annotated[str, typer.Argument(metavar="FILE", help="File with the WorkloadSpread.")],
        cluster: Annotated[
            list[str] | None,
            typer.Option(
                "--cluster", metavar="FILE", help="Objects of the cluster; may be repeated."
            ),
        ] = None,
        kubeconfig: KubeconfigOption = None,
        context: ContextOption = None,
        server: ServerOption = None,
        quirks: QuirksOption = QuirksChoice.FIXED,
        output: OutputOption = OutputFormat.TABLE,
    ) -> None:
        """Validate a WorkloadSpread by OpenKruise's rules; the output has all errors."""
        written = load_spread(file)
        source = ClusterSource(cluster or (), kubeconfig, context, server)
        files = WorkloadSpreadFiles(
            read_objects(()) if source == ClusterSource() else source.read(SPREAD_KINDS)
        )
        errors = spread_errors(written, files, quirks.quirks, validate_pod)
        key = written.spread.key
        answer = Answer(lambda: validation_document(errors), lambda _: errors_table(key, errors))
        print_answer(output, answer)
        if errors:
            raise typer.Exit(1)

    return workloadspread


def _read_query(
    text: str | None, objects: ClusterObjects, key: str, operation: Operation
) -> SpreadQuery | None:
    """Return the query about the pod that ``--pod`` names. Raise ManifestError."""
    if text is None:
        return None
    pod = find_pod(text, objects)
    document = msgspec.json.decode(pod.raw)
    try:
        return build_query(document, key.partition("/")[0], operation)
    except ObjectError as error:
        raise ManifestError(f"{pod.source}: {error}") from None


def _parse_versioned_kinds(names: str | None) -> frozenset[str]:
    return DEFAULT_VERSIONED_KINDS if names is None else versioned_kinds(split_names(names))


def _build_simulation(objects: ClusterObjects) -> SchedulingSimulation:
    """Return the scheduling simulation on the cluster."""
    loaded = load_cluster(objects, DEFAULT_RULES.release)
    return SchedulingSimulation(loaded.snapshot, DEFAULT_RULES)
