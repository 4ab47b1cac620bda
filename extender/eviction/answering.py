"""The query of ``explain evict`` and its explanations: of a node, or of a scenario."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import RenderableType

from extender.config import ConfigError
from extender.eviction.explaining import LAYOUTS, EvictDocument, evict_document, run_rounds
from extender.eviction.files import load_node
from extender.eviction.flags import KubeletFlags
from extender.eviction.scenario import (
    ScenarioDocument,
    ScenarioStepResult,
    run_scenario,
    scenario_document,
)
from extender.eviction.scenario_file import load_scenario
from extender.eviction.tables import evict_table, scenario_table
from policies.eviction.configuration import resolve
from policies.eviction.deciding import SyncResult
from policies.eviction.filesystems import Layout
from policies.eviction.inferring import infer_layout
from policies.eviction.releases import EvictionRelease


@dataclass(frozen=True, slots=True)
class EvictQuery:
    """The options of the command line; times in nanoseconds."""

    cluster: Sequence[str]
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

    def document(self) -> EvictDocument:
        """Return the JSON document."""
        return evict_document(self.rounds)

    def table(self) -> RenderableType:
        """Return the table."""
        return evict_table(self.node, self.rounds)


@dataclass(frozen=True, slots=True)
class ScenarioExplanation:
    """The steps of a scenario."""

    results: Sequence[ScenarioStepResult]

    def document(self) -> ScenarioDocument:
        """Return the JSON document."""
        return scenario_document(self.results)

    def table(self) -> RenderableType:
        """Return the table."""
        return scenario_table(self.results)


def explain_query(query: EvictQuery) -> NodeExplanation | ScenarioExplanation:
    """Return the explanation of a query.

    Raise ConfigError if options exclude each other, and the errors of reading files.
    """
    if query.scenario is not None:
        _check_scenario_alone(query)
        scenario = load_scenario(query.scenario, query.release)
        return ScenarioExplanation(run_scenario(scenario))
    if not query.cluster or query.node is None or not query.summaries:
        raise ConfigError("explain evict needs --cluster, --node and --summary, or --scenario")
    # Check the flags first, so that their errors do not depend on the files.
    query.flags.eviction_config(Layout(), query.release)
    files = load_node(query.cluster, query.summaries, query.node, query.release)
    layout = _layout(query.layout) or infer_layout(files.samples[-1].node)
    plan = resolve(query.flags.eviction_config(layout, query.release))
    return NodeExplanation(query.node, run_rounds(plan, files, query.now_ns))


def _check_scenario_alone(query: EvictQuery) -> None:
    beside = {
        "--cluster": bool(query.cluster),
        "--node": query.node is not None,
        "--summary": bool(query.summaries),
        "--layout": query.layout is not None,
        "--now": query.now_ns is not None,
        "the kubelet's flags": query.flags != KubeletFlags(),
    }
    given = [name for name, there in beside.items() if there]
    if given:
        raise ConfigError(f"--scenario holds all there is to say; leave out {', '.join(given)}")


def _layout(name: str | None) -> Layout | None:
    if name is None:
        return None
    if name not in LAYOUTS:
        raise ConfigError(f"--layout: expected {', '.join(LAYOUTS)}, got {name!r}")
    return LAYOUTS[name]
