"""Rows of CSV files, one line at a time, and the values in their cells.

Whatever is wrong with a line becomes the reason why it is left out; only a file that cannot be
opened, or whose header is not what was expected, is an error. A field never contains a line break,
so that an unbalanced quote damages one line. A last line without a line break is torn: its last
value may be incomplete.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, cast

from fakeapi.backtest.traces.trace import TraceError, TraceJob, TraceRow
from policies.kubernetes.integers import INT64_MAX
from policies.kubernetes.quantity import NANOS, QuantityError, parse_quantity

LONGEST_TIME_NS: Final = 100 * 366 * 86_400 * NANOS
"""Times from there on are refused: with a century of nanoseconds, sums still fit int64."""

_LONGEST_LINE: Final = 1 << 16
_GZIP: Final = b"\x1f\x8b"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,2})?", re.ASCII)
_NOT_LABEL: Final = re.compile(r"[^a-z0-9-]+")
_LONGEST_LABEL: Final = 63
_SHOWN: Final = 20
_ABSENT: Final = frozenset(("", "nan", "null", "none"))


class CellError(ValueError):
    """A value of a row is invalid; the text is the reason why the row is left out."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line by its columns. Its methods raise CellError."""

    line: int
    values: Mapping[str, str]

    def text(self, column: str) -> str:
        """Return a value without the space around it; "" if it is absent, or ``nan``."""
        value = self.values.get(column, "").strip()
        return "" if value.lower() in _ABSENT else value

    def dns_label(self, column: str) -> str:
        """Return a value as a DNS label: in lower case, other characters replaced by dashes."""
        label = dns_label(self.text(column))
        if not label:
            raise CellError(f"{column}: no letter or digit")
        return label

    def number(self, column: str, scale: int = 1, largest: int = INT64_MAX) -> int:
        """Return ``scale`` times a number that is not negative, rounded up."""
        text = self.text(column)
        if not _NUMBER.fullmatch(text):
            raise CellError(f"{column}: {'not a number' if text else 'empty'}")
        return self._bounded(column, -(-parse_quantity(text) * scale // NANOS), largest)

    def seconds(self, column: str) -> int:
        """Return a time in seconds as nanoseconds."""
        return self.number(column, NANOS, LONGEST_TIME_NS)

    def optional_seconds(self, column: str) -> int | None:
        """Return the same, or None if it is absent."""
        return self.seconds(column) if self.text(column) else None

    def quantity(self, column: str, scale: int) -> int:
        """Return ``scale`` times a Kubernetes quantity; 0 if it is absent."""
        try:
            nanos = parse_quantity(self.text(column) or "0")
        except QuantityError:
            raise CellError(f"{column}: not a quantity") from None
        return self._bounded(column, -(-nanos * scale // NANOS), INT64_MAX)

    @staticmethod
    def _bounded(column: str, number: int, largest: int) -> int:
        if number < 0:
            raise CellError(f"{column}: negative")
        if number > largest:
            raise CellError(f"{column}: too large")
        return number


def dns_label(text: str) -> str:
    """Return a text as a DNS label, "" if it has no ASCII letter or digit."""
    return _NOT_LABEL.sub("-", text.lower()).strip("-")[:_LONGEST_LABEL].rstrip("-")


@dataclass(frozen=True, slots=True)
class CsvJobs:
    """The jobs of a CSV file: ``job`` makes one of a row, and may raise CellError."""

    path: Path
    job: Callable[[Row], TraceJob]

    @property
    def name(self) -> str:
        """The path of the file."""
        return str(self.path)

    def read(self) -> Iterator[TraceRow]:
        """Yield the rows. Raise TraceError."""
        for line, row in read_rows(self.path):
            yield TraceRow(line, row if isinstance(row, str) else job_of_row(row, self.job))


def job_of_row(row: Row, job: Callable[[Row], TraceJob]) -> TraceJob | str:
    """Return the job of a row, or why there is none."""
    try:
        return job(row)
    except CellError as error:
        return str(error)


def read_header(path: Path) -> tuple[str, ...]:
    """Return the columns of a CSV file. Raise TraceError if it has no header."""
    for _, cells in _cells(path):
        if isinstance(cells, str):
            break
        columns = tuple(cell.strip() for cell in cells)
        if len(set(columns)) < len(columns):
            raise TraceError(f"{path}:1: the header names a column twice: {shown(columns)}")
        return columns
    raise TraceError(f"{path}: expected a CSV file in UTF-8 with a header")


def read_rows(path: Path) -> Iterator[tuple[int, Row | str]]:
    """Yield the rows below the header with their lines, or why they are left out."""
    columns = read_header(path)
    lines = _cells(path)
    next(lines)
    for line, cells in lines:
        if isinstance(cells, str):
            yield line, cells
        elif len(cells) != len(columns):
            yield line, "wrong number of columns"
        else:
            yield line, Row(line, dict(zip(columns, cells, strict=True)))


def shown(columns: Collection[str]) -> str:
    """Return columns for an error message, the beginning of many or long ones."""
    names = [name[:_SHOWN] for name in columns]
    return ", ".join([*names[:_SHOWN], "…"] if len(names) > _SHOWN else names)


def _cells(path: Path) -> Iterator[tuple[int, list[str] | str]]:
    """Yield the number and cells of each line that is not empty, or why it is left out."""
    for number, line in enumerate(_lines(path), 1):
        cells = _split(line)
        if cells:
            yield number, cells


def _split(line: bytes) -> list[str] | str:
    if len(line) > _LONGEST_LINE:
        return f"longer than {_LONGEST_LINE} bytes"
    if not line.endswith(b"\n"):
        return "torn: no line break at its end"
    try:
        text = line.decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
        if _CONTROL.search(text):
            return "control characters"
        return next(csv.reader((text,), strict=True), [])
    except UnicodeDecodeError:
        return "not UTF-8"
    except csv.Error:
        return "malformed CSV"


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file; of one that is too long, the beginning."""
    try:
        with _open(path) as file:
            while line := file.readline(_LONGEST_LINE + 1):
                if not _is_whole(line):
                    _skip_line(file)
                yield line
    except (EOFError, zlib.error, gzip.BadGzipFile):
        yield b"torn"
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror or error}") from None


def _is_whole(line: bytes) -> bool:
    return line.endswith(b"\n") or len(line) <= _LONGEST_LINE


def _skip_line(file: BinaryIO) -> None:
    while (rest := file.readline(_LONGEST_LINE)) and not rest.endswith(b"\n"):
        pass


def _open(path: Path) -> BinaryIO:
    if not path.is_file():
        raise TraceError(f"{path}: expected a file")
    with path.open("rb") as file:
        is_gzipped = file.read(len(_GZIP)) == _GZIP
    return cast("BinaryIO", gzip.open(path)) if is_gzipped else path.open("rb")
