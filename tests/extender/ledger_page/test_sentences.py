"""What the page writes about a decision."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from extender.ledger.entry import LedgerRecord, Outcome
from extender.ledger_page.amounts import format_amount, format_interval
from extender.ledger_page.sentences import headline
from tests.builders.plausible_ledgers import GIB, SECOND
from tests.extender.ledger_page.records import CHOSEN, VICTIM, record, without_victims

ENDING = "so that web/b could run: fewest PDB violations separated node-7 from node-9."


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (record(), f"batch/a-1 was evicted from node-7 {ENDING}"),
        (record(outcome=Outcome()), f"batch/a-1 was chosen for eviction from node-7 {ENDING}"),
        (
            record(kept=(CHOSEN,), decided_by=None, candidates=1),
            (
                "batch/a-1 was evicted from node-7 so that web/b could run: no other node was a"
                " candidate."
            ),
        ),
        (without_victims(), "web/b preempts no pods: no node is a candidate."),
        (
            without_victims(refused_attempt="cool-down of batch"),
            "web/b preempts no pods: cool-down of batch.",
        ),
        (
            without_victims(candidates=3, refused_nodes={"strict budgets": 3}),
            "web/b preempts no pods: guards of the policy refused 3 nodes.",
        ),
        (without_victims(fits=1, verb="filter"), "web/b fits 1 node without preemption."),
        (without_victims(fallback="late"), "No decision was made for web/b: late."),
    ],
)
def test_a_decision_is_one_sentence(found: LedgerRecord, sentence: str) -> None:
    assert headline(found) == sentence


def test_two_victims_are_named_and_three_are_counted() -> None:
    def with_victims(number: int) -> LedgerRecord:
        victims = tuple(replace(VICTIM, name=f"a-{place}") for place in range(number))
        return record(kept=(replace(CHOSEN, victims=victims),), decided_by=None, outcome=Outcome())

    assert headline(with_victims(2)).startswith("batch/a-0 and batch/a-1 were chosen")
    assert headline(with_victims(3)).startswith("3 pods were chosen for eviction from node-7")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0.0 s"),
        (0.25, "0.2 s"),
        (9.96, "10 s"),
        (60, "1 min"),
        (3661, "1 h 1 min"),
        (86400 * 3 + 3600 * 4, "3 d 4 h"),
    ],
)
def test_intervals_have_their_two_largest_units(seconds: float, text: str) -> None:
    assert format_interval(int(seconds * SECOND)) == text


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 1000, "1 core"),
        ("cpu", 1500, "1.5 cores"),
        ("memory", 512, "512 B"),
        ("memory", 3 * GIB // 2, "1.5 GiB"),
        ("hugepages-2Mi", 2**21, "2 MiB"),
        ("nvidia.com/gpu", 8, "8"),
    ],
)
def test_amounts_have_the_unit_of_their_resource(resource: str, amount: int, text: str) -> None:
    assert format_amount(resource, amount) == text
