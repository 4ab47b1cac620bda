"""Statistics of a ledger over a period."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from extender.ledger.entry import Outcome, State
from extender.ledger.statistics import GroupTotal, Outcomes, Period, read_statistics
from extender.ledger.storage.database import Database
from extender.ledger.storage.location import open_database
from extender.ledger.storage.queries import Grouping, Thrash
from extender.ledger.storage.sqlite_database import Access
from tests.builders.ledgers import (
    SECOND,
    at,
    bound,
    candidate,
    decision,
    example_records,
    prioritized_pod,
    write_ledger,
)

HOUR = 3600
CORE_HOUR = 1000 * HOUR
DAY = Period(at(-HOUR), at(23 * HOUR))


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    one = prioritized_pod("a/one", 10, owner="Job/one", team="x", priority_class="high")
    other = prioritized_pod("b/other", 5, owner="Job/other", priority_class="low", run_seconds=HOUR)
    path = await write_ledger(
        tmp_path / "ledger.db",
        *example_records(),
        decision(
            2 * HOUR,
            one,
            candidate("n", [other], violated=["b/pdb"]),
            outcome=bound(2 * HOUR + 4, "n"),
        ),
        decision(2 * HOUR + 9, other, candidate("n", [one]), outcome=Outcome(State.DELETED)),
        decision(2 * HOUR + 10, one, fits=3),
    )
    found = await open_database(path, Access.READ)
    yield found
    await found.close()


async def test_a_period_consists_of_whole_hours(database: Database) -> None:
    found = await read_statistics(database, Period(at(0), at(1)), Grouping.NAMESPACE)
    beginning = at(0) - 4 * 60 * SECOND - 5 * SECOND
    assert found.period == Period(beginning, beginning + HOUR * SECOND)
    assert (found.decisions, found.fallbacks) == (3, 1)
    assert found.groups == [
        GroupTotal("default", 2, 2, 2000 * 5400 + 2000 * 7200, 7200),
    ]


@pytest.mark.parametrize(
    ("grouping", "groups"),
    [
        (
            Grouping.NAMESPACE,
            {"default": (2, 2), "a": (1, 1), "b": (1, 1)},
        ),
        (Grouping.CLASS, {"low": (3, 1), "high": (1, 3)}),
        (
            Grouping.TEAM,
            {"": (1, 1), "finance": (1, 0), "storage": (1, 0), "x": (1, 1), "search": (0, 2)},
        ),
    ],
)
async def test_each_pod_counts_in_its_own_group(
    database: Database, grouping: Grouping, groups: dict[str, tuple[int, int]]
) -> None:
    found = await read_statistics(database, DAY, grouping)
    assert {each.group: (each.victims, each.preemptors) for each in found.groups} == groups
    assert found.total[1:3] == (4, 4)
    assert found.total.cpu == 2000 * 5400 + 2000 * 7200 + CORE_HOUR


async def test_budgets_pairs_and_outcomes_are_counted(database: Database) -> None:
    found = await read_statistics(database, DAY, Grouping.NAMESPACE)
    assert found.budgets == {"b/pdb": 1, "default/backup": 1}
    assert found.thrash == [Thrash("a/Job/one", "b/Job/other", 1, 1)]
    assert found.outcomes == Outcomes(4, bound=2, open=1, median_ns=4 * SECOND)
    assert (found.decisions, found.fallbacks) == (6, 1)


@pytest.mark.parametrize(
    ("namespace", "priority_class", "groups", "preemptions", "budgets", "pairs"),
    [
        ("default", "", ["default"], 2, ["default/backup"], 0),
        ("b", "", ["b"], 1, ["b/pdb"], 1),
        ("", "low", ["default", "b"], 1, ["b/pdb", "default/backup"], 1),
        ("a", "high", ["a"], 1, [], 1),
        ("none", "", [], 0, [], 0),
    ],
)
async def test_a_namespace_and_a_class_select_pods(
    database: Database,
    namespace: str,
    priority_class: str,
    groups: list[str],
    preemptions: int,
    budgets: list[str],
    pairs: int,
) -> None:
    period = Period(DAY.since_ns, DAY.until_ns, namespace, priority_class)
    found = await read_statistics(database, period, Grouping.NAMESPACE)
    assert [each.group for each in found.groups] == groups
    assert found.outcomes.preemptions == preemptions
    assert (list(found.budgets), len(found.thrash)) == (budgets, pairs)


async def test_a_period_without_decisions_has_none(database: Database) -> None:
    found = await read_statistics(database, Period(0, HOUR * SECOND), Grouping.TEAM)
    assert found.total == GroupTotal("", 0, 0, 0, 0)
    assert found.outcomes == Outcomes(0, 0, 0, None)
