"""The measurements, as a readable table and as JSON, in ``bench-results/``."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec

from tests.bench.budgets import Budget, Figure

RESULTS: Final = Path("bench-results")


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of one part of a run by name, and where they come from.

    ``calibration`` is the seconds of the calibration loop; ``quick`` tells of a run that has left
    things out; ``machine`` says what it ran on, in a line.
    """

    figures: Mapping[str, Figure]
    calibration: float
    quick: bool
    machine: str


def machine() -> str:
    """Return a description of the machine, as far as figures depend on it."""
    python, numpy = platform.python_version(), version("numpy")
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {python}, numpy {numpy}"


def write(
    part: str, measured: Measured, budgets: Mapping[str, Budget], beside: Mapping[str, Figure]
) -> None:
    """Write ``<part>.md`` (also to stdout) and ``<part>.json``; ``beside`` is another server's."""
    text = table(list(_rows(part, measured, budgets, beside)))
    sys.stdout.write(f"{text}\n")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{part}.md").write_text(text)
    written = msgspec.json.format(msgspec.json.encode(measured), indent=1)
    (RESULTS / f"{part}.json").write_bytes(written)


def read(part: str) -> Measured:
    """Read what an earlier run wrote. Raises OSError, or msgspec.DecodeError."""
    return msgspec.json.decode((RESULTS / f"{part}.json").read_bytes(), type=Measured)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as Markdown; the first one is the head."""
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _rows(
    part: str, measured: Measured, budgets: Mapping[str, Budget], beside: Mapping[str, Figure]
) -> Iterator[tuple[str, ...]]:
    yield "what", part, "per calibration", "aim", "beside"
    for name, figure in measured.figures.items():
        ratio = f"{figure.relative(measured.calibration):.3g}" if figure.timed else ""
        aim = budgets[name].aim if name in budgets else ""
        yield figure.what, figure.shown, ratio, aim, beside[name].shown if name in beside else ""
    yield "calibration loop", f"{measured.calibration * 1e3:.1f} ms", "1", "", ""
