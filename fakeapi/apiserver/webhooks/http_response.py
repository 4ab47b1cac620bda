"""Answers of HTTP/1.1 as they come, piece by piece.

Bodies come with a length, in chunks, or until the connection is closed.

Source: RFC 9112.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

MOST_HEAD_BYTES: Final = 2**20

_END_OF_HEAD: Final = b"\r\n\r\n"
_END_OF_LINE: Final = b"\r\n"
_LAST_INFORMATIONAL: Final = 199
_NO_BODY: Final = (204, 304)
_CHUNK_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(;|$)")
_LAST: Final = "last"


class MalformedAnswerError(ValueError):
    """What came is no HTTP; the words are Go's."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered."""

    status: int
    body: bytes


@dataclass(slots=True)
class Incoming:
    """An answer that comes in pieces; ``keeps``: the connection may be used again."""

    begun: bool = False
    keeps: bool = True
    _status: int = 0
    _length: int | None = None
    _chunks: Iterator[None] | None = None
    _arrived: bytearray = field(default_factory=bytearray)
    _body: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> Answer | None:
        """Take a piece; gives the answer once it is whole. Raises MalformedAnswerError."""
        self.begun = True
        self._arrived += data
        while not self._status:
            end = self._arrived.find(_END_OF_HEAD)
            if end < 0:
                if len(self._arrived) > MOST_HEAD_BYTES:
                    raise MalformedAnswerError("server response headers exceeded 1048576 bytes")
                return None
            head = bytes(self._arrived[:end])
            del self._arrived[: end + len(_END_OF_HEAD)]
            self._read_head(head)
        if self._chunks is not None:
            return self._answer(self._body) if self._last_chunk_read() else None
        if self._length is not None and len(self._arrived) >= self._length:
            self.keeps = self.keeps and len(self._arrived) == self._length
            return self._answer(self._arrived[: self._length])
        return None

    def ended(self) -> Answer | None:
        """Return the answer if the end of the connection is its end."""
        self.keeps = False
        if self._status and self._length is None and self._chunks is None:
            return self._answer(self._arrived)
        return None

    def _answer(self, body: bytearray) -> Answer:
        return Answer(self._status, bytes(body))

    def _read_head(self, head: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        version, _, rest = first.partition(" ")
        code = rest.partition(" ")[0]
        if not version.startswith("HTTP/1.") or not (len(code) == 3 and code.isdecimal()):
            raise MalformedAnswerError(f'malformed HTTP response "{first}"')
        if int(code) <= _LAST_INFORMATIONAL:
            return  # another head follows
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        self._status = int(code)
        said = headers.get("connection", "").lower()
        self.keeps = version == "HTTP/1.1" and "close" not in said
        self._expect_body(headers)

    def _expect_body(self, headers: dict[str, str]) -> None:
        length = headers.get("content-length", "")
        if self._status in _NO_BODY:
            self._length = 0
        elif "chunked" in headers.get("transfer-encoding", "").lower():
            self._chunks = self._read_chunks()
        elif length.isdecimal():
            self._length = int(length)
        elif length:
            raise MalformedAnswerError(f'bad Content-Length "{length}"')

    def _last_chunk_read(self) -> bool:
        """Read the chunks that have arrived; tell whether there are no more to come."""
        assert self._chunks is not None
        return next(self._chunks, _LAST) is _LAST

    def _read_chunks(self) -> Iterator[None]:
        """Read chunks from what has arrived, and give None whenever more has to come."""
        while True:
            while (end := self._arrived.find(_END_OF_LINE)) < 0:
                yield
            size = _chunk_size(bytes(self._arrived[:end]))
            if not size:
                break
            begin = end + len(_END_OF_LINE)
            while len(self._arrived) < begin + size + len(_END_OF_LINE):
                yield
            self._body += self._arrived[begin : begin + size]
            del self._arrived[: begin + size + len(_END_OF_LINE)]
        while (end := self._arrived.find(_END_OF_HEAD)) < 0:  # trailers may stand before it
            yield
        self.keeps = self.keeps and len(self._arrived) == end + len(_END_OF_HEAD)


def _chunk_size(line: bytes) -> int:
    found = _CHUNK_SIZE.match(line)
    if found is None:
        raise MalformedAnswerError("invalid byte in chunk length")
    return int(found[1], 16)
