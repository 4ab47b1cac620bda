"""Recording files: plain or, if the name ends in ``.gz``, compressed; ``-`` is stdin or stdout.

A file can be read up to its last flush, even if the writer crashes. A file that is truncated within
a line or within compressed data is read up to that point; a complete but invalid line is an error.
"""

from __future__ import annotations

import errno
import os
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self, cast

import orjson

from extender.kube.rest.clock import Clock
from extender.recording.format import (
    FormatError,
    Header,
    RecordedEvent,
    decode_event,
    decode_header,
)

FLUSH_SECONDS: Final = 0.5

_GZIP: Final = 31  # zlib's number for its largest window, within gzip's frame
_GZIP_MAGIC: Final = b"\x1f\x8b"
_PADDING: Final = 0
_CHUNK: Final = 1 << 12
_BUFFER_BYTES: Final = 1 << 18


class RecordingError(ValueError):
    """A recording cannot be read or written; the text has the file, the line, and the reason."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording; ``truncated_at`` says where the file is truncated, "" if it is not."""

    source: str
    header: Header
    events: tuple[RecordedEvent, ...]
    truncated_at: str = ""

    @property
    def duration_ns(self) -> int:
        """The time of the last event, in nanoseconds since the start."""
        return max((event.at_ns for event in self.events), default=0)


class RecordingFile:
    """A recording file that is written, as a context manager. Raises RecordingError.

    Lines are buffered, so that adding one seldom waits for the disk.
    """

    def __init__(self, path: str) -> None:
        self.name = "standard output" if path == "-" else path
        self._deflate = zlib.compressobj(wbits=_GZIP) if path.endswith(".gz") else None
        self._buffer = bytearray()
        try:
            self._file: BinaryIO = sys.stdout.buffer if path == "-" else _open_unbuffered(path)
        except OSError as error:
            raise self._write_error(error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def write(self, data: bytes) -> None:
        """Add lines."""
        self._buffer += data
        if len(self._buffer) >= _BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write buffered lines to the file, so that they can be read."""
        if self._buffer:
            self._put(zlib.Z_SYNC_FLUSH)

    def close(self) -> None:
        """Write buffered lines, and close the file."""
        try:
            self._put(zlib.Z_FINISH)
        finally:
            if self._file is not sys.stdout.buffer:
                self._file.close()

    async def flush_periodically(self, clock: Clock) -> None:
        """Flush every half second, until cancelled."""
        while True:
            await clock.sleep(FLUSH_SECONDS)
            self.flush()

    def _put(self, mode: int) -> None:
        data, self._buffer = bytes(self._buffer), bytearray()
        if self._deflate is not None:
            data = self._deflate.compress(data) + self._deflate.flush(mode)
        left = memoryview(data)
        try:
            while left:
                left = left[self._file.write(left) :]
            self._file.flush()
        except OSError as error:
            raise self._write_error(error) from None

    def _write_error(self, error: OSError) -> RecordingError:
        no_reader = error.errno == errno.ENXIO
        problem = "no process reads the FIFO" if no_reader else error.strerror or error
        return RecordingError(f"{self.name}: cannot be written: {problem}")


def read_recording(path: str) -> Recording:
    """Read a recording; ``-`` is standard input. Raise RecordingError."""
    name = "standard input" if path == "-" else path
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise RecordingError(f"{name}: cannot be read: {error.strerror or error}") from None
    return parse_recording(data, name)


def parse_recording(data: bytes, name: str) -> Recording:
    """Parse the bytes of a recording; errors call it ``name``. Raise RecordingError."""
    text, cut = _decompress(data, name) if data.startswith(_GZIP_MAGIC) else (data, False)
    *lines, tail = text.split(b"\n")
    partial = bool(tail) and (cut or not _is_json(tail))
    if tail and not partial:
        lines.append(tail)
    if not lines:
        expected = "expected the header of a recording"
        raise RecordingError(f"{name}: line 1: {expected}{', it breaks off' if partial else ''}")
    header, events = _parse_lines(lines, name)
    truncated_at = f"{name}: breaks off in line {len(lines) + 1}" if partial or cut else ""
    return Recording(name, header, tuple(events), truncated_at)


def _parse_lines(lines: list[bytes], name: str) -> tuple[Header, list[RecordedEvent]]:
    number = 1
    try:
        header, events = decode_header(lines[0]), []
        for number, line in enumerate(lines[1:], 2):
            events.append(decode_event(line, number))
    except FormatError as error:
        raise RecordingError(f"{name}: line {number}: {error}") from None
    return header, events


def _decompress(data: bytes, name: str) -> tuple[bytes, bool]:
    """Return the decompressed data, and whether it is truncated. Raise RecordingError.

    Concatenated gzip members count as one stream, as they do for gzip.
    """
    pieces: list[bytes] = []
    inflate, at = zlib.decompressobj(_GZIP), 0
    try:
        while at < len(data) and not (inflate.eof and data[at] == _PADDING):
            if inflate.eof:
                inflate = zlib.decompressobj(_GZIP)
            chunk = data[at : at + _CHUNK]
            pieces.append(inflate.decompress(chunk))
            at += len(chunk) - len(inflate.unused_data)
    except zlib.error as error:
        whole = sum(piece.count(b"\n") for piece in pieces)
        raise RecordingError(f"{name}: damaged gzip data after line {whole}: {error}") from None
    return b"".join(pieces), not inflate.eof


def _open_unbuffered(path: str) -> BinaryIO:
    # Unbuffered: RecordingFile has its own buffer, and the file's would be written again at close.
    return cast("BinaryIO", open(path, "wb", buffering=0, opener=_open_without_waiting))


def _open_without_waiting(path: str, flags: int) -> int:
    """Open a file; a FIFO that no process reads is an error, since no signal ends the waiting."""
    descriptor = os.open(path, flags | os.O_NONBLOCK, 0o666)
    os.set_blocking(descriptor, True)
    return descriptor


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True
