"""The commands for WorkloadSpreads: ``explain spread`` and ``validate workloadspread``."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Annotated

import msgspec
import typer

from extender.clusterfile import load_cluster
from extender.explain_spread import (
    Operation,
    Question,
    ask,
    explain_spread,
    spread_document,
)
from extender.kube.clock import SystemClock
from extender.kube.decoding import ObjectError
from extender.kube.manifests import ManifestError, read_manifests
from extender.kube.pods import epoch_ns
from extender.options import ClusterFiles, Now, OutputForm, example, namespaced, show, split
from extender.spreadanswers import Trial
from extender.spreadfiles import load_spread_files
from extender.spreadtables import faults_table, spread_table
from extender.validate_spread import PodCheck, load_spread, spread_faults, validation_document
from policies.rules import DEFAULT_RULES
from policies.spreading.quirks import MODES, Quirks
from policies.spreading.reconciling import SpreadRules
from policies.spreading.versions import DEFAULT_VERSIONED_KINDS, versioned_kinds

EXAMPLE = example("explain spread --cluster c.yaml --workloadspread default/web")


class Mode(Enum):
    """Whether the quirks of OpenKruise are followed or fixed."""

    UPSTREAM = "upstream"
    FIXED = "fixed"

    @property
    def quirks(self) -> Quirks:
        """The quirks that are switched on."""
        return MODES[self.value]


QuirksMode = Annotated[
    Mode, typer.Option("--quirks", help="OpenKruise's oddities, or what is done instead.")
]


def explain_spread_command(
    cluster: ClusterFiles,
    workloadspread: Annotated[
        str,
        typer.Option(
            "--workloadspread", metavar="NS/NAME", parser=namespaced, help="Which to explain."
        ),
    ],
    now: Now = None,
    pod: Annotated[
        str | None,
        typer.Option("--pod", metavar="FILE", help="A pod that comes or goes; see --operation."),
    ] = None,
    operation: Annotated[
        Operation | None, typer.Option("--operation", help="What happens to the pod.")
    ] = None,
    versioned_kinds: Annotated[
        str | None,
        typer.Option(
            "--versioned-kinds",
            metavar="KIND,…",
            help="Kinds whose versions are spread apart; default deployment,replicaset.",
        ),
    ] = None,
    quirks: QuirksMode = Mode.FIXED,
    output: OutputForm = None,
) -> None:
    """Show the subset of each pod of a workload, which pods are deleted first and why.

    With --pod, also show the subset that a pod would get.
    """
    if operation is not None and pod is None:
        raise typer.BadParameter("--operation needs --pod")
    files = load_spread_files(cluster)
    now_ns = SystemClock().now_ns() if now is None else epoch_ns(now)
    question = _question(pod, workloadspread, operation or Operation.CREATE)
    rules = SpreadRules(_kinds(versioned_kinds), quirks.quirks)
    explained = explain_spread(
        files, workloadspread, now_ns, rules, question, lambda: _trial(cluster)
    )
    show(output, lambda: spread_document(explained), lambda: spread_table(explained))


def validate_commands(check_pod: PodCheck) -> typer.Typer:
    """Return the commands of ``validate``; ``validate_pod`` validates the spec of a pod."""
    commands = typer.Typer(rich_markup_mode=None)

    @commands.callback()
    def validate() -> None:
        """Validate objects as webhooks do; no server needed."""

    @commands.command(
        "workloadspread", epilog=example("validate workloadspread spread.yaml --cluster c.yaml")
    )
    def workloadspread(
        file: Annotated[str, typer.Argument(metavar="FILE", help="Holds the WorkloadSpread.")],
        cluster: Annotated[
            list[str] | None,
            typer.Option(
                "--cluster", metavar="FILE", help="Objects of the cluster; may be repeated."
            ),
        ] = None,
        quirks: QuirksMode = Mode.FIXED,
        output: OutputForm = None,
    ) -> None:
        """Validate a WorkloadSpread by OpenKruise's rules; the output has all errors."""
        written = load_spread(file)
        files = load_spread_files(cluster or [])
        faults = spread_faults(written, files, quirks.quirks, check_pod)
        key = written.spread.key
        show(output, lambda: validation_document(faults), lambda: faults_table(key, faults))

    return commands


def _question(path: str | None, key: str, operation: Operation) -> Question | None:
    """Return the query about the only pod of a file. Raise ManifestError."""
    if path is None:
        return None
    pods = [manifest for manifest in read_manifests(path) if manifest.kind == "Pod"]
    if len(pods) != 1:
        raise ManifestError(f"{path}: holds {len(pods)} pods; expected exactly one")
    document = msgspec.json.decode(pods[0].raw)
    try:
        return ask(document, key.partition("/")[0], operation)
    except ObjectError as error:
        raise ManifestError(f"{pods[0].source}: {error}") from None


def _kinds(names: str | None) -> frozenset[str]:
    return DEFAULT_VERSIONED_KINDS if names is None else versioned_kinds(split(names))


def _trial(cluster: Sequence[str]) -> Trial:
    """Return the scheduling simulation on the cluster of the files."""
    return Trial(load_cluster(cluster, DEFAULT_RULES.release).snapshot, DEFAULT_RULES)
