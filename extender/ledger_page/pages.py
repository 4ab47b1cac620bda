"""The pages: each reads the ledger for one request, and returns what its page contains."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from aiohttp import web

from extender.kube.rest.clock import Clock
from extender.ledger.entry import LedgerRecord, first_id, format_id, parse_id
from extender.ledger.storage.queries import Grouping, Ledger, Selection
from extender.ledger.storage.schema import HOUR_NS
from extender.ledger_page.decision_view import (
    DecisionView,
    SpareLinks,
    SpareView,
    decision_view,
    links_to_spare,
    no_links,
)
from extender.ledger_page.nodes_view import NodeSource, NodesView, nodes_view
from extender.ledger_page.page_query import (
    RANGE_PARAMETERS,
    TIMELINE_PARAMETERS,
    PageQuery,
    QueryError,
    check_parameters,
    parse_pod_key,
    parse_query,
)
from extender.ledger_page.pod_view import PodView, pod_view
from extender.ledger_page.pressure_view import PressureView, has_teams, pressure_view
from extender.ledger_page.timeline_view import (
    PATH,
    ROWS,
    TimelineView,
    bar_hours,
    decision_row,
    timeline_view,
)
from extender.ledger_page.view import pod_url
from policies.kubernetes.input_error import InputError
from policies.kubernetes.integers import parse_integer

_RECORDS_OF_POD: Final = 100
_THRASH_PAIRS: Final = 50
_SEARCHED_AT_ONCE: Final = 500
_MOST_SEARCHED: Final = 5000

Counterfactuals = Callable[[LedgerRecord, str], Awaitable[Sequence[str] | None]]
"""Returns what would have spared the victim with a UID, a line each; None if it is unknown."""


class NotFoundError(InputError):
    """The ledger has no such decision, or none that names the pod."""


class Pages:
    """The pages of a ledger."""

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        counterfactuals: Counterfactuals | None,
        nodes: NodeSource | None,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._counterfactuals = counterfactuals
        self._spare_links: SpareLinks = no_links if counterfactuals is None else links_to_spare
        self._nodes = nodes

    async def timeline(self, request: web.Request) -> TimelineView:
        """Return the bars and the decisions of a range. Raise QueryError or LedgerError."""
        query = self._query(request, TIMELINE_PARAMETERS)
        since, until, period = bar_hours(query)
        totals = await self._ledger.totals(since * HOUR_NS, until * HOUR_NS, query.grouping, period)
        records, next_id, looked_at = await self._list(query)
        older = query.url(PATH, before=format_id(next_id)) if next_id else ""
        rows = [decision_row(each) for each in records]
        selected = query.selection
        shadows = await self._ledger.shadow_totals(
            Selection(query.since_ns, query.until_ns, selected.namespace, selected.priority_class)
        )
        return timeline_view(query, totals, rows, shadows, older, looked_at)

    async def decision(self, request: web.Request) -> DecisionView:
        """Return a decision. Raise QueryError, NotFoundError or LedgerError."""
        check_parameters(request.query, ("spare", "format"))
        written = request.match_info["id"]
        number = parse_id(written)
        if number is None:
            raise QueryError(f"{written[:100]!r} is not the ID of a decision")
        record = await self._ledger.record(number)
        if record is None:
            raise NotFoundError(f"the ledger has no decision {written}")
        spare = await self._spare(record, request.query.get("spare"))
        return decision_view(record, self._spare_links, spare)

    async def pod(self, request: web.Request) -> PodView:
        """Return the decisions that name a pod. Raise QueryError, NotFoundError or LedgerError."""
        check_parameters(request.query, ("format",))
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        namespace, name = parse_pod_key(f"{namespace}/{name}")
        key = f"{namespace}/{name}"
        records = await self._ledger.records_of_pod(key, _RECORDS_OF_POD + 1)
        if not records:
            raise NotFoundError(f"the ledger has no decision that names the pod {key}")
        return pod_view(key, records, _RECORDS_OF_POD, self._spare_links)

    async def find_pod(self, request: web.Request) -> web.StreamResponse:
        """Redirect to the page of the pod that a form names. Raise QueryError."""
        check_parameters(request.query, ("pod", "format"))
        raise web.HTTPSeeOther(pod_url(*parse_pod_key(request.query.get("pod", ""))))

    async def pressure(self, request: web.Request) -> PressureView:
        """Return lost work, violated budgets, thrashing pairs. Raise QueryError or LedgerError."""
        query = self._query(request, RANGE_PARAMETERS)
        since, until = query.since_ns, query.until_ns
        hours = -(-until // HOUR_NS) + 1  # longer than the range, so that it is one period
        totals = await self._ledger.totals(since, until, Grouping.TEAM, hours)
        tenants_are = Grouping.TEAM
        if not has_teams(totals):
            tenants_are = Grouping.NAMESPACE
            totals = await self._ledger.totals(since, until, tenants_are, hours)
        budgets = await self._ledger.budgets(since, until)
        pairs = await self._ledger.thrash(since, _THRASH_PAIRS, first_id(until))
        return pressure_view(query, tenants_are.value, totals, budgets, pairs)

    async def nodes(self, request: web.Request) -> NodesView:
        """Return the map of nodes. Raise QueryError or LedgerError."""
        query = self._query(request, RANGE_PARAMETERS)
        assert self._nodes is not None
        return nodes_view(query, await self._nodes(query.since_ns, query.until_ns))

    def _query(self, request: web.Request, allowed: Sequence[str]) -> PageQuery:
        return parse_query(request.query, allowed, self._clock.now_ns())

    async def _list(self, query: PageQuery) -> tuple[Sequence[LedgerRecord], int, int]:
        """Return the decisions of one page, before which ID to go on or 0, and how many were read.

        The tables do not have the node of a decision, so those of a node are searched for.
        """
        if not query.node:
            records = await self._ledger.records(query.selection, ROWS + 1)
            rest = len(records) > ROWS
            return records[:ROWS], records[ROWS - 1].entry.id if rest else 0, 0
        found: list[LedgerRecord] = []
        selection, read = query.selection, 0
        while read < _MOST_SEARCHED and len(found) < ROWS:
            records = await self._ledger.records(selection, _SEARCHED_AT_ONCE)
            for record in records:
                read += 1
                selection = replace(selection, before=record.entry.id)
                if record.entry.node == query.node:
                    found.append(record)
                    if len(found) == ROWS:
                        break
            if len(records) < _SEARCHED_AT_ONCE and len(found) < ROWS:
                return found, 0, read
        return found, selection.before, read

    async def _spare(self, record: LedgerRecord, written: str | None) -> SpareView | None:
        if written is None:
            return None
        victims = record.entry.victims
        place = parse_integer(written, len(victims) - 1)
        if self._counterfactuals is None or place is None or place < 0:
            raise QueryError(f"spare: {written[:100]!r} is not the place of a victim")
        lines = await self._counterfactuals(record, victims[place].uid)
        return SpareView(pod=victims[place].key, lines=None if lines is None else tuple(lines))
