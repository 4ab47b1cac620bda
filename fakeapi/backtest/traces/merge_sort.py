"""An external merge sort: items of any number, sorted in bounded memory.

Items are sorted in chunks. Each full chunk is written to a temporary file, one line of JSON per
item; in the end the files are merged. The sort is stable.
"""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from typing import IO, Any, Final, TypeVar

import msgspec

T = TypeVar("T")

_CHUNK: Final = 10_000
_FILES: Final = 64
"""The files that are open at once; as many are merged into one file before there are more."""


def sort_externally(
    items: Iterable[T], type_: type[T], key: Callable[[T], Any], chunk: int = _CHUNK
) -> Iterator[T]:
    """Yield ``items`` sorted by ``key``, once all have been read; ``chunk`` are kept in memory.

    ``type_`` is their type, which msgspec can encode. Raise OSError if no file can be written.
    """
    decoder = msgspec.json.Decoder(type_)
    remaining = iter(items)
    with ExitStack() as open_files:
        files: list[IO[bytes]] = []
        while len(rest := sorted(islice(remaining, chunk), key=key)) == chunk:
            if len(files) == _FILES:
                merged = _written(_merge(files, decoder, key))
                open_files.close()
                files = [open_files.enter_context(merged)]
            files.append(open_files.enter_context(_written(rest)))
        yield from heapq.merge(*(_read(file, decoder) for file in files), rest, key=key)


def _merge(
    files: Iterable[IO[bytes]], decoder: msgspec.json.Decoder[T], key: Callable[[T], Any]
) -> Iterator[T]:
    return heapq.merge(*(_read(file, decoder) for file in files), key=key)


def _written(items: Iterable[T]) -> IO[bytes]:
    encode = msgspec.json.Encoder().encode
    file = tempfile.TemporaryFile()  # noqa: SIM115 (the caller closes it)
    for item in items:
        file.write(encode(item))
        file.write(b"\n")
    file.seek(0)
    return file


def _read(file: IO[bytes], decoder: msgspec.json.Decoder[T]) -> Iterator[T]:
    for line in file:
        yield decoder.decode(line)
