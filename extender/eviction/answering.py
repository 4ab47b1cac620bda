"""The query of ``explain evict`` and its explanations: of a node, or of a scenario."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import RenderableType

from extender.config import ConfigError
from extender.eviction.explaining import LAYOUTS, EvictDocument, evict_document, play
from extender.eviction.files import load_node
from extender.eviction.flags import KubeletFlags
from extender.eviction.scenario import (
    Played,
    ScenarioDocument,
    play_scenario,
    scenario_document,
)
from extender.eviction.scenario_file import load_scenario
from extender.eviction.tables import evict_table, scenario_table
from policies.eviction.configuration import planned
from policies.eviction.deciding import Sync
from policies.eviction.filesystems import Layout
from policies.eviction.inferring import infer_layout
from policies.eviction.releases import EvictionRelease


@dataclass(frozen=True, slots=True)
class Question:
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
class NodeAnswer:
    """The rounds of a node's kubelet."""

    node: str
    rounds: Sequence[Sync]

    def document(self) -> EvictDocument:
        """Return the JSON document."""
        return evict_document(self.rounds)

    def table(self) -> RenderableType:
        """Return the table."""
        return evict_table(self.node, self.rounds)


@dataclass(frozen=True, slots=True)
class ScenarioAnswer:
    """The steps of a scenario."""

    played: Sequence[Played]

    def document(self) -> ScenarioDocument:
        """Return the JSON document."""
        return scenario_document(self.played)

    def table(self) -> RenderableType:
        """Return the table."""
        return scenario_table(self.played)


def answer(question: Question) -> NodeAnswer | ScenarioAnswer:
    """Return the explanation of a query.

    Raise ConfigError if options exclude each other, and the errors of reading files.
    """
    if question.scenario is not None:
        _nothing_beside_a_scenario(question)
        scenario = load_scenario(question.scenario, question.release)
        return ScenarioAnswer(play_scenario(scenario))
    if not question.cluster or question.node is None or not question.summaries:
        raise ConfigError("explain evict needs --cluster, --node and --summary, or --scenario")
    # Check the flags first, so that their errors do not depend on the files.
    question.flags.configuration(Layout(), question.release)
    files = load_node(question.cluster, question.summaries, question.node, question.release)
    layout = _layout(question.layout) or infer_layout(files.samples[-1].node)
    plan = planned(question.flags.configuration(layout, question.release))
    return NodeAnswer(question.node, play(plan, files, question.now_ns))


def _nothing_beside_a_scenario(question: Question) -> None:
    beside = {
        "--cluster": bool(question.cluster),
        "--node": question.node is not None,
        "--summary": bool(question.summaries),
        "--layout": question.layout is not None,
        "--now": question.now_ns is not None,
        "the kubelet's flags": question.flags != KubeletFlags(),
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
