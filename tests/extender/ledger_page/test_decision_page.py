"""The page of a decision."""

from __future__ import annotations

from html import unescape

import pytest
from markupsafe import escape
from msgspec.structs import replace

from extender.ledger.entry import Outcome
from extender.ledger_page.criteria_table import criteria_table
from extender.ledger_page.packed_bars import packed_bars
from tests.extender.ledger_page.conftest import OpenPage, counterfactuals
from tests.extender.ledger_page.records import (
    CHOSEN,
    DECISION,
    PREEMPTOR,
    RIVAL,
    VICTIM,
    record,
    with_shadows,
    without_victims,
)


def test_bars_show_a_node_before_and_after() -> None:
    cpu, memory = packed_bars(CHOSEN, PREEMPTOR)
    assert [(each.kind, each.label, each.amount, each.x, each.width) for each in cpu.before] == [
        ("other", "other pods", "4 cores", 0, 50),
        ("spared", "batch/a-2", "1 core", 50, 12.5),
        ("victim", "batch/a-1", "2 cores", 62.5, 25),
        ("free", "free", "1 core", 87.5, 12.5),
    ]
    assert [(each.kind, each.amount) for each in cpu.after] == [
        ("other", "4 cores"),
        ("spared", "1 core"),
        ("preemptor", "3 cores"),
    ]
    assert (memory.resource, memory.allocatable) == ("memory", "16 GiB")
    assert [(each.kind, each.amount) for each in memory.after] == [
        ("other", "3 GiB"),
        ("free", "13 GiB"),
    ]


def test_a_bar_of_more_than_the_node_has_is_scaled_to_it() -> None:
    pod = replace(PREEMPTOR, requests={"cpu": 11000})
    (cpu, _) = packed_bars(CHOSEN, pod)
    assert cpu.over
    assert sum(each.width for each in cpu.after) == pytest.approx(100)
    assert sum(each.width for each in cpu.before) == pytest.approx(50)


def test_the_criterion_that_separates_the_candidates_is_marked() -> None:
    rows = criteria_table(record().entry)
    assert [(each.criterion, each.chosen, each.rival, each.effect) for each in rows] == [
        ("fewest PDB violations", "0", "1", "decides"),
        ("lowest priority of the first victim", "10", "10", "not needed"),
        ("smallest sum of priorities", "10", "10", "not needed"),
        ("fewest victims", "1", "1", "not needed"),
        (
            "latest start of the most important victims",
            "2026-09-21T12:13:20Z",
            "2026-09-21T13:13:20Z",
            "not needed",
        ),
    ]


def test_equal_candidates_differ_by_no_criterion() -> None:
    kept = replace(CHOSEN, criteria=(-3,)), replace(RIVAL, criteria=(-3,))
    entry = record(criteria=("most restarts",), decided_by="node name", kept=kept).entry
    (row,) = criteria_table(entry)
    assert (row.chosen, row.rival, row.effect) == ("3", "3", "equal")


async def test_the_page_has_what_its_json_has(open_page: OpenPage) -> None:
    other = replace(RIVAL, node="node-11", criteria=())
    found = record(
        kept=(CHOSEN, RIVAL, other),
        candidates=3,
        message="0/9 nodes are available",
        notes=("left out: node-4",),
        protected={"databases": 2},
        untried=5,
        search="no victims are cheaper by lost work",
        digest="abcd",
        took_microseconds=1500,
    )
    async with open_page([found]) as page:
        document = await page.json(DECISION)
        html = await page.html(DECISION)
    assert document["headline"].startswith("batch/a-1 was evicted from node-7")
    assert document["victims"][0]["replacementUrl"] == "/ui/pods/batch/a-1x"
    assert [each["node"] for each in document["others"]] == ["node-11"]
    texts = [
        document["headline"],
        document["followed"],
        document["victims"][0]["followed"],
        document["untried"],
        document["search"],
        document["message"],
        *document["notes"],
        *document["facts"].values(),
        *(row["criterion"] for row in document["criteria"]),
        *document["rejected"],
        *document["protected"],
        "db/c",
    ]
    for text in texts:
        assert escape(text) in html


async def test_shadow_policies_are_shown_with_what_differs(open_page: OpenPage) -> None:
    async with open_page([with_shadows(record(observed=True))]) as page:
        document = await page.json(DECISION)
        html = unescape(await page.html(DECISION))
    lost = "-1 victims, -4 core-hours lost"
    assert [(each["policy"], each["choice"], each["change"]) for each in document["shadows"]] == [
        ("careful", "no node, because of preemptionDelay", f"+1 refusals, {lost}"),
        ("equal", "node-7, victims batch/a-1 (10)", ""),
        ("other", "node-9, victims db/c-1 (10)", "+1 PDB violations, -4 core-hours lost"),
    ]
    assert "<td>equal</td><td>the same</td><td>none</td>" in html
    assert "node-9, victims db/c-1 (10)" in html
    assert "observe: the choice was kube-scheduler's own" in html


async def test_a_decision_without_a_node_is_shown(open_page: OpenPage) -> None:
    async with open_page([without_victims(message="0/9 nodes are available")]) as page:
        document = await page.json(DECISION)
        html = await page.html(DECISION)
    assert (document["chosen"], document["victims"], document["criteria"]) == (None, [], [])
    assert "web/b preempts no pods: no node is a candidate." in html


async def test_what_would_have_spared_a_victim_is_asked_for_by_a_link(open_page: OpenPage) -> None:
    async with open_page([record()], counterfactuals=counterfactuals) as page:
        first = await page.json(DECISION)
        spared = await page.json(first["victims"][0]["spare"].partition("#")[0])
        html = await page.html(f"{DECISION}?spare=0")
        assert "spare: &#39;1&#39;" in await page.html(f"{DECISION}?spare=1", status=400)
    assert first["spare"] is None
    assert spared["spare"] == {"pod": "batch/a-1", "lines": ["a-1 with a priority of 1000"]}
    assert "a-1 with a priority of 1000" in html


async def test_without_an_answer_the_page_explains_why(open_page: OpenPage) -> None:
    async def unknown(*_: object) -> None:
        return None

    async with open_page([record()], counterfactuals=unknown) as page:
        html = await page.html(f"{DECISION}?spare=0")
    assert "the ledger has not kept the inputs of this decision" in html


async def test_without_counterfactuals_there_is_no_link(open_page: OpenPage) -> None:
    async with open_page([record()]) as page:
        document = await page.json(DECISION)
        await page.html(f"{DECISION}?spare=0", status=400)
    assert document["victims"][0]["spare"] == ""


async def test_hostile_names_are_text(open_page: OpenPage) -> None:
    name = """"><script>alert('x')</script>"""
    found = record(victim=replace(VICTIM, name=name), message=name, notes=(name,), policy=name)
    async with open_page([found]) as page:
        for path in (DECISION, "/ui/"):
            html = await page.html(path)
            assert "<script>alert" not in html
            assert escape(name) in html


async def test_a_victim_without_an_outcome_is_shown(open_page: OpenPage) -> None:
    async with open_page([record(outcome=Outcome())]) as page:
        html = await page.html(DECISION)
    assert "batch/a-1 was not seen to be deleted." in html
