"""The page of a replay: which decisions and objects are equal, and which differ."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from fakeapi.replay.comparison import (
    ChangedObject,
    DeletedPod,
    Deletions,
    ResourceDifferences,
)
from fakeapi.replay.report import ReplayedRecording, Report, report_page
from fakeapi.replay.scheduling_decisions import (
    DecisionComparison,
    DecisionDifference,
    SchedulingComparison,
)
from tests.extender.ledger_page.documents import text_of

EQUAL = Report(
    ReplayedRecording("f.jsonl", "v1.38.0", "2026-01-02T15:04:05Z", 19.5, {"ADDED": 1200}, ""),
    ["scheduler"],
    {"scheduler": 6},
    {},
    [],
    {"pods": ResourceDifferences(21, 21)},
    Deletions({"scheduler": 2}, {"scheduler": 2}),
    SchedulingComparison(
        DecisionComparison(4, 4), DecisionComparison(0, 0), DecisionComparison(2, 2)
    ),
    same=True,
)
PLACED = DecisionComparison(4, 3, [DecisionDifference("default/<b>", "node-1", "")])


def differing(count: int) -> Report:
    changed = [ChangedObject(f"default/web-{place}", ["spec.nodeName"]) for place in range(count)]
    return replace(
        EQUAL,
        same=False,
        resources={"pods": ResourceDifferences(21, 20, ["default/gone"], [], changed)},
        deletions=Deletions({}, {"kubelet": 1}, [DeletedPod("default/a", "", "kubelet")]),
        scheduling=SchedulingComparison(PLACED, DecisionComparison(0, 0), DecisionComparison(2, 2)),
        notes=["2 objects are owned by a Job"],
    )


def test_a_replay_that_equals_the_recording() -> None:
    text = text_of(report_page(EQUAL))
    assert "The replay equals the recording." in text
    assert "events 1,200 in 19.5 s" in text
    assert "placed 4 4 equal" in text
    assert "pods 21 21 0 0 0 equal" in text
    assert " differ " not in text


def test_differences_are_named() -> None:
    text = text_of(report_page(differing(1)))
    assert "The replay differs from the recording." in text
    assert "placed 4 3 1 differ" in text
    assert "Pods placed otherwise pod recorded here default/<b> node-1 not" in text
    assert "pods 21 20 1 0 1 2 differ" in text
    assert "different default/web-0: spec.nodeName" in text
    assert "Pods deleted otherwise pod recorded here default/a not kubelet" in text
    assert "2 objects are owned by a Job" in text


def test_long_lists_are_shortened() -> None:
    text = text_of(report_page(differing(203)))
    assert "default/web-199: spec.nodeName and 3 more; -o json has them all" in text


def test_a_replay_without_a_scheduler_compares_no_decisions() -> None:
    text = text_of(report_page(replace(EQUAL, scheduling=None)))
    assert "Decisions" not in text


@pytest.mark.parametrize(
    ("compared", "percent"),
    [
        (DecisionComparison(4, 4), 100),
        (DecisionComparison(0, 0), 100),
        (PLACED, 75),
        (DecisionComparison(3, 4, [DecisionDifference("a", "", "node-1")]), 75),
    ],
)
def test_the_share_of_equal_decisions(compared: DecisionComparison, percent: float) -> None:
    assert compared.equal_percent == percent


def test_the_command_prints_the_page(
    command_line: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("replay", "tests/recorded/preemption.jsonl.gz", "--run", "scheduler", "-o", "html")
    code = command_line(*command)
    document, errors = capsys.readouterr()
    assert (code, errors) == (0, "")
    assert "preempted 6 6 equal" in text_of(document)
