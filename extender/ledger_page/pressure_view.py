"""The pressure of preemption: the lost work of tenants, violated budgets, and thrashing pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from extender.kube.decoders.object_meta import format_time
from extender.ledger.storage.queries import Thrash, Total
from extender.ledger.storage.schema import Role
from extender.ledger_page.amounts import format_hours
from extender.ledger_page.page_query import PageQuery
from extender.ledger_page.timeline_view import range_links
from extender.ledger_page.view import Link, View

PATH: Final = "/ui/pressure"
_CORE_HOUR: Final = 1000 * 3600
_DEVICE_HOUR: Final = 3600
_UNNAMED: Final = "(none)"


class Tenant(View, frozen=True, kw_only=True):
    """The pods of a tenant that were evicted and the work that was lost; ``share`` in percent."""

    name: str
    url: str
    evicted: int
    preemptors: int
    core_hours: str
    device_hours: str
    share: float


class BudgetPressure(View, frozen=True, kw_only=True):
    """How many decisions violated a budget; ``share`` is in percent of the most violated."""

    budget: str
    decisions: int
    share: float


class ThrashPair(View, frozen=True, kw_only=True):
    """Two owners whose pods preempt each other."""

    one: str
    other: str
    by_one: int
    by_other: int


class PressureView(View, frozen=True, kw_only=True):
    """The page; ``tenants_are`` is ``team`` or ``namespace``. Those that lost most come first."""

    since: str
    until: str
    ranges: tuple[Link, ...]
    tenants_are: str
    tenants: tuple[Tenant, ...]
    budgets: tuple[BudgetPressure, ...]
    thrash: tuple[ThrashPair, ...]


def has_teams(totals: Sequence[Total]) -> bool:
    """Return whether totals by team name any."""
    return any(each.group for each in totals)


def pressure_view(
    query: PageQuery,
    tenants_are: str,
    totals: Sequence[Total],
    budgets: Mapping[str, int],
    pairs: Sequence[Thrash],
) -> PressureView:
    """Return the page; ``totals`` are by tenant."""
    most = max(budgets.values(), default=1)
    return PressureView(
        since=format_time(query.since_ns),
        until=format_time(query.until_ns),
        ranges=range_links(query, PATH),
        tenants_are=tenants_are,
        tenants=_tenants(query, tenants_are, totals),
        budgets=tuple(
            BudgetPressure(budget=key, decisions=count, share=round(100 * count / most, 2))
            for key, count in budgets.items()
        ),
        thrash=tuple(
            ThrashPair(one=a, other=b, by_one=one, by_other=other) for a, b, one, other in pairs
        ),
    )


def _tenants(query: PageQuery, tenants_are: str, totals: Sequence[Total]) -> tuple[Tenant, ...]:
    lost: dict[str, list[int]] = {}
    for each in totals:
        amounts = lost.setdefault(each.group, [0, 0, 0, 0])
        if each.role is Role.VICTIM:
            added = (each.cpu, each.devices, each.pods, 0)
        else:
            added = (0, 0, 0, each.pods)
        for place, amount in enumerate(added):
            amounts[place] += amount
    most = max((cpu for cpu, *_ in lost.values()), default=0) or 1

    def loss(item: tuple[str, list[int]]) -> tuple[int, int, int, str]:
        return -item[1][0], -item[1][1], -item[1][2], item[0]

    return tuple(
        Tenant(
            name=name or _UNNAMED,
            url=query.url("/ui/", namespace=name) if tenants_are == "namespace" and name else "",
            evicted=evicted,
            preemptors=preemptors,
            core_hours=format_hours(cpu, _CORE_HOUR),
            device_hours=format_hours(devices, _DEVICE_HOUR) if devices else "",
            share=round(100 * cpu / most, 2),
        )
        for name, (cpu, devices, evicted, preemptors) in sorted(lost.items(), key=loss)
    )
