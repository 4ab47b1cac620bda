"""The first page: bars, filters, paging; and the pages of pressure and nodes."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from msgspec.structs import replace

from extender.ledger.entry import LedgerRecord
from tests.builders.plausible_ledgers import NOW_NS, ledger_records
from tests.extender.ledger_page.conftest import OpenPage, PageClient, nodes
from tests.extender.ledger_page.records import (
    AT,
    CHOSEN,
    HOUR,
    PREEMPTOR,
    VICTIM,
    record,
    with_shadows,
    without_victims,
)


def hourly(count: int) -> list[LedgerRecord]:
    """Return a preemption for each of the last hours, the oldest first."""
    return [record(at=NOW_NS - each * HOUR - HOUR // 2) for each in reversed(range(count))]


async def ids(page: PageClient, url: str) -> list[str]:
    """Return the IDs of all pages of a list, from its first."""
    found: list[str] = []
    while url:
        document = await page.json(url)
        found += [each["id"] for each in document["decisions"]]
        url = document["older"]
    return found


async def test_bars_count_victims_by_the_hour(open_page: OpenPage) -> None:
    async with open_page(hourly(3)) as page:
        document = await page.json("/ui/")
    assert document["pods"] == 3
    assert len(document["bars"]) == 25
    assert [each["pods"] for each in document["bars"][-4:]] == [1, 1, 1, 0]
    assert document["groups"] == [
        {"name": "batch", "rank": 0, "pods": 3, "url": "/ui/?namespace=batch"}
    ]


async def test_preemptors_are_counted_by_class(open_page: OpenPage) -> None:
    async with open_page(hourly(2)) as page:
        document = await page.json("/ui/?role=preemptors&by=class")
    assert [(each["name"], each["pods"]) for each in document["groups"]] == [("high", 2)]


@pytest.mark.parametrize(
    ("query", "bars", "hours"),
    [("range=1h", 24, 1), ("range=24h", 25, 1), ("range=7d", 29, 6), ("range=30d", 31, 24)],
)
async def test_a_longer_range_has_longer_bars(
    open_page: OpenPage, query: str, bars: int, hours: int
) -> None:
    async with open_page(hourly(30)) as page:
        document = await page.json(f"/ui/?{query}")
    assert (len(document["bars"]), document["periodHours"]) == (bars, hours)


async def test_a_bar_leads_to_its_decisions(open_page: OpenPage) -> None:
    async with open_page(hourly(3)) as page:
        bars = (await page.json("/ui/"))["bars"]
        document = await page.json(bars[-2]["url"])
    assert document["since"] == bars[-2]["start"]
    assert len(document["decisions"]) == 1
    assert not document["live"]


async def test_more_than_five_groups_are_one(open_page: OpenPage) -> None:
    records = [
        record(at=AT + place, victim=replace(VICTIM, namespace=f"team-{place // 1000}"))
        for place in range(1000, 9000, 1000)
    ]
    async with open_page(records) as page:
        groups = (await page.json("/ui/"))["groups"]
    assert [each["name"] for each in groups[-2:]] == ["team-5", "3 others"]
    assert groups[-1]["pods"] == 3


async def test_all_pages_together_have_each_decision_once(open_page: OpenPage) -> None:
    records = hourly(120)
    async with open_page(records) as page:
        found = await ids(page, "/ui/?range=7d")
    assert found == [f"{each.entry.id:016x}" for each in reversed(records)]


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("", 2),
        ("kind=all", 3),
        ("namespace=web", 2),
        ("namespace=db", 1),
        ("class=low", 1),
        ("namespace=none", 0),
        ("node=node-8", 1),
        ("node=node-8&namespace=batch", 0),
    ],
)
async def test_decisions_are_filtered(open_page: OpenPage, query: str, count: int) -> None:
    other = replace(VICTIM, namespace="db", priority_class="middle")
    records = [
        record(),
        without_victims(at=AT + 10**6),
        record(
            at=AT + 2 * 10**6,
            node="node-8",
            kept=(replace(CHOSEN, node="node-8", victims=(other,)),),
        ),
    ]
    async with open_page(records) as page:
        document = await page.json(f"/ui/?{query}")
    assert len(document["decisions"]) == count


async def test_shadow_policies_are_counted_and_link_to_what_differs(open_page: OpenPage) -> None:
    records = [record(), with_shadows(record(at=AT + 10**6))]
    async with open_page(records) as page:
        document = await page.json("/ui/")
        html = await page.html("/ui/")
        differing = await ids(page, document["differencesUrl"])
    shadows = document["shadows"]
    assert [(each["policy"], each["decisions"], each["differences"]) for each in shadows] == [
        ("careful", 1, 1),
        ("equal", 1, 0),
        ("other", 1, 1),
    ]
    assert shadows[2]["change"] == "+1 PDB violations, -4 core-hours lost"
    assert shadows[2]["change"] in html
    assert differing == [f"{records[1].entry.id:016x}"]


async def test_the_page_has_what_its_json_has(open_page: OpenPage) -> None:
    async with open_page(ledger_records(300, days=1)) as page:
        document = await page.json("/ui/?kind=all")
        html = unescape(await page.html("/ui/?kind=all"))
    hrefs = set(re.findall(r'href="([^"]*)"', html))
    for row in document["decisions"]:
        assert {row["url"], row["pod"]["url"], *(each["url"] for each in row["victims"])} <= hrefs
        assert row["sentence"] in html
    assert {document["older"], *(each["url"] for each in document["bars"])} <= hrefs
    for group in document["groups"]:
        assert f"{group['pods']:,}" in html


async def test_an_empty_ledger_has_pages(open_page: OpenPage) -> None:
    async with open_page() as page:
        timeline = await page.html("/ui/")
        assert "No decisions in this range." in timeline
        assert "Shadow policies" not in timeline
        assert "No pods were preempted in this range." in await page.html("/ui/pressure")


def three_tenants() -> list[LedgerRecord]:
    gpu = replace(VICTIM, namespace="gpu", requests={"cpu": 1000, "nvidia.com/gpu": 2})
    back = replace(PREEMPTOR, namespace="batch", name="a-3", owner="ReplicaSet/a")
    front = replace(VICTIM, namespace="web", name="b-2", owner="ReplicaSet/b")
    violating = replace(CHOSEN, num_pdb_violations=1, violated_pdbs=("batch/a",))
    return [
        record(at=AT, kept=(violating,)),
        record(at=AT + 10**6, victim=gpu),
        record(at=AT + 2 * 10**6, pod=back, victim=front),
    ]


async def test_lost_work_counts_by_namespace_without_teams(open_page: OpenPage) -> None:
    async with open_page(three_tenants()) as page:
        document = await page.json("/ui/pressure")
        html = await page.html("/ui/pressure")
    assert document["tenantsAre"] == "namespace"
    lost: dict[str, Any] = {each["name"]: each for each in document["tenants"]}
    assert lost["gpu"]["coreHours"] == "2 h"
    assert lost["gpu"]["deviceHours"] == "4 h"
    assert (lost["web"]["evicted"], lost["web"]["preemptors"]) == (1, 2)
    assert document["budgets"] == [{"budget": "batch/a", "decisions": 1, "share": 100.0}]
    (pair,) = document["thrash"]
    assert {pair["one"], pair["other"]} == {"batch/ReplicaSet/a", "web/ReplicaSet/b"}
    for text in ("batch/a", "web/ReplicaSet/b", "Lost work by namespace"):
        assert text in html


async def test_lost_work_counts_by_team_if_pods_have_teams(open_page: OpenPage) -> None:
    found = record(victim=replace(VICTIM, team="search"))
    async with open_page([found]) as page:
        document = await page.json("/ui/pressure")
    assert document["tenantsAre"] == "team"
    assert [each["name"] for each in document["tenants"]] == ["search", "(none)"]


async def test_nodes_are_mapped_in_the_order_of_their_names(open_page: OpenPage) -> None:
    async with open_page([record()], nodes=nodes) as page:
        document = await page.json("/ui/nodes?range=7d")
        html = await page.html("/ui/nodes?range=7d")
        assert 'href="/ui/nodes"' in await page.html("/ui/")
    assert document["nodes"] == [["node-1", 100, 3], ["node-2", 50, 0]]
    assert [each["url"] for each in document["most"]] == ["/ui/?range=7d&node=node-1"]
    assert "node-1" in html


async def test_without_nodes_there_is_no_map(open_page: OpenPage) -> None:
    async with open_page() as page:
        assert 'href="/ui/nodes"' not in await page.html("/ui/")
        await page.html("/ui/nodes", status=404)
