"""The examples of docs/eviction.md and docs/how-it-decides.md have the documented output."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from policies.eviction.kubelet_releases import EVICTION_RELEASES
from tests.commands import ROOT

EVICTION = (ROOT / "docs" / "eviction.md").read_text()
BLOCKS = {
    match["name"]: match["body"]
    for match in re.finditer(
        r"<!-- (?P<name>\S+) -->\n\n```\w+\n(?P<body>.*?)```", EVICTION, re.DOTALL
    )
    if not match["name"].startswith("advice")  # tested in tests/extender/advising/test_document.py
}
FILES = ("cluster.yaml", "summary.json", "scenario.yaml")
DECISIONS = (ROOT / "docs" / "how-it-decides.md").read_text()

Print = Callable[[str], list[str]]


@pytest.fixture
def print_lines(command_line: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> Print:
    """Return a function that runs a command line and returns its output in lines."""

    def run(line: str) -> list[str]:
        assert command_line(*shlex.split(line)) == 0
        return [each.rstrip() for each in capsys.readouterr().out.splitlines()]

    return run


@pytest.mark.parametrize("name", sorted(set(BLOCKS) - set(FILES)))
def test_an_example_of_an_eviction(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, print_lines: Print
) -> None:
    for file in FILES:
        (tmp_path / file).write_text(BLOCKS[file])
    command, _, answer = BLOCKS[name].partition("\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    assert print_lines(command.removeprefix("$ reprieve ")) == answer.splitlines()


def test_the_document_has_examples() -> None:
    assert set(BLOCKS) == {"answer", "steps", *FILES}


def test_every_release_that_changes_something_is_in_the_document() -> None:
    listed = set(re.findall(r"^\| (1\.\d\d) \|", EVICTION, re.MULTILINE))
    rules = list(EVICTION_RELEASES.items())
    changed = {
        name
        for (_, before), (name, after) in pairwise(rules)
        if {key for key in before.__slots__ if getattr(before, key) != getattr(after, key)}
        != {"name"}
    }
    assert listed == changed


def test_the_example_of_a_preemption(monkeypatch: pytest.MonkeyPatch, print_lines: Print) -> None:
    found = re.search(r"^    \$ reprieve (.*)\n((?:    .*\n)+)", DECISIONS, re.MULTILINE)
    assert found is not None
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "200")
    assert print_lines(found[1]) == textwrap.dedent(found[2]).splitlines()
