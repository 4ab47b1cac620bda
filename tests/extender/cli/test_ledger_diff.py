"""``reprieve ledger diff``, and shadow policies in ``show``, ``stats``, ``list`` and ``why``."""

from __future__ import annotations

import asyncio
import csv
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from extender.ledger.entry import LedgerRecord, format_id
from tests.builders.ledgers import (
    candidate,
    decision,
    example_records,
    prioritized_pod,
    shadowed,
    write_ledger,
)

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]
GPU = {"cpu": 4000, "nvidia.com/gpu": 2}
PERIOD = ("--since", "2026-01-02T15:00:00Z", "--until", "2026-01-02T16:00:00Z")


@pytest.fixture(autouse=True)
def no_folding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print lines of any length: pytest-xdist sets the width of a terminal."""
    monkeypatch.delenv("COLUMNS", raising=False)


def records() -> list[LedgerRecord]:
    """Return three decisions, two of which a policy has made otherwise, and one another one."""
    train = prioritized_pod("ml/train", 100, requests=GPU, run_seconds=7200)
    web = prioritized_pod("shop/web", 200, run_seconds=3600)
    on_1 = candidate("node-1", [train], (0, 100), violated=["ml/train"])
    on_2 = candidate("node-2", [web, prioritized_pod("shop/api", 200)], (0, 200))
    made = [
        decision(seconds, prioritized_pod(f"vip-{seconds}", 1000), on_1, on_2)
        for seconds in (0, 60, 120)
    ]
    return [
        shadowed(made[0], calm=on_1, spare=on_2),
        shadowed(made[1], calm=None, spare=on_2),
        shadowed(made[2], calm=on_1, spare=on_1),
    ]


IDS = [format_id(each.entry.id) for each in records()]


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    return asyncio.run(write_ledger(tmp_path / "ledger.db", *records()))


def printed(capsys: Capture) -> list[str]:
    """Return the lines of stdout without spaces at their end; nothing may be on stderr."""
    out, err = capsys.readouterr()
    assert err == ""
    return [" ".join(line.split()) for line in out.splitlines()]


TOTALS = [
    (
        "shadow policy decisions differ choice refusals victims PDB violations core-hours lost "
        "device-hours lost"
    ),
    "calm 3 1 live 0 3 3 24 12",
    "shadow 1 2 2 16 8",
    "spare 3 2 live 0 3 3 24 12",
    "shadow 0 5 1 10 4",
]
CHANGES = "+1 victims, -1 PDB violations, -7 core-hours lost, -4 device-hours lost"
REFUSED = "+1 refusals, -1 victims, -1 PDB violations, -8 core-hours lost, -4 device-hours lost"
BOTH = f"node-2, victims shop/web (200), shop/api (200): {CHANGES}"


def test_differences_are_listed_after_their_sum(
    ledger: str, command_line: Run, capsys: Capture
) -> None:
    assert command_line("ledger", "diff", "--ledger", ledger, *PERIOD) == 1
    assert printed(capsys) == [
        *TOTALS,
        "id preemptor chosen shadow policy would have chosen change",
        f"{IDS[1]} default/vip-60 node-1: ml/train calm no node {REFUSED}",
        f"{IDS[1]} default/vip-60 node-1: ml/train spare node-2: shop/web shop/api {CHANGES}",
        f"{IDS[0]} default/vip-0 node-1: ml/train spare node-2: shop/web shop/api {CHANGES}",
    ]


@pytest.mark.parametrize(
    ("options", "code", "differing"),
    [
        (("--shadow", "calm"), 1, [(IDS[1], "calm")]),
        (("--shadow", "spare"), 1, [(IDS[1], "spare"), (IDS[0], "spare")]),
        (("--limit", "1"), 1, [(IDS[1], "calm"), (IDS[1], "spare")]),
        (("--namespace", "ml"), 1, [(IDS[1], "calm"), (IDS[1], "spare"), (IDS[0], "spare")]),
        (("--namespace", "shop"), 0, []),
        (("--since", "2026-01-02T15:06:00Z"), 0, []),
    ],
)
def test_options_select_decisions(
    options: tuple[str, ...],
    code: int,
    differing: list[tuple[str, str]],
    ledger: str,
    command_line: Run,
    capsys: Capture,
) -> None:
    asked = ("ledger", "diff", "--ledger", ledger, *PERIOD, *options, "-o", "json")
    assert command_line(*asked) == code
    found: Any = json.loads(capsys.readouterr().out)
    assert [(each["id"], each["policy"]) for each in found["differences"]] == differing


def test_rows_and_documents_have_both_choices(
    ledger: str, command_line: Run, capsys: Capture
) -> None:
    asked = ("ledger", "diff", "--ledger", ledger, *PERIOD, "--shadow", "spare")
    assert command_line(*asked, "-o", "csv") == 1
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [(each["node"], each["shadowNode"], each["shadowVictims"]) for each in rows] == [
        ("node-1", "node-2", "shop/web shop/api")
    ] * 2
    assert command_line(*asked, "-o", "json") == 1
    [total] = json.loads(capsys.readouterr().out)["policies"]
    assert (total["policy"], total["decisions"], total["differences"]) == ("spare", 3, 2)
    assert (total["live"]["deviceHours"], total["shadow"]["deviceHours"]) == (12, 4)


def test_an_unknown_policy_is_one_line(ledger: str, command_line: Run, capsys: Capture) -> None:
    asked = ("ledger", "diff", "--ledger", ledger, *PERIOD, "--shadow", "other")
    assert command_line(*asked) == 2
    line = "--shadow other: no decision of this policy in the period; expected one of: calm, spare"
    assert capsys.readouterr() == ("", f"reprieve: {line}\n")


def test_a_ledger_without_shadow_policies_has_no_differences(
    tmp_path: Path, command_line: Run, capsys: Capture
) -> None:
    path = asyncio.run(write_ledger(tmp_path / "ledger.db", *example_records()))
    with sqlite3.connect(path) as connection:  # as a ledger was made before there were any
        connection.execute("DROP TABLE shadow")
    connection.close()
    assert command_line("ledger", "diff", "--ledger", path, *PERIOD) == 0
    assert printed(capsys) == ["no decisions of shadow policies"]
    assert command_line("ledger", "list", "--kind", "differences", "--ledger", path) == 0
    assert printed(capsys) == ["no decisions"]
    assert command_line("ledger", "stats", "--ledger", path, *PERIOD) == 0


def test_lists_select_decisions_that_differ(
    ledger: str, command_line: Run, capsys: Capture
) -> None:
    assert command_line("ledger", "list", "--kind", "differences", "--ledger", ledger) == 0
    assert [line.split()[0] for line in printed(capsys)] == ["id", IDS[1], IDS[0]]


def test_an_account_has_the_choices_of_shadow_policies(
    ledger: str, command_line: Run, capsys: Capture
) -> None:
    told = {f"shadow calm: no node: {REFUSED}", f"spare: {BOTH}"}
    assert command_line("ledger", "show", IDS[1], "--ledger", ledger) == 0
    shown = set(printed(capsys))
    assert shown >= {*told, "shadows[0].policy calm", "shadows[1].entry.node node-2"}
    assert command_line("why", "default/vip-60", "--ledger", ledger) == 0
    assert set(printed(capsys)) >= told
    assert command_line("ledger", "show", IDS[2], "--ledger", ledger) == 0
    assert set(printed(capsys)) >= {"shadow calm: the same choice", "spare: the same choice"}


def test_statistics_have_the_totals_of_shadow_policies(
    ledger: str, command_line: Run, capsys: Capture
) -> None:
    assert command_line("ledger", "stats", "--ledger", ledger, *PERIOD) == 0
    assert printed(capsys)[-5:] == TOTALS
