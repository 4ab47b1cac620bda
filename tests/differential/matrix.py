"""The table of the releases and feature gates that random clusters are compared with.

``make conformance-all`` runs all of them and writes the table into ``docs/conformance.md``,
between two markers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.conformance.build import modules
from tests.conformance.scheduling.releases import ALL_RELEASES

PAGE: Final = Path("docs/conformance.md")
DEFAULT: Final = "default"
GATE_SETS: Final[Mapping[str, Sequence[str]]] = {
    DEFAULT: tuple(ALL_RELEASES),
    "InPlacePodVerticalScaling=true": ("1.30", "1.32"),
    "PodLevelResources=true": ("1.32",),
    "PodLevelResources=false": ("1.34",),
    "PodLevelResources=false,InPlacePodLevelResourcesVerticalScaling=false": ("1.36",),
    "TaintTolerationComparisonOperators=true": ("1.36", "1.37"),
    "GenericWorkload=true": ("1.37",),
}
"""Settings of feature gates → the releases that are compared with them."""
_VERSION: Final = re.compile(r"k8s\.io/kubernetes v(\S+)")
_BLOCK: Final = re.compile(r"(?<=<!-- matrix -->\n).*?(?=<!-- end of matrix -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Cell:
    """How many decisions were compared with a release with these gates, and how many differ."""

    upstream: str
    gates: str
    compared: int
    differ: int


def cells() -> Iterator[tuple[str, str]]:
    """Yield the releases with the settings of gates that they are compared with."""
    for gates, releases in GATE_SETS.items():
        yield from ((each, gates) for each in releases)


def table(results: Sequence[Cell]) -> str:
    """Return the results as a table in Markdown: a row for each release."""
    found = {(each.upstream, each.gates): each for each in results}
    rows = [
        ["kube-scheduler", "default gates", *(f"`{each}`" for each in GATE_SETS if each != DEFAULT)]
    ]
    rows.append(["---"] * len(rows[0]))
    for upstream in sorted(ALL_RELEASES):
        outcomes = (found.get((upstream, gates)) for gates in GATE_SETS)
        rows.append([_version(upstream), *map(_outcome, outcomes)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def write_table(results: Sequence[Cell], page: Path = PAGE) -> None:
    """Write the table between the markers of a page."""
    text = f"\n{table(results)}\n"
    page.write_text(_BLOCK.sub(lambda _: text, page.read_text()))


def _outcome(cell: Cell | None) -> str:
    return "" if cell is None else f"compared {cell.compared:,}, differ {cell.differ}"


def _version(upstream: str) -> str:
    found = _VERSION.search(modules(ALL_RELEASES[upstream]).read_text())
    assert found is not None
    return found[1]
