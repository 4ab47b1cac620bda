"""Packages are pinned in one place, and the locked ones have hashes."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions, requires
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).parents[2]
LOCKS: Final = (
    *sorted((ROOT / "requirements").glob("*.txt")),
    ROOT / "deploy/docker/requirements.txt",
)
NOT_IN_THE_IMAGE: Final = {
    "cryptography",
    "hypothesis",
    "mcp",
    "mcp-types",
    "pyarrow",
    "starlette",
    "uvicorn",
}
"""They are extras: for self-signed certificates, for tests of policies, Parquet files and tools."""
_HASH: Final = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().split()
    return {
        canonicalize_name(name): version for name, version in (line.split("==") for line in lines)
    }


def locked(file: Path) -> Iterator[tuple[Requirement, list[str]]]:
    """Return the requirements of a file, each with its hashes."""
    for line in file.read_text().replace("\\\n", "").splitlines():
        if not line.startswith("#"):
            requirement, *hashes = line.split(" --hash=")
            yield Requirement(requirement), hashes


@pytest.mark.parametrize("file", LOCKS, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_locked_package_has_the_pinned_version_and_hashes(file: Path) -> None:
    versions = pins()
    for requirement, hashes in locked(file):
        version = versions[canonicalize_name(requirement.name)]
        assert str(requirement.specifier) == f"=={version}", f"{requirement}: make requirements"
        assert hashes, requirement
    lines = [line.strip(" \\") for line in file.read_text().splitlines() if line.startswith(" ")]
    assert all(_HASH.fullmatch(line) for line in lines), "nothing but hashes, and no index"


def test_every_pinned_package_is_locked() -> None:
    names = {canonicalize_name(each.name) for file in LOCKS for each, _ in locked(file)}
    assert pins().keys() - names == {"uv"}, "make requirements, which uv does"


def test_every_dependency_is_in_the_locks_of_its_extra() -> None:
    files: dict[str, tuple[str, ...]] = {"test": ("test",), "dev": ("test",)}
    files |= {extra: ("test", extra) for extra in ("e2e", "docs", "load")}
    files |= dict.fromkeys(("dask", "ray"), ("test", "distributed"))
    for extra, names in files.items():
        paths = [ROOT / "requirements" / f"{name}.txt" for name in names]
        there = {canonicalize_name(each.name) for path in paths for each, _ in locked(path)}
        for text in requires("reprieve") or ():
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                assert canonicalize_name(needed.name) in there, f"{extra}: {needed}"


def test_the_build_uses_the_pinned_setuptools() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["build-system"]["requires"] == [f"setuptools=={pins()['setuptools']}"]


def test_the_image_has_every_package_that_its_commands_may_import() -> None:
    distributions = packages_distributions()
    folders = (ROOT / "extender", ROOT / "policies")
    imported = {name for folder in folders for name in imported_packages(folder)}
    needed = {canonicalize_name(each) for name in imported for each in distributions.get(name, ())}
    there = {
        canonicalize_name(each.name) for each, _ in locked(ROOT / "deploy/docker/requirements.txt")
    }
    assert needed - there - {"reprieve"} == NOT_IN_THE_IMAGE


def imported_packages(folder: Path) -> Iterator[str]:
    """Yield the packages that the modules of a folder import, at any place."""
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module.partition(".")[0]
