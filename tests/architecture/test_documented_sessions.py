"""The commands that README and docs show with their output print that output.

A page has sessions: blocks that begin with `$ reprieve`. A comment before a block names the file
that the block is; `$ cat FILE` shows a file. Commands run in a folder with these files and those of
the repository, and with the ledger of tests/builders/ledgers.py. In shown output, `…` stands for
anything.
"""

from __future__ import annotations

import re
import shlex
import sys
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Final

import pytest

from tests.builders.ledgers import example_records, shadowed_records, write_ledger
from tests.commands import COMMAND, ROOT

ELSEWHERE: Final = {"quick-start.md", "large-clusters.md", "advise"}
"""Pages and a command that need servers: other tests run them."""
LEDGERS: Final = {"ledger.db": example_records, "observed.db": shadowed_records}
"""The files of commands that read a ledger."""

_BLOCK = re.compile(
    r"(?:<!-- (?P<name>\S+) -->\n\n)?"
    r"(?:```\w*\n(?P<fenced>.*?)^```$|(?P<indented>(?:^ {4}[^\n]*\n|^\n(?= {4}))+))",
    re.MULTILINE | re.DOTALL,
)
_DIFFERS = re.compile(r"^\S+ is not valid$|would have chosen", re.MULTILINE)
_EXPECTED = re.compile(rb'\{"pod":|reprieve: \d+ of \d+ units')
"""Logged decisions, and the progress on a slow machine."""


@dataclass
class Page:
    """The files of a page by name, and its commands with their output."""

    path: Path
    files: dict[str, str] = field(default_factory=dict)
    sessions: list[tuple[str, str]] = field(default_factory=list)


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield the code blocks of a page, each with the name in the comment before it."""
    for block in _BLOCK.finditer(text):
        lines = re.sub(r"^ {4}", "", block["indented"] or "", flags=re.MULTILINE)
        yield block["name"] or "", block["fenced"] or lines


def read_page(path: Path) -> Page:
    page = Page(path)
    for name, block in blocks(path.read_text()):
        if "." in name:
            page.files[name] = block
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            typed, _, printed = step.replace(" \\\n", " ").partition("\n")
            if typed.startswith("cat "):
                page.files[typed.removeprefix("cat ")] = dedent(printed)
            elif typed.startswith("reprieve ") and typed.split()[1] not in ELSEWHERE:
                page.sessions.append((typed, printed))
    return page


PAGES: Final = [
    read_page(path)
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if path.name not in ELSEWHERE
]


def is_shown(printed: str, shown: str) -> bool:
    """Return whether an output is the shown one, where `…` is anything; spaces do not count."""
    parts = [re.escape(" ".join(part.split())) for part in shown.split("…")]
    return re.fullmatch(" ?.* ?".join(parts), " ".join(printed.split())) is not None


@pytest.mark.parametrize(
    ("page", "typed", "shown"),
    [(page, *session) for page in PAGES for session in page.sessions],
    ids=lambda value: value.path.name if isinstance(value, Page) else value[:40],
)
async def test_a_command_prints_what_the_page_shows(
    page: Page, typed: str, shown: str, tmp_path: Path
) -> None:
    for folder in ("deploy", "docs", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    for name, text in page.files.items():
        (tmp_path / name).write_text(text)
    for name, records in LEDGERS.items():
        if name in typed:
            await write_ledger(tmp_path / name, *records())
    process = await create_subprocess_exec(
        *COMMAND,
        *shlex.split(typed)[1:],
        cwd=tmp_path,
        env={"COLUMNS": "160", "PYTHONPATH": str(ROOT), "PATH": sys.prefix},
        stdout=PIPE,
        stderr=PIPE,
    )
    out, errors = await process.communicate()
    assert [line for line in errors.splitlines() if not _EXPECTED.match(line)] == []
    assert is_shown(out.decode(), shown), out.decode()
    assert process.returncode == (1 if _DIFFERS.search(shown) else 0)


@pytest.mark.parametrize(
    ("printed", "shown"),
    [("a  b\nc\n", "a b\nc"), ("a\nx y\nc", "a\n…\nc"), ("a 1, 2", "a 1, …")],
)
def test_spaces_and_what_is_left_out_do_not_count(printed: str, shown: str) -> None:
    assert is_shown(printed, shown)


@pytest.mark.parametrize(("printed", "shown"), [("a c", "a b"), ("a b c", "a b"), ("b", "a …")])
def test_other_outputs_differ(printed: str, shown: str) -> None:
    assert not is_shown(printed, shown)


def test_the_pages_that_show_outputs_are_read() -> None:
    assert {page.path.name for page in PAGES if page.sessions} >= {
        "README.md",
        "eviction.md",
        "explain.md",
        "how-it-decides.md",
        "ledger.md",
        "policies.md",
        "record-replay.md",
        "scaledown.md",
        "shadow.md",
        "workloadspread.md",
    }
