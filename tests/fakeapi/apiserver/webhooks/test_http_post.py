"""Posts on kept connections: to a server that answers, misbehaves, or is not there any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from fakeapi.apiserver.webhooks.http_post import ClosedError, Poster
from fakeapi.apiserver.webhooks.http_response import Answer, MalformedAnswerError

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def served(serve: Serve) -> AsyncIterator[str]:
    """Return the URL of a server of raw connections."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            await serve(reader, writer)
        writer.close()

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook?timeout=3s"


def answering(*answers: bytes) -> Serve:
    """Answer each request of a connection in turn, then close it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await reader.readuntil(b"\r\n\r\n{}")
            writer.write(answer)

    return serve


@pytest.fixture
async def poster() -> AsyncIterator[Poster]:
    poster = Poster()
    yield poster
    await poster.close()


async def test_what_is_sent(poster: Poster) -> None:
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n{}"))
        writer.write(OK)

    async with served(serve) as url:
        assert await poster.post(url, b"{}", None) == Answer(200, b"ok")
    assert seen == [
        b"POST /hook?timeout=3s HTTP/1.1\r\n"
        + f"Host: {url.split('/')[2]}\r\n".encode()
        + b"Accept: application/json\r\nContent-Type: application/json\r\n"
        + b"Content-Length: 2\r\n\r\n{}"
    ]


async def test_several_at_once_have_a_connection_each(poster: Poster) -> None:
    async with served(answering(OK)) as url:
        answers = await asyncio.gather(*(poster.post(url, b"{}", None) for _ in range(5)))
    assert answers == 5 * [Answer(200, b"ok")]


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [
        (b"SSH-2.0\r\n\r\n", MalformedAnswerError('malformed HTTP response "SSH-2.0"')),
        (b"", ClosedError(begun=False)),
        (OK[:-1], ClosedError(begun=True)),
    ],
    ids=["no HTTP", "nothing", "a part"],
)
async def test_what_is_no_answer_is_an_error(
    poster: Poster, answer: bytes, trouble: Exception
) -> None:
    async with served(answering(answer)) as url:
        with pytest.raises(type(trouble)) as caught:
            await poster.post(url, b"{}", None)
    assert str(caught.value) == str(trouble)


async def test_whoever_speaks_unasked_is_not_asked_on_that_connection_again(
    poster: Poster,
) -> None:
    async with served(answering(OK + OK, OK)) as url:
        for _ in range(3):
            assert await poster.post(url, b"{}", None) == Answer(200, b"ok")


async def test_what_is_not_used_is_closed() -> None:
    poster, closed = Poster(kept_seconds=0), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answering(OK)(reader, writer)
        assert await reader.read() == b""
        closed.set()

    async with served(serve) as url:
        await poster.post(url, b"{}", None)
        await closed.wait()
    await poster.close()
