"""The page of a pod."""

from __future__ import annotations

from html import unescape

import pytest
from msgspec.structs import replace

from extender.ledger.entry import LedgerPod, LedgerRecord
from tests.extender.ledger_page.conftest import OpenPage, counterfactuals
from tests.extender.ledger_page.records import AT, CHOSEN, DECISION, HOUR, VICTIM, record

POD = "/ui/pods/batch/a-1"


async def test_a_story_is_in_order_and_in_both_roles(open_page: OpenPage) -> None:
    earlier = record(
        at=AT - HOUR, pod=replace(VICTIM, priority=500), victim=replace(VICTIM, name="z")
    )
    async with open_page([earlier, record()]) as page:
        document = await page.json(POD)
        html = unescape(await page.html(POD))
    assert [each["role"] for each in document["story"]] == ["preemptor", "victim"]
    assert document["summary"] == document["story"][1]["sentence"]
    assert document["story"][1]["url"] == DECISION
    account = {each["topic"]: each["text"] for each in document["account"]}
    assert account["node"] == "node-7, the best of 2 candidates"
    for text in (document["summary"], *document["hints"], *account.values()):
        assert text in html


HINTS = {
    "priority": "a PriorityClass of 1000 or more",
    "budget": "violates no PodDisruptionBudget",
    "violated": "violates batch/a. A budget is a preference",
    "checkpoints": "It had run for 2h0m0s.",
    "controller": "It has no controller",
    "cool-down": "It was a victim in 2 decisions.",
}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([record()], {"priority", "budget", "checkpoints"}),
        ([record(victim=replace(VICTIM, run_seconds=60))], {"priority", "budget"}),
        (
            [record(victim=replace(VICTIM, owner="", run_seconds=0))],
            {"priority", "budget", "controller"},
        ),
        (
            [record(kept=(replace(CHOSEN, num_pdb_violations=1, violated_pdbs=("batch/a",)),))],
            {"priority", "violated", "checkpoints"},
        ),
        ([record(criteria=())], {"priority", "checkpoints"}),
        (
            [record(at=AT - HOUR), record()],
            {"priority", "budget", "checkpoints", "cool-down"},
        ),
    ],
)
async def test_hints_are_those_that_the_entry_shows(
    open_page: OpenPage, records: list[LedgerRecord], expected: set[str]
) -> None:
    async with open_page(records) as page:
        hints = (await page.json(POD))["hints"]
    assert {name for name, text in HINTS.items() if any(text in hint for hint in hints)} == expected
    assert len(hints) == len(expected)


async def test_a_preemptor_gets_no_hints(open_page: OpenPage) -> None:
    async with open_page([record()]) as page:
        document = await page.json("/ui/pods/web/b")
    assert document["hints"] == []
    assert document["summary"].startswith("batch/a-1 was evicted")


async def test_the_answer_is_three_clicks_from_the_first_page(open_page: OpenPage) -> None:
    async with open_page([record()], counterfactuals=counterfactuals) as page:
        (row,) = (await page.json("/ui/"))["decisions"]
        pod = await page.json(row["victims"][0]["url"])
        decision = await page.json(pod["spare"].partition("#")[0])
    assert pod["hints"]
    assert decision["spare"]["lines"] == ["a-1 with a priority of 1000"]


@pytest.mark.parametrize(
    ("written", "status", "location"),
    [
        ("batch/a-1", 303, POD),
        ("%20batch/a-1%20", 303, POD),
        ("a-1", 400, ""),
        ("Batch/a-1", 400, ""),
        ("batch/", 400, ""),
        ("", 400, ""),
    ],
)
async def test_the_search_leads_to_the_pod(
    open_page: OpenPage, written: str, status: int, location: str
) -> None:
    async with open_page([record()]) as page:
        headers = {"Authorization": "Bearer a-token-of-a-test"}
        found = await page.http.get(
            f"/ui/pods?pod={written}", headers=headers, allow_redirects=False
        )
    assert (found.status, found.headers.get("Location", "")) == (status, location)


async def test_the_oldest_of_many_decisions_are_left_out(open_page: OpenPage) -> None:
    pod = LedgerPod("web", "b", "uid", 1000)
    records = [record(at=AT + place * 10**6, pod=pod) for place in range(102)]
    async with open_page(records) as page:
        document = await page.json("/ui/pods/web/b")
    assert document["truncated"]
    assert len(document["story"]) == 100
