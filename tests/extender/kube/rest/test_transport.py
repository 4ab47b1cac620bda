from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.kube.rest.transport import LineSplitter, LineTooLongError, Request


@given(st.lists(st.binary(max_size=6)), st.lists(st.integers(0, 40), max_size=8))
def test_lines_are_the_same_however_the_bytes_were_chunked(
    parts: list[bytes], cuts: list[int]
) -> None:
    whole = b"\n".join(parts)
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    splitter = LineSplitter()
    lines = [
        line for start, end in itertools.pairwise(edges) for line in splitter.feed(whole[start:end])
    ]
    assert lines == whole.split(b"\n")[:-1]


def test_a_line_may_be_as_long_as_the_bound() -> None:
    assert LineSplitter(4).feed(b"1234\n12") == [b"1234"]


@pytest.mark.parametrize("chunks", [[b"12345\n"], [b"123", b"45"], [b"1\n12345"]])
def test_a_line_over_the_bound_is_an_error_before_it_is_held(chunks: list[bytes]) -> None:
    splitter = LineSplitter(4)
    *before, last = chunks
    for chunk in before:
        splitter.feed(chunk)
    with pytest.raises(LineTooLongError, match="exceeds 4 bytes"):
        splitter.feed(last)


def test_a_request_reads_as_its_request_line() -> None:
    request = Request("GET", "/api/v1/pods", (("labelSelector", "a=b,c"), ("limit", "5")))
    assert str(request) == "GET /api/v1/pods?labelSelector=a%3Db%2Cc&limit=5"
    assert str(Request("DELETE", "/api/v1/nodes/n")) == "DELETE /api/v1/nodes/n"
