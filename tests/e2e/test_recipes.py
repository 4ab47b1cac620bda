"""The recipes of docs/fakeapi-in-your-project.md, each in a test run of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.commands import ROOT

PAGE = (ROOT / "docs" / "fakeapi-in-your-project.md").read_text()
CONFIGURATION = (
    "[pytest]\nasyncio_mode = auto\naddopts = -p fakeapi.pytest_plugin --strict-markers\n"
)
WORKERS = {"pytest-xdist": ("-p", "xdist", "-n", "2")}
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_BLOCK = re.compile(
    r"^```(?:python|yaml)\n(?:# (?P<file>\S+)\n)?(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass
class Section:
    """A section of the page: its tests, and its other files by name."""

    title: str
    tests: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)


def read_sections() -> list[Section]:
    """Return the sections of the page; a block whose first line names a file is that file."""
    found = [Section("")]
    position = 0
    for block in _BLOCK.finditer(PAGE):
        found += map(Section, _HEADING.findall(PAGE[position : block.start()]))
        position = block.end()
        if block["file"]:
            found[-1].files[block["file"]] = block["text"]
        else:
            found[-1].tests.append(block["text"])
    return found


SECTIONS = read_sections()
FILES = {name: text for section in SECTIONS for name, text in section.files.items()}
RECIPES = {section.title: section for section in SECTIONS if section.tests}


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_passes(title: str, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text(CONFIGURATION)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "test_recipe.py").write_text("\n\n".join(RECIPES[title].tests))
    command = [sys.executable, "-m", "pytest", "-q", *WORKERS.get(title, ())]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_has_a_recipe_for_each_client() -> None:
    clients = {"kopf", "kr8s", "lightkube", "kubernetes, the official client", "kubernetes_asyncio"}
    assert clients | {"pytest-xdist"} <= RECIPES.keys()
