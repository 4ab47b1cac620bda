"""The map of nodes: how full each is, and how many preemptions it had."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from extender.kube.decoders.object_meta import format_time
from extender.ledger_page.page_query import PageQuery
from extender.ledger_page.timeline_view import range_links
from extender.ledger_page.view import Link, View

PATH: Final = "/ui/nodes"
_LISTED: Final = 25


class NodeUse(NamedTuple):
    """A node with the fraction of it that pods request, from 0 to 1, and its preemptions."""

    name: str
    fraction: float
    preemptions: int


NodeSource = Callable[[int, int], Awaitable[Sequence[NodeUse]]]
"""Returns the nodes, with their preemptions between two times in nanoseconds."""


class NodeRow(View, frozen=True, kw_only=True):
    """A node in the list of those with most preemptions."""

    name: str
    url: str
    percent: int
    preemptions: int


class NodesView(View, frozen=True, kw_only=True):
    """The page; ``nodes`` are names, each with how full it is in percent, and its preemptions."""

    since: str
    until: str
    ranges: tuple[Link, ...]
    preemptions: int
    list_url: str
    nodes: tuple[tuple[str, int, int], ...]
    most: tuple[NodeRow, ...]


def nodes_view(query: PageQuery, nodes: Sequence[NodeUse]) -> NodesView:
    """Return the page; nodes are in the order of their names, so that each keeps its place."""
    found = tuple(
        (each.name, round(100 * each.fraction), each.preemptions)
        for each in sorted(nodes, key=lambda each: each.name)
    )
    preempted = [each for each in found if each[2]]
    most = sorted(preempted, key=lambda each: (-each[2], -each[1], each[0]))[:_LISTED]
    return NodesView(
        since=format_time(query.since_ns),
        until=format_time(query.until_ns),
        ranges=range_links(query, PATH),
        preemptions=sum(each.preemptions for each in nodes),
        list_url=query.url("/ui/", node="NODE"),
        nodes=found,
        most=tuple(
            NodeRow(name=name, url=query.url("/ui/", node=name), percent=percent, preemptions=n)
            for name, percent, n in most
        ),
    )
