"""What followed a decision, in words."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from extender.ledger.entry import Outcome, State, VictimOutcome
from extender.ledger.outcome_text import preemptor_followed, victim_followed
from tests.builders.plausible_ledgers import SECOND
from tests.extender.ledger_page.records import AT, CHOSEN, VICTIM, record


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Outcome(), "is not bound yet"),
        (Outcome(State.BOUND, "node-7", AT + SECOND // 4), "was bound to node-7 after 0.25s"),
        (
            Outcome(State.BOUND, "node-8", AT + 90 * SECOND),
            "was bound to node-8 after 1m30s, not to node-7",
        ),
        (Outcome(State.DELETED, "", AT + SECOND), "was deleted or finished after 1s, not bound"),
        (Outcome(State.SUPERSEDED), "was not bound before a later decision about it"),
        (Outcome(State.UNKNOWN), "was not bound until the ledger ceased to follow it"),
    ],
)
def test_what_became_of_the_preemptor(outcome: Outcome, text: str) -> None:
    assert preemptor_followed(record(outcome=outcome)) == f"web/b {text}"


GONE = "was gone after 1s"


@pytest.mark.parametrize(
    ("owner", "outcome", "text"),
    [
        ("Job/a", VictimOutcome(), "was not seen to be deleted"),
        ("Job/a", VictimOutcome(AT + SECOND), f"{GONE}; no pod took its place yet"),
        ("", VictimOutcome(AT + SECOND), f"{GONE}; it has no controller"),
        (
            "Job/a",
            VictimOutcome(AT + SECOND, "a-1x"),
            f"{GONE}; a-1x took its place and is pending",
        ),
        (
            "Job/a",
            VictimOutcome(AT + SECOND, "a-1x", "node-5", AT + 5 * SECOND),
            f"{GONE}; a-1x took its place, bound to node-5 after 5s",
        ),
    ],
)
def test_what_became_of_a_victim(owner: str, outcome: VictimOutcome, text: str) -> None:
    chosen = replace(CHOSEN, victims=(replace(VICTIM, owner=owner),))
    found = record(kept=(chosen,), outcome=Outcome(State.UNKNOWN, victims=(outcome,)))
    assert victim_followed(found, 0) == f"batch/a-1 {text}"
