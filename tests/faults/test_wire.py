"""Bytes on a socket: valid HTTP is answered, and anything else is refused or the connection ended.

A client that sends half a request is cut off in time, as test_listener_limits.py in
tests/extender/secure_serving asserts; here clients close their side, so that no test waits.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Final

import pytest
from structlog.testing import capture_logs

from extender.config.component_config import ConnectionLimits
from tests.extender.conftest import filter_body
from tests.extender.secure_serving.conftest import TlsFiles, files
from tests.extender.secure_serving.raw_clients import FILTER, Client, RunningListener, run_listener
from tests.faults.table import ANY_BYTES, noted

__all__ = ["files"]

BODY: Final = filter_body(None, "node-1")
RIGHT: Final[dict[str, object]] = {
    "Nodes": None,
    "NodeNames": ["node-1"],
    "FailedNodes": {},
    "FailedAndUnresolvableNodes": {},
    "Error": "",
}
OK, BAD, ENCODED = 200, 400, 415
LIMITS: Final = ConnectionLimits(header_kib=4)
TURNS: Final = 100
"""Everything has been answered within so many iterations of the event loop of both ends."""


def asking(*headers: str, body: bytes = BODY, version: str = "1.1", path: str = "/filter") -> bytes:
    """Return a request, with a Content-Length unless the headers give one."""
    lines = [f"POST {path} HTTP/{version}", "Host: x", *headers]
    if not any(each.lower().startswith(("content-length", "transfer-encoding")) for each in lines):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunked(body: bytes, size: int = 7, end: bytes = b"0\r\n\r\n") -> bytes:
    """Write a body in chunks."""
    pieces = [body[place : place + size] for place in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in pieces) + end


CHUNKS: Final = "Transfer-Encoding: chunked"

FORMS: Final[dict[str, tuple[bytes, list[int]]]] = {
    "as kube-scheduler sends it": (asking("Content-Type: application/json"), [OK]),
    "without a content type": (asking(), [OK]),
    "of another content type": (asking("Content-Type: image/png"), [OK]),
    "of no content type that there is": (asking("Content-Type: ;;;=,"), [OK]),
    "HTTP/1.0": (asking(version="1.0"), [OK]),
    "in chunks": (asking(CHUNKS, body=chunked(BODY)), [OK]),
    "in chunks of one byte": (asking(CHUNKS, body=chunked(BODY, 1)), [OK]),
    "gzip": (asking("Content-Encoding: gzip", body=gzip.compress(BODY)), [ENCODED]),
    "gzip in chunks": (
        asking("Content-Encoding: gzip", CHUNKS, body=chunked(gzip.compress(BODY))),
        [ENCODED],
    ),
    "three at once": (FILTER * 3, [OK] * 3),
    "with Expect: 100-continue": (asking("Expect: 100-continue"), [100, OK]),
    "with an expectation that nobody knows": (asking("Expect: a miracle"), [417]),
    "said to be gzip and is not": (asking("Content-Encoding: gzip"), [ENCODED]),
    "gzip of more than is allowed": (
        asking("Content-Encoding: gzip", body=gzip.compress(b" " * (65 * 2**20))),
        [ENCODED],
    ),
    "of an encoding that nobody knows": (asking("Content-Encoding: rot13", body=b"}"), [ENCODED]),
    "of a length that is none": (asking("Content-Length: many"), [BAD]),
    "of a negative length": (asking("Content-Length: -1"), [BAD]),
    "of two lengths": (asking("Content-Length: 3", "Content-Length: 4"), [BAD]),
    "of a length and in chunks": (asking(CHUNKS, "Content-Length: 3", body=chunked(BODY)), [BAD]),
    "in chunks of no length": (asking(CHUNKS, body=b"zz\r\n{}\r\n0\r\n\r\n"), [BAD]),
    "a body that is too large": (asking(f"Content-Length: {65 * 2**20}", body=b""), [413]),
    "a header that is too long": (asking("X-Long: " + "x" * 5000), [BAD]),
    "a path that is too long": (asking(path="/" + "x" * 5000), [BAD]),
    "a header without a name": (asking(": nobody"), [BAD]),
    "a header with a line end in it": (asking("X-Two: a\r\n b"), [BAD]),
    "another version": (asking(version="9.9"), [BAD]),
    "another protocol": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40), [BAD]),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [BAD]),
    "a target that is no URL": (asking(path="http://user:secret@host:99999999/"), [BAD]),
    "a target without a port": (b"CONNECT user:secret@host: HTTP/1.1\r\n\r\n", [BAD]),
    "chunks of no size": (asking(CHUNKS, body=b"secret\r\n{}\r\n0\r\n\r\n"), [BAD]),
    "chunks of another size": (asking(CHUNKS, body=b"2\r\n{}secret\r\n0\r\n\r\n"), [BAD]),
    "chunks of a size beyond bounds": (asking(CHUNKS, body=b"f" * 40 + b"\r\nsecret"), [BAD]),
    "chunks and then no trailer": (
        asking(CHUNKS, body=b"2\r\n{}\r\n0\r\nsecret secret\r\n\r\n"),
        [BAD],
    ),
    "no verb": (asking(path="/nothing"), [404]),
    "a path that leads out": (asking(path="/../../etc/passwd"), [404]),
    "a path of no text": (asking(path="/%ff%fe"), [404]),
    "a method that is not for this": (b"PUT /filter HTTP/1.1\r\nHost: x\r\n\r\n", [405]),
    "a method that is none": (b"F\x00 /filter HTTP/1.1\r\nHost: x\r\n\r\n", [BAD]),
    "nothing": (b"", []),
    "half a header": (b"POST /filter HT", []),
}


async def said(server: RunningListener, sent: bytes, tls: ssl.SSLContext | None = None) -> bytes:
    """Send bytes, close the sending side, and return the answer until the connection ends."""
    client = await server.connect(tls)
    reading = asyncio.create_task(_heard(client))
    with suppress(OSError):
        await client.send(sent)
    for _ in range(TURNS):
        await asyncio.sleep(0)
        if reading.done():
            break
    else:
        server.advance(121)
    return await reading


async def _heard(client: Client) -> bytes:
    heard = b""
    with suppress(OSError):
        while data := await client.reader.read(2**16):
            heard += data
    return heard


def answers(text: bytes) -> Iterator[tuple[int, bytes]]:
    """Parse complete answers; anything else is an error."""
    while text:
        head, end, text = text.partition(b"\r\n\r\n")
        version, status, *_ = head.split(b" ", 2)
        assert (version, end) in {(b"HTTP/1.1", b"\r\n\r\n"), (b"HTTP/1.0", b"\r\n\r\n")}, head
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        assert length or status == b"100", head
        yield int(status), text[: int(length or 0)]
        text = text[int(length or 0) :]


def check(status: int, body: bytes) -> None:
    """Check that an answer is right, or an error of one line."""
    if status == OK:
        assert json.loads(body) == RIGHT
    elif status != 100:
        assert 400 <= status < 500
        assert body.startswith(b"reprieve: "), body
        assert (body.count(b"\n"), body[-1:]) == (1, b"\n"), body


@pytest.mark.parametrize(("sent", "statuses"), FORMS.values(), ids=FORMS)
async def test_each_form_of_a_call_is_answered_or_refused(sent: bytes, statuses: list[int]) -> None:
    with capture_logs() as lines:
        async with run_listener(LIMITS) as server:
            got = list(answers(await said(server, sent)))
            assert next(answers(await said(server, FILTER)))[0] == OK
            await server.wait_for_connections(0)
    assert [status for status, _ in got] == statuses
    for status, body in got:
        check(status, body)
    assert "secret" not in repr((got, lines))
    assert not any(line.get("exc_info") for line in lines)


def spoiled(rng: Random) -> bytes:
    """Return a valid or invalid request with a few bytes changed, removed or added."""
    sent = bytearray(rng.choice(list(FORMS.values()))[0][:3000])
    for _ in range(rng.randrange(1, 6)):
        place = rng.randrange(len(sent) + 1)
        match rng.randrange(4):
            case 0:
                del sent[place : place + rng.randrange(1, 40)]
            case 1:
                sent[place:place] = rng.randbytes(rng.randrange(1, 20))
            case 2:
                sent[place : place + 1] = rng.choice(
                    [b"\r\n", b"\n", b"\0", b" ", b":", b"\r\n\r\n"]
                )
            case _:
                sent += sent[: rng.randrange(200)]
    return bytes(sent)


@pytest.mark.sampled
async def test_spoiled_bytes_are_refused_or_ended() -> None:
    with capture_logs():
        async with run_listener(LIMITS) as server:
            for seed in ANY_BYTES.seeds:
                with noted(seed):
                    for status, body in answers(await said(server, spoiled(Random(seed)))):
                        if status != OK:
                            check(status, body)
            assert next(answers(await said(server, FILTER)))[0] == OK
            await server.wait_for_connections(0)


@pytest.mark.sampled
async def test_spoiled_bytes_are_refused_with_tls(files: TlsFiles) -> None:
    with capture_logs():
        async with run_listener(LIMITS, tls=files.tls) as server:
            for seed in range(ANY_BYTES.times // 10):
                await said(server, spoiled(Random(seed)))
            client = await server.connect(files.client())
            await client.send(FILTER)
            assert "200 OK" in await client.answer()
