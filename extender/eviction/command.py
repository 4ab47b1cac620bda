"""The command ``explain evict``, which explains the evictions of a node, or of a scenario."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final

import typer

from extender.config.strict_decoding import ConfigError
from extender.eviction.explanation import LAYOUTS, evict_document, run_rounds
from extender.eviction.input_files import load_node
from extender.eviction.kubelet_flags import KubeletFlags
from extender.eviction.scenario import (
    ScenarioStepResult,
    load_scenario,
    run_scenario,
    scenario_document,
)
from extender.eviction.tables import evict_table, scenario_table
from extender.explain.cluster_objects import EVICTION_KINDS
from extender.explain.cluster_source import ClusterSource
from extender.kube.decoders.pods import epoch_ns
from extender.terminal.command_line import (
    ClusterFilesOption,
    ContextOption,
    EvictionHardOption,
    EvictionSoftOption,
    GracePeriodOption,
    KubeconfigOption,
    KubeletConfigOption,
    KubeletReleaseOption,
    MinimumReclaimOption,
    NowOption,
    OutputOption,
    ServerOption,
)
from extender.terminal.output import Answer, OutputFormat, print_answer
from policies.eviction.config import resolve
from policies.eviction.filesystems import Layout, infer_layout
from policies.eviction.kubelet_releases import EvictionRelease, eviction_release
from policies.eviction.manager import SyncResult
from policies.kubernetes.releases import NEWEST, release

EVICT_EXAMPLE: Final = (
    "explain evict --cluster c.yaml --node node-1 --summary s.json "
    "--eviction-hard 'memory.available<500Mi,nodefs.available<10%'"
)


@dataclass(frozen=True, slots=True)
class EvictQuery:
    """The options of the command line; times in nanoseconds."""

    cluster: ClusterSource
    node: str | None
    summaries: Sequence[str]
    scenario: str | None
    release: EvictionRelease
    flags: KubeletFlags = field(default_factory=KubeletFlags)
    layout: str | None = None
    now_ns: int | None = None


@dataclass(frozen=True, slots=True)
class NodeExplanation:
    """The rounds of a node's kubelet."""

    node: str
    rounds: Sequence[SyncResult]

    @property
    def answer(self) -> Answer:
        """The document, the table, and the names of the pods that are evicted last."""
        return Answer(
            lambda: evict_document(self.rounds),
            lambda rows: evict_table(self.node, self.rounds, rows),
            lambda: (f"pod/{each.pod.name}" for each in self.rounds[-1].evictions),
        )


@dataclass(frozen=True, slots=True)
class ScenarioExplanation:
    """The steps of a scenario."""

    results: Sequence[ScenarioStepResult]

    @property
    def answer(self) -> Answer:
        """The document and the table."""
        return Answer(
            lambda: scenario_document(self.results), lambda _: scenario_table(self.results)
        )


def explain_query(query: EvictQuery) -> NodeExplanation | ScenarioExplanation:
    """Return the explanation of a query.

    Raise ConfigError if options exclude each other, and the errors of reading files.
    """
    if query.scenario is not None:
        _check_scenario_alone(query)
        scenario = load_scenario(query.scenario, query.release)
        return ScenarioExplanation(list(run_scenario(scenario)))
    if query.node is None or not query.summaries:
        raise ConfigError("explain evict needs --node and --summary, or --scenario")
    # Check the flags first, so that their errors do not depend on the files.
    query.flags.eviction_config(Layout(), query.release)
    files = load_node(
        query.cluster.read(EVICTION_KINDS), query.summaries, query.node, query.release
    )
    layout = _layout(query.layout) or infer_layout(files.samples[-1].node)
    plan = resolve(query.flags.eviction_config(layout, query.release))
    return NodeExplanation(query.node, run_rounds(plan, files, query.now_ns))


def _check_scenario_alone(query: EvictQuery) -> None:
    options = {
        "--node": query.node is not None,
        "--summary": bool(query.summaries),
        "--layout": query.layout is not None,
        "--now": query.now_ns is not None,
        "the kubelet's flags": query.flags != KubeletFlags(),
    }
    excluded = [*query.cluster.given, *(name for name, is_set in options.items() if is_set)]
    if excluded:
        raise ConfigError(f"--scenario excludes {', '.join(excluded)}")


def _layout(name: str | None) -> Layout | None:
    if name is None:
        return None
    if name not in LAYOUTS:
        raise ConfigError(f"--layout: expected {', '.join(LAYOUTS)}, got {name!r}")
    return LAYOUTS[name]


def explain_evict(
    cluster: ClusterFilesOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    server: ServerOption = None,
    node: Annotated[
        str | None, typer.Option("--node", metavar="N", help="Node under resource pressure.")
    ] = None,
    summary: Annotated[
        list[str] | None,
        typer.Option(
            "--summary", metavar="FILE", help="Its /stats/summary; repeat for later samples."
        ),
    ] = None,
    scenario: Annotated[
        str | None,
        typer.Option(
            "--scenario", metavar="FILE", help="A kubelet, its pods and steps in one file."
        ),
    ] = None,
    eviction_hard: EvictionHardOption = None,
    eviction_soft: EvictionSoftOption = None,
    grace_period: GracePeriodOption = None,
    minimum_reclaim: MinimumReclaimOption = None,
    kubelet_config: KubeletConfigOption = None,
    layout: Annotated[
        str | None,
        typer.Option(
            "--layout",
            metavar="NAME",
            help="Filesystems: one, dedicated-imagefs or split; default: by their sizes.",
        ),
    ] = None,
    upstream: KubeletReleaseOption = None,
    now: NowOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show which pods the kubelet would evict from a node under pressure, and in which order."""
    rules = eviction_release(release(upstream or NEWEST.name))
    flags = KubeletFlags(
        kubelet_config, eviction_hard, eviction_soft, grace_period, minimum_reclaim
    )
    at = None if now is None else epoch_ns(now)
    explained = explain_query(
        EvictQuery(
            ClusterSource(cluster or (), kubeconfig, context, server),
            *(node, summary or (), scenario, rules, flags, layout, at),
        )
    )
    print_answer(output, explained.answer)
