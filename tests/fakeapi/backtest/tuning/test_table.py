"""What the table of a tuning states."""

from __future__ import annotations

import pytest

from extender.terminal.output import TableRows
from fakeapi.backtest.tuning.table import conclusion, render_tuning
from fakeapi.backtest.tuning.tuning import TuningResult, tune
from tests.commands import rendered
from tests.fakeapi.backtest.tuning.test_tuning import indifferent, known_optimum, overfitted
from tests.fakeapi.backtest.tuning.tuned_policies import FakeBacktest, Outcome, plan

TUNED = "kube-scheduler-tuned"
STOPPED = "The tuning was interrupted."


def tuned(outcome: Outcome, stops_after: int = 1000) -> TuningResult:
    return tune(plan("disruptions"), FakeBacktest(outcome, stops_after=stops_after))


@pytest.mark.parametrize(
    ("outcome", "stops_after", "text"),
    [
        (
            known_optimum,
            1000,
            "Use TUNED. On the held-out segments, it is better in disruptions.",
        ),
        (
            overfitted,
            1000,
            "Keep kube-scheduler. On the held-out segments, TUNED is worse in disruptions.",
        ),
        (indifferent, 1000, "Keep kube-scheduler: no policy that was tried is better."),
        (
            indifferent,
            2,
            f"{STOPPED} Keep kube-scheduler: no policy that was tried is better.",
        ),
        (
            known_optimum,
            5,
            f"{STOPPED} Keep kube-scheduler: TUNED is the best so far, but is not validated.",
        ),
    ],
)
def test_the_conclusion(outcome: Outcome, stops_after: int, text: str) -> None:
    assert conclusion(tuned(outcome, stops_after)) == text.replace("TUNED", TUNED)


def test_the_table_has_the_front_the_changes_and_both_parts() -> None:
    text = rendered(render_tuning(tuned(overfitted), TableRows.LIMITED))
    assert "40 of 40 trials" in text
    assert "training segments 2, held-out segments 1" in text
    for part in ("chosen", "base", "rules[0].candidates", "* better", "* worse", "finished pods"):
        assert part in text
