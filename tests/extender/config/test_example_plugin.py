"""The example of a plugin: its page shows what its policy does, and pip installs it."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path
from shutil import copytree
from typing import Final

import pytest

from tests.architecture.test_documented_sessions import is_shown, read_page
from tests.commands import COMMAND, ROOT
from tests.extender.config.plugin_packages import write_package

EXAMPLE: Final = ROOT / "deploy" / "policies" / "example-plugin"
PROJECT: Final = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
SESSIONS: Final = read_page(EXAMPLE / "README.md").sessions
PIP: Final = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
OFFLINE: Final = ("--no-index", "--no-deps", "--no-build-isolation")


async def printed(*command: str, installed: Path, cwd: Path = ROOT) -> str:
    """Return the output of a command that succeeds, with the packages of a folder."""
    path = f"{ROOT}:{installed}"
    env = {"COLUMNS": "160", "PYTHONPATH": path, "PATH": sys.prefix}
    process = await create_subprocess_exec(*command, cwd=cwd, env=env, stdout=PIPE, stderr=STDOUT)
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    return out.decode()


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The folder of the package, with what pip would write."""
    source = (EXAMPLE / "example_plugin.py").read_text()
    points = PROJECT["entry-points"]["reprieve.policies"]
    write_package(tmp_path, PROJECT["name"], "example_plugin", source, points)
    return tmp_path


@pytest.mark.parametrize(("typed", "shown"), SESSIONS, ids=["check", "explain"])
async def test_a_command_prints_what_the_page_shows(typed: str, shown: str, written: Path) -> None:
    found = await printed(*COMMAND, *shlex.split(typed)[1:], installed=written)
    assert is_shown(found, shown), found


def test_the_image_of_the_page_is_that_of_this_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [version] = re.findall(r"FROM reprieve:(.*)", (EXAMPLE / "README.md").read_text())
    assert version == project["version"]


@pytest.mark.slow
async def test_pip_installs_it_and_its_tests_pass(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    copytree(EXAMPLE, source)
    await printed(*PIP, *OFFLINE, "--target", str(target), str(source), installed=target)
    policy = str(source / "policy.yaml")
    valid = await printed(*COMMAND, "policy", "check", policy, installed=target)
    assert valid == f"{policy}: valid\n"
    passed = await printed(sys.executable, "-m", "pytest", "-q", installed=target, cwd=source)
    assert "5 passed" in passed
