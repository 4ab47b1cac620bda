"""Text becomes an integer in one place, which bounds its length before."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
BOUNDED: Final = {
    "policies/kubernetes/integers.py": "the place",
    "policies/kubernetes/quantity.py": "bounds the length of a quantity itself",
    "policies/kubernetes/releases.py": "names of known releases",
    "extender/cel/expression_parser.py": "reports literals that are too long",
    "extender/cel/string_formats.py": "dates, and single digits",
    "policies/eviction/kubelet_releases.py": "names of known releases",
    "policies/testing/values.py": "ports that a test writes",
}
NUMBERS_ONLY: Final = ("policies/preemption/columns", "policies/preemption/vectorized")
"""Folders that convert numbers of numpy, and read no text."""
_ARITHMETIC: Final = (ast.BinOp, ast.Compare, ast.Constant)


def conversions(source: str) -> Iterator[int]:
    """Yield the lines that convert something that may be text to an integer."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name("int"), args=[argument, *_]):
                if not isinstance(argument, _ARITHMETIC):
                    yield node.lineno
            case ast.Call(func=ast.Name("map"), args=[ast.Name("int"), *_]):
                yield node.lineno


def source_files() -> Iterator[Path]:
    """Yield the files of the extender and of the policies."""
    for package in ("extender", "policies"):
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if name not in BOUNDED and not name.startswith(NUMBERS_ONLY):
                yield path


def test_no_other_module_converts_text_to_an_integer() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in source_files()
        for line in conversions(path.read_text())
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("int(text)", 1),
        ("int(match['digits'] or '0')", 1),
        ("int(text, 16)", 1),
        ("list(map(int, parts))", 1),
        ("int(share * total)", 0),
        ("int(a < b)", 0),
    ],
)
def test_a_conversion_is_found_unless_it_is_arithmetic(source: str, count: int) -> None:
    assert len(list(conversions(source))) == count
