"""Answers of HTTP/1.1, however they are cut into pieces on their way."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapi.apiserver.webhooks.http_response import Answer, Incoming, MalformedAnswerError

BODIES = st.binary(max_size=20)
CUTS = st.lists(st.integers(0, 200), max_size=8)


def cut(whole: bytes, cuts: list[int]) -> list[bytes]:
    """Return the pieces of what is cut at these places."""
    places = sorted({0, len(whole), *(place for place in cuts if place < len(whole))})
    return [whole[one:two] for one, two in pairwise(places)]


def read(pieces: list[bytes]) -> tuple[Answer | None, bool]:
    """Return what has been answered with the last piece, not before, and whether more may follow."""
    incoming = Incoming()
    answers = [incoming.feed(piece) for piece in pieces]
    assert not any(answers[:-1])
    return answers[-1], incoming.keeps


@given(BODIES, CUTS)
def test_a_body_with_a_length(body: bytes, cuts: list[int]) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
    assert read(cut(head + body, cuts)) == (Answer(200, body), True)


@given(st.lists(BODIES.filter(bool), max_size=4), CUTS, st.sampled_from([b"", b"X-Sum: 1\r\n"]))
def test_a_body_in_chunks(chunks: list[bytes], cuts: list[int], trailers: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n"
    coded = b"".join(b"%X;name=value\r\n%s\r\n" % (len(each), each) for each in chunks)
    whole = head + coded + b"0\r\n" + trailers + b"\r\n"
    assert read(cut(whole, cuts)) == (Answer(200, b"".join(chunks)), True)


@given(BODIES, CUTS)
def test_a_body_until_the_connection_ends(body: bytes, cuts: list[int]) -> None:
    incoming = Incoming()
    for piece in cut(b"HTTP/1.1 500 No\r\n\r\n" + body, cuts):
        assert incoming.feed(piece) is None
    assert incoming.ended() == Answer(500, body)


@pytest.mark.parametrize(
    "part",
    [b"", b"HTTP/1.1 200 OK\r\nContent-Le", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nno"],
)
def test_an_end_in_the_middle_is_no_answer(part: bytes) -> None:
    incoming = Incoming()
    assert incoming.feed(part) is None
    assert incoming.ended() is None


@pytest.mark.parametrize(
    ("whole", "keeps"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nmore", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nmore", False),
    ],
)
def test_whether_the_connection_may_be_used_again(whole: bytes, keeps: object) -> None:
    answer, kept = read([whole])
    assert answer is not None
    assert (answer.body, kept) == (b"", keeps)


@pytest.mark.parametrize(
    ("whole", "why"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", 'malformed HTTP response "SSH-2.0-OpenSSH"'),
        (b"HTTP/1.1 abc\r\n\r\n", 'malformed HTTP response "HTTP/1.1 abc"'),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", 'bad Content-Length "-1"'),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
            "invalid byte in chunk length",
        ),
        (b"x" * (2**20 + 1), "server response headers exceeded 1048576 bytes"),
    ],
)
def test_what_is_no_http_is_an_error(whole: bytes, why: str) -> None:
    with pytest.raises(MalformedAnswerError) as caught:
        Incoming().feed(whole)
    assert str(caught.value) == why
