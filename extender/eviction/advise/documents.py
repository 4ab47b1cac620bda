"""The output of ``advise eviction -o json``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NotRequired, TypedDict

from extender.eviction.advise.executor import Action
from extender.eviction.advise.rounds import ObservationRound
from extender.eviction.explanation import (
    format_time,
    layout_name,
    precedence_documents,
    result_message,
)
from extender.explain.decisions import PrecedenceDocument
from policies.eviction.forecast import NodeForecast, ThresholdForecast, pods_covering_shortage
from policies.eviction.ranking import PodUsage

_SECOND: Final = 10**9


class SignalDocument(TypedDict):
    """A threshold and the observation of its signal; amounts in bytes, inodes or processes.

    ``above`` is negative if the signal is short. ``perMinute`` is None without a trend; the times
    are None without a forecast.
    """

    threshold: str
    signal: str
    available: int
    capacity: int
    asked: int
    above: int
    hard: bool
    met: bool
    readings: int
    perMinute: int | None
    metInSeconds: int | None
    actsInSeconds: int | None


class PodDocument(TypedDict):
    """A pod of the ranking, in eviction order; ``usage`` is None without stats."""

    pod: str
    priority: int
    usage: int | None
    request: int
    never: bool


class NodeDocument(TypedDict):
    """A node: its leading threshold, the pods to evict for it, and what the eviction regains."""

    node: str
    conditions: list[str]
    leading: str | None
    actsInSeconds: int | None
    signals: list[SignalDocument]
    order: list[PodDocument]
    because: list[PrecedenceDocument]
    first: str | None
    untilRelieved: list[str]
    reclaim: list[str]
    evicts: list[str]
    message: str
    layout: str
    notes: list[str]


class UnreadNodeDocument(TypedDict):
    """A node that could not be read."""

    node: str
    problem: str


class ActionDocument(TypedDict):
    """An action that was taken, or would be."""

    do: str
    node: str
    pod: str | None
    because: str
    outcome: str
    message: str


class RoundDocument(TypedDict):
    """One observation of all nodes, the most urgent first."""

    at: str
    nodes: list[NodeDocument]
    unread: list[UnreadNodeDocument]
    heard: list[str]
    deeds: NotRequired[list[ActionDocument]]


def round_document(
    observed: ObservationRound, actions: Sequence[Action] | None = None
) -> RoundDocument:
    """Return the document of a round; ``actions`` is None if no actions were requested."""
    document: RoundDocument = {
        "at": format_time(observed.at_ns),
        "nodes": [_node(each, observed) for each in observed.forecasts],
        "unread": [{"node": name, "problem": why} for name, why in observed.unread.items()],
        "heard": list(observed.notifications),
    }
    if actions is not None:
        document["deeds"] = [_action(each) for each in actions]
    return document


def _node(forecast: NodeForecast, observed: ObservationRound) -> NodeDocument:
    leading, ranking, first = forecast.leading, forecast.ranking, forecast.first_victim
    return {
        "node": forecast.node,
        "conditions": list(observed.pressures.get(forecast.node, ())),
        "leading": None if leading is None else str(leading.threshold),
        "actsInSeconds": None if leading is None else _seconds(leading.acts_in_ns),
        "signals": [_signal(each) for each in forecast.forecasts],
        "order": [_pod(each) for each in ranking],
        "because": (
            [] if leading is None else precedence_documents(ranking, leading.threshold.signal)
        ),
        "first": None if first is None else first.pod.key,
        "untilRelieved": _pods_covering_shortage(leading, ranking),
        "reclaim": [each.name.lower() for each in forecast.reclaim],
        "evicts": [each.pod.key for each in forecast.sync.evictions],
        "message": result_message(forecast.sync),
        "layout": layout_name(forecast.sync.config.config.layout),
        "notes": list(observed.notes.get(forecast.node, ())),
    }


def _signal(forecast: ThresholdForecast) -> SignalDocument:
    trend, observation = forecast.trend, forecast.observation
    return {
        "threshold": str(forecast.threshold),
        "signal": forecast.threshold.signal,
        "available": observation.available,
        "capacity": observation.capacity,
        "asked": forecast.required,
        "above": forecast.margin,
        "hard": forecast.threshold.hard,
        "met": forecast.met_ns is not None,
        "readings": 1 if trend is None else trend.measurements,
        "perMinute": None if trend is None else trend.per_minute,
        "metInSeconds": _seconds(forecast.met_in_ns),
        "actsInSeconds": _seconds(forecast.acts_in_ns),
    }


def _pod(usage: PodUsage) -> PodDocument:
    return {
        "pod": usage.pod.key,
        "priority": usage.pod.priority,
        "usage": usage.usage,
        "request": usage.request,
        "never": usage.pod.critical,
    }


def _pods_covering_shortage(
    leading: ThresholdForecast | None, ranking: Sequence[PodUsage]
) -> list[str]:
    if leading is None:
        return []
    movable = [each for each in ranking if not each.pod.critical]
    return [each.pod.key for each in pods_covering_shortage(movable, leading.shortage)]


def _action(action: Action) -> ActionDocument:
    pod = action.step.pod
    return {
        "do": "cordon" if pod is None else "evict",
        "node": action.step.relief.node,
        "pod": None if pod is None else pod.key,
        "because": str(action.step.relief.cause.threshold),
        "outcome": action.result.value,
        "message": action.message,
    }


def _seconds(nanoseconds: int | None) -> int | None:
    return None if nanoseconds is None else nanoseconds // _SECOND
