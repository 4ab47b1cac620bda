"""docs/eviction.md is true: its examples are played, and answered as it says."""

from __future__ import annotations

import re
import shlex
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import structlog

from fakeapi.cli.root_command import main
from policies.eviction.kubelet_releases import EVICTION_RELEASES

TEXT = (Path(__file__).parents[3] / "docs" / "eviction.md").read_text()
BLOCKS = {
    match["name"]: match["body"]
    for match in re.finditer(r"<!-- (?P<name>\S+) -->\n\n```\w+\n(?P<body>.*?)```", TEXT, re.DOTALL)
    if not match["name"].startswith("advice")  # played in tests/extender/advising/test_document.py
}
FILES = ("cluster.yaml", "summary.json", "scenario.yaml")


@pytest.mark.parametrize("name", sorted(set(BLOCKS) - set(FILES)))
def test_an_example_is_answered_as_the_document_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in FILES:
        (tmp_path / file).write_text(BLOCKS[file])
    command, _, answer = BLOCKS[name].partition("\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "argv", shlex.split(command.removeprefix("$ ")))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # typer puts its own there
    with pytest.raises(SystemExit):
        main()
    structlog.reset_defaults()
    out = capsys.readouterr().out
    assert [line.rstrip() for line in out.splitlines()] == answer.splitlines()


def test_there_are_examples() -> None:
    assert set(BLOCKS) == {"answer", "steps", *FILES}


def test_every_release_that_changes_something_is_in_the_document() -> None:
    listed = set(re.findall(r"^\| (1\.\d\d) \|", TEXT, re.MULTILINE))
    rules = list(EVICTION_RELEASES.items())
    changed = {
        name
        for (_, before), (name, after) in pairwise(rules)
        if {key for key in before.__slots__ if getattr(before, key) != getattr(after, key)}
        != {"name"}
    }
    assert listed == changed
