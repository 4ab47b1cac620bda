"""``reprieve why`` and ``reprieve ledger``: ledgers in files, good and bad."""

from __future__ import annotations

import asyncio
import csv
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from extender.ledger.entry import format_id
from tests.builders.ledgers import (
    candidate,
    decision,
    example_records,
    prioritized_pod,
    write_ledger,
)

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]
ID: Final = format_id(example_records()[0].entry.id)
PERIOD: Final = ("--since", "2026-01-02T15:00:00Z", "--until", "2026-01-02T16:00:00Z")


@pytest.fixture(autouse=True)
def no_folding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print lines of any length: pytest-xdist sets the width of a terminal."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    return asyncio.run(write_ledger(tmp_path / "ledger.db", *example_records()))


def printed(capsys: Capture) -> list[str]:
    """Return the lines of stdout without spaces at their end; nothing may be on stderr."""
    out, err = capsys.readouterr()
    assert err == ""
    return [" ".join(line.split()) for line in out.splitlines()]


def test_why_has_the_newest_preemption_and_a_line_for_each_other_decision(
    tmp_path: Path, command_line: Run, capsys: Capture
) -> None:
    web = prioritized_pod("web", 1)
    records = [
        decision(n, prioritized_pod("urgent", 9), candidate("node-1", [web]), policy="")
        for n in (0, 60)
    ]
    path = asyncio.run(write_ledger(tmp_path / "l.db", *records))
    assert command_line("why", "default/web", "--ledger", path) == 0
    lines = printed(capsys)
    assert lines[0] == "default/web was named as a victim on node-1 for default/urgent"
    assert lines[1:3] == ["at 2026-01-02T15:05:05Z", "preemptor default/urgent (priority 9)"]
    older = format_id(records[0].entry.id)
    assert lines[-3:] == [
        "other decisions: 1",
        "at decision summary",
        f"2026-01-02T15:04:05Z {older} {lines[0]}",
    ]


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_why_as_a_document_has_the_sentences_the_entry_and_the_outcome(
    output: str, ledger: str, command_line: Run, capsys: Capture
) -> None:
    assert command_line("why", "default/report", "--ledger", ledger, "-o", output) == 0
    out = capsys.readouterr().out
    found: Any = json.loads(out) if output == "json" else yaml.safe_load(out)
    told = found["decision"]
    assert (found["pod"], found["others"]) == ("default/report", [])
    assert (told["id"], told["role"]) == (ID, "victim")
    assert {line["topic"] for line in told["account"]} >= {"why this pod", "followed"}
    assert told["entry"]["decidedBy"] == "lowest priority of the first victim"
    assert told["outcome"]["victims"][0]["replacement"] == "report-x7k2p"
    assert [each["runnerUpShown"] for each in told["comparison"] if each["decides"]] == ["200"]


def test_the_environment_names_the_ledger(
    ledger: str, command_line: Run, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPRIEVE_LEDGER", ledger)
    assert command_line("why", "default/report") == 0
    assert printed(capsys)[0] == "default/report was preempted on node-1 for default/urgent"
    assert command_line("ledger", "show", ID) == 0
    assert printed(capsys)[0] == "default/urgent preempts 1 pod on node-1"


def test_a_list_has_the_newest_decisions_with_victims_first(
    ledger: str, command_line: Run, capsys: Capture
) -> None:
    assert command_line("ledger", "list", "--ledger", ledger) == 0
    lines = printed(capsys)
    assert lines[0] == "id at preemptor node victims decided by state"
    shown = [line.split(maxsplit=2)[2] for line in lines[1:]]
    criterion = "lowest priority of the first victim"
    assert shown == [
        "default/train (1000) node-3 default/backup open",
        f"default/urgent (1000) node-1 default/report {criterion} bound after 14s",
    ]


@pytest.mark.parametrize(
    ("options", "preemptors"),
    [
        ((), ["train", "urgent"]),
        (("--kind", "all"), ["train", "train", "urgent"]),
        (("--limit", "1"), ["train"]),
        (("--class", "low"), ["train", "urgent"]),
        (("--class", "none"), []),
        (("--namespace", "other"), []),
        (("--since", "2026-01-02T15:04:30Z"), ["train"]),
        (("--until", "2026-01-02T15:04:30Z"), ["urgent"]),
        (("--since", "90m"), []),
        (("--since", "9999d"), ["train", "urgent"]),
    ],
)
def test_options_select_the_decisions_of_a_list(
    options: tuple[str, ...],
    preemptors: list[str],
    ledger: str,
    command_line: Run,
    capsys: Capture,
) -> None:
    assert command_line("ledger", "list", "--ledger", ledger, "-o", "json", *options) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["preemptor"] for each in found] == [f"default/{name}" for name in preemptors]


def test_a_list_as_csv_has_a_row_for_each_decision(
    ledger: str, command_line: Run, capsys: Capture
) -> None:
    assert command_line("ledger", "list", "--ledger", ledger, "--kind", "all", "-o", "csv") == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [(each["preemptor"], each["victims"], each["boundAfterSeconds"]) for each in rows] == [
        ("default/train", "", ""),
        ("default/train", "default/backup", ""),
        ("default/urgent", "default/report", "14.0"),
    ]
    assert rows[0]["fallback"] == "late: waited 0.5 s"


@pytest.mark.parametrize("output", ["table", "csv"])
def test_show_has_every_field_of_a_decision(
    output: str, ledger: str, command_line: Run, capsys: Capture
) -> None:
    assert command_line("ledger", "show", ID, "--ledger", ledger, "-o", output) == 0
    fields = {line.replace(",", " ", 1) for line in printed(capsys)}
    assert fields >= {
        "entry.pod.team search",
        "entry.kept[0].victims[0].owner Job/report",
        "entry.kept[1].spared[0].priority 100",
        "outcome.victims[0].node node-2",
        "outcome.state bound",
    }


def test_statistics_are_one_screen(ledger: str, command_line: Run, capsys: Capture) -> None:
    assert command_line("ledger", "stats", "--ledger", ledger, "--by", "team", *PERIOD) == 0
    assert printed(capsys) == [
        (
            "2026-01-02T15:00:00Z to 2026-01-02T16:00:00Z: 2 pods preempted for 2 preemptors; "
            "decisions: 3, fallbacks: 1"
        ),
        ("50% of the newest 2 preemptors were bound, half of them within 14s; still followed: 1"),
        "team preempted preemptors core-hours lost device-hours lost",
        "finance 1 0 3 0",
        "storage 1 0 4 2",
        "search 0 2 0 0",
        "budget decisions that violate it",
        "default/backup 1",
    ]


@pytest.mark.parametrize(
    ("output", "total"), [("json", 2), ("yaml", 2), ("csv", None)], ids=["json", "yaml", "csv"]
)
def test_statistics_as_documents_and_rows(
    output: str, total: int | None, ledger: str, command_line: Run, capsys: Capture
) -> None:
    assert command_line("ledger", "stats", "--ledger", ledger, *PERIOD, "-o", output) == 0
    out = capsys.readouterr().out
    if total is None:
        head = "namespace,victims,preemptors,coreHours,deviceHours"
        assert out.splitlines() == [head, "default,2,2,7.0,2.0"]
        return
    found = yaml.safe_load(out)
    assert found["total"]["victims"] == total
    assert found["outcomes"]["medianSecondsUntilBound"] == 14.0


@pytest.mark.parametrize(
    ("command", "code", "line"),
    [
        (
            ("why", "default/no"),
            1,
            "default/no: no preemption of or for this pod is known to F",
        ),
        (
            ("why", "default/report", "--uid", "x"),
            1,
            "default/report with UID x: no preemption of or for this pod is known to F",
        ),
        (("why", "report"), 2, "Invalid value for 'NS/POD': 'report'; expected NAMESPACE/NAME"),
        (("why", "default/report", "-o", "csv"), 2, "-o csv: the answer has no rows"),
        (("why", "default/report", "-o", "name"), 2, "-o name: the answer names no objects"),
        (
            ("why", "default/report", "--server", "http://127.0.0.1:1"),
            2,
            "--ledger and --server exclude each other",
        ),
        (("why", "default/report", "--token-file", "f"), 2, "--token-file: expected --server"),
        (("ledger", "show", "0000000000000001"), 1, "there is no decision 0000000000000001"),
        (
            ("ledger", "show", "x1"),
            2,
            "'x1' is no ID of a decision; expected 16 hexadecimal digits",
        ),
        (
            ("ledger", "list", "--since", "yesterday"),
            2,
            "Invalid value for '--since': 'yesterday'; expected a time before now",
        ),
        (("ledger", "list", "--since", "1e9d"), 2, "Invalid value for '--since': '1e9d'"),
        (("ledger", "list", "--since", "-1h"), 2, "Invalid value for '--since': '-1h'"),
        (("ledger", "list", "--until", "2026-01-02"), 2, "Invalid value for '--until'"),
        (
            ("ledger", "list", "--since", "1h", "--until", "2h"),
            2,
            "--since: expected a time before --until",
        ),
        (("ledger", "stats", "--by", "node"), 2, "Invalid value for '--by': 'node' is not one of"),
        (("ledger", "list", "--limit", "0"), 2, "Invalid value for '--limit'"),
    ],
)
def test_bad_input_is_one_line(
    command: tuple[str, ...],
    code: int,
    line: str,
    ledger: str,
    command_line: Run,
    capsys: Capture,
) -> None:
    assert command_line(*command, "--ledger", ledger) == code
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert err.replace(ledger, "F").startswith(f"reprieve: {line}")


def text(path: Path) -> None:
    path.write_text("id,at\n" * 1000)


def truncated(path: Path) -> None:
    whole = path.with_name("whole.db")
    asyncio.run(write_ledger(whole, *example_records()))
    path.write_bytes(whole.read_bytes()[:10_000])


def of_another_program(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE song (title TEXT)")
    connection.close()


def newer(path: Path) -> None:
    asyncio.run(write_ledger(path, *example_records()))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE ledger_format SET version = 9")
    connection.close()


def of_other_bodies(path: Path) -> None:
    asyncio.run(write_ledger(path, *example_records()))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE decision SET body = x'00ff'")
    connection.close()


@pytest.mark.parametrize("command", [("why", "default/report"), ("ledger", "list")])
@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda _: None, "no such file"),
        (Path.mkdir, "a directory; expected a file"),
        (Path.touch, "there is no ledger yet"),
        (text, "file is not a database"),
        (truncated, "database disk image is malformed"),
        (of_another_program, "not a ledger: it has other tables"),
        (newer, "a ledger of version 9; expected version 1"),
        (of_other_bodies, "entry "),
    ],
)
def test_a_file_that_is_no_ledger_is_one_line(
    command: tuple[str, ...],
    make: Callable[[Path], None],
    problem: str,
    tmp_path: Path,
    command_line: Run,
    capsys: Capture,
) -> None:
    path = tmp_path / "f.db"
    make(path)
    assert command_line(*command, "--ledger", str(path)) == 2
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert err.startswith(f"reprieve: {path}: {problem}")


@pytest.mark.parametrize("command", [("list",), ("show", ID), ("stats",)])
def test_a_ledger_has_to_be_named(
    command: tuple[str, ...],
    command_line: Run,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("REPRIEVE_LEDGER", raising=False)
    assert command_line("ledger", *command) == 2
    line = "no ledger; expected --ledger FILE, --ledger postgresql://…, or $REPRIEVE_LEDGER"
    assert capsys.readouterr() == ("", f"reprieve: {line}\n")


@pytest.mark.parametrize("command", [("policy", "show", "kube-scheduler"), ("advise", "eviction")])
def test_other_commands_print_no_csv(
    command: tuple[str, ...], command_line: Run, capsys: Capture
) -> None:
    assert command_line(*command, "-o", "csv") == 2
    line = "-o csv: the answer has no rows; expected table, wide, json or yaml"
    assert capsys.readouterr() == ("", f"reprieve: {line}\n")


def test_kubectl_runs_the_same_commands(ledger: str, command_line: Run, capsys: Capture) -> None:
    program = "kubectl-reprieve"
    assert command_line("why", "default/report", "--ledger", ledger, program=program) == 0
    assert printed(capsys)[0] == "default/report was preempted on node-1 for default/urgent"
