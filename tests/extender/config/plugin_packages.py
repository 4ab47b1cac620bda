"""Packages with entry points, as pip installs them into a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write_package(
    folder: Path, name: str, module: str, source: str, entry_points: Mapping[str, str]
) -> None:
    """Write a package of one module; ``entry_points`` are the values of names in the group."""
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (folder / f"{module}.py").write_text(source)
    (metadata / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
    lines = (f"{name} = {value}\n" for name, value in entry_points.items())
    (metadata / "entry_points.txt").write_text(f"[reprieve.policies]\n{''.join(lines)}")
