"""A file of results, which keeps those of finished units while others still run.

Each line is a JSON object with the key of a unit and its result. Lines are only appended. After an
interruption the last line may be torn: it is cut off, and its unit runs again.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
from msgspec import Struct

from fakeapi.backtest.results import UnitResult
from policies.kubernetes.input_error import InputError


class ResultFileError(InputError):
    """A file of results cannot be used; the text names the file, the line and the reason."""


class KeptResult(Struct, frozen=True):
    """A line: the key of a unit, and its result."""

    key: str
    result: UnitResult


_START: Final = b'{"key":"'


class ResultFile:
    """An open file of results; ``results`` are those that it had, by key."""

    def __init__(self, path: Path, file: BinaryIO, results: Mapping[str, UnitResult]) -> None:
        self.path = path
        self.results = results
        self._file = file

    def append(self, key: str, result: UnitResult) -> None:
        """Add a result. Raise ResultFileError."""
        line = msgspec.json.encode(KeptResult(key, result)) + b"\n"
        try:
            self._file.write(line)
            self._file.flush()
        except OSError as error:
            raise _unusable(self.path, "written", error) from None


@contextmanager
def open_results(path: Path) -> Iterator[ResultFile]:
    """Open a file of results for this process alone; create it if necessary.

    Raise ResultFileError.
    """
    try:
        file = path.open("a+b")
    except OSError as error:
        raise _unusable(path, "opened", error) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.seek(0)
            content = file.read()
        except BlockingIOError:
            raise ResultFileError(f"{path}: another backtest writes to it") from None
        except OSError as error:
            raise _unusable(path, "read", error) from None
        whole = content[: content.rfind(b"\n") + 1]
        results = _parse(path, whole, content[len(whole) :])
        file.truncate(len(whole))
        yield ResultFile(path, file, results)


def _parse(path: Path, whole: bytes, torn: bytes) -> dict[str, UnitResult]:
    decode = msgspec.json.Decoder(KeptResult).decode
    found: dict[str, UnitResult] = {}
    number = 0
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            kept = decode(line)
        except msgspec.DecodeError as error:
            raise _not_a_result(path, number, str(error)) from None
        found[kept.key] = kept.result
    if not torn.startswith(_START[: len(torn)]):
        raise _not_a_result(path, number + 1, "found another text")
    return found


def _not_a_result(path: Path, number: int, reason: str) -> ResultFileError:
    return ResultFileError(f"{path}:{number}: expected a result of a backtest; {reason}")


def _unusable(path: Path, what: str, error: OSError) -> ResultFileError:
    return ResultFileError(f"{path}: cannot be {what}: {error.strerror or error}")
