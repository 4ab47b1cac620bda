"""Bytes on the sockets of ``reprieve serve`` and ``reprieve fakeapi``, as processes of their own.

An input is what one client sends. The client then closes its side, and reads until the connection
ends. A failure is a status of 500, the end of the process, and a traceback on its stderr.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryFile
from typing import IO, Final

from fakeapi.demo.scenarios import captured_request
from tests.builders import pod_json
from tests.commands import COMMAND, ROOT
from tests.extender.conftest import filter_body
from tests.fuzz import api_requests
from tests.fuzz.kind import FailedError, Kind
from tests.fuzz.mutation import TEXTS, mutate_bytes, mutate_document, pick

_SECONDS: Final = 60.0
_STATUS_500: Final = re.compile(rb"HTTP/1\.[01] 500 ")
_HEADERS: Final = (
    "Content-Type: application/json",
    "Content-Encoding: gzip",
    "Transfer-Encoding: chunked",
    "Expect: 100-continue",
    "Connection: close",
    "Connection: Upgrade\r\nUpgrade: websocket",
    "X-Request-Id: a b",
    "traceparent: 00-0-0-0",
    "Accept: application/json;as=Table;v=v1;g=meta.k8s.io",
    "Accept-Encoding: gzip",
    "Authorization: Bearer x",
    "Impersonate-User: a",
    "Impersonate-Extra-%ff: a",
    "If-None-Match: *",
)
_VERB_PATHS: Final = (
    *("/filter", "/preempt", "/prioritize", "/livez", "/readyz?verbose", "/metrics"),
    *("/decisions?limit=9", "/decisions?limit=-1", "/openapi.json", "/", "*", "//filter"),
    *("http://user:secret@host:99999999/", "/%00", "/filter/../filter"),
)


class ServerProcess:
    """A process that serves until :meth:`stop`; it is started on first use."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self._process: Process | None = None
        self._port = 0
        self._errors: IO[bytes] = TemporaryFile("a+b")  # noqa: SIM115 - closed with the process

    async def send(self, data: bytes) -> bytes:
        """Send bytes and return the answer. Raise FailedError if the process fails."""
        if self._process is None:
            await self._start()
        answer = b""
        try:
            async with asyncio.timeout(_SECONDS):
                answer = await self._exchange(data)
        except OSError:
            pass  # the server may end the connection at any time
        except TimeoutError:
            raise FailedError(f"no answer within {_SECONDS:.0f} s") from None
        self._check()
        return answer

    def resident_kib(self) -> int:
        """Return the resident memory in KiB, 0 if the process does not run."""
        if self._process is None:
            return 0
        text = Path(f"/proc/{self._process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+)", text)
        return int(found[1]) if found else 0

    async def stop(self) -> None:
        """End the process by SIGTERM. Raise FailedError if it does not end well."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        code = await process.wait()
        if code != 0:
            raise FailedError(f"exit code {code}: {self._stderr()[-2000:]}")

    async def _start(self) -> None:
        self._errors.truncate(0)
        self._process = await asyncio.create_subprocess_exec(
            *COMMAND, *self._arguments, "--port", "0", cwd=ROOT, stdout=PIPE, stderr=self._errors
        )
        assert self._process.stdout is not None
        line = (await self._process.stdout.readline()).decode()
        if not line.startswith("listening on "):
            raise FailedError(f"the server does not start: {line} {self._stderr()}")
        self._port = int(line.rsplit(":", 1)[1])
        self._draining = asyncio.create_task(self._drain(self._process))

    async def _drain(self, process: Process) -> None:
        assert process.stdout is not None
        while await process.stdout.read(65_536):
            pass

    async def _exchange(self, data: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            writer.write(data)
            with suppress(OSError):
                await writer.drain()
                writer.write_eof()
            return await reader.read()
        finally:
            writer.close()

    def _check(self) -> None:
        assert self._process is not None
        if self._process.returncode is not None:
            code, self._process = self._process.returncode, None
            raise FailedError(f"the process ended with {code}: {self._stderr()[-2000:]}")
        errors = self._stderr()
        if "Traceback" in errors:
            self._errors.truncate(0)
            raise FailedError(_last_error(errors))

    def _stderr(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace").replace("\x00", "")


def _last_error(text: str) -> str:
    """Return where the last traceback of a log ends, and its error."""
    plain = text.replace("\\n", "\n").replace('\\"', '"')
    places = re.findall(r'File "([^"]+)", line (\d+)', plain)
    errors = re.findall(r"^[a-z][\w.]*\.\w+: .*|^[A-Z]\w+Error: .*", plain, re.MULTILINE)
    shown = " ".join(":".join(place) for place in places[-2:])
    return f"{errors[-1][:300] if errors else plain[-500:]} ({shown})"


EXTENDER: Final = ServerProcess("serve", "--embedded", "demo")
FAKEAPI: Final = ServerProcess("fakeapi", "--run", "none")


async def stop_all() -> None:
    """Stop both processes."""
    for each in (EXTENDER, FAKEAPI):
        await each.stop()


@cache
def _bodies() -> Sequence[bytes]:
    return (
        filter_body(pod_json("vip", cpu="4", priority=1000), "node-1"),
        captured_request("preempt-cache-true"),
        captured_request("filter-cache-true"),
        b"",
        b"{}",
    )


def _generate_call(rng: Random) -> bytes:
    body = pick(rng, _bodies())
    if body and rng.random() < 0.4:
        body = json.dumps(mutate_document(rng, json.loads(body))).encode()
    return _message(rng, pick(rng, ("POST", "POST", "GET", "PUT")), pick(rng, _VERB_PATHS), body)


def _generate_request(rng: Random) -> bytes:
    parts = []
    for each in json.loads(api_requests.generate(rng))[:4]:
        query = f"?{each['query']}" if each["query"] else ""
        # A watch would last until its timeout; watches are among the requests without sockets.
        target = f"{each['path']}{query}".replace("watch=", "watched=")
        target = "".join(c if "!" <= c <= "~" else "%20" for c in target)
        headers = [f"Content-Type: {each['type']}"] if each["type"] else []
        headers += [f"Accept: {each['accept']}"] if each["accept"] else []
        body = each["body"].encode("latin-1")
        parts.append(_message(rng, each["method"], target, body, headers))
    return b"".join(parts)


def _message(
    rng: Random, method: str, target: str, body: bytes, headers: Sequence[str] = ()
) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "Host: x", *headers]
    lines += [pick(rng, _HEADERS) for _ in range(rng.randrange(3)) if rng.random() < 0.4]
    if "Content-Encoding: gzip" in lines and rng.random() < 0.5:
        body = gzip.compress(body, mtime=0)
    if "Transfer-Encoding: chunked" in lines:
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    elif rng.random() < 0.97:
        lines.append(f"Content-Length: {len(body)}")
    if rng.random() < 0.05:
        lines.append(f"X-Long: {pick(rng, TEXTS)}")
    head = "\r\n".join(lines).encode(errors="replace") + b"\r\n\r\n"
    if rng.random() < 0.2:
        head = mutate_bytes(rng, head)
    return head + (mutate_bytes(rng, body) if rng.random() < 0.1 else body)


def _checker(server: ServerProcess) -> Callable[[bytes], Awaitable[None]]:
    async def check(data: bytes) -> None:
        answer = await server.send(data)
        if _STATUS_500.search(answer) and not any(
            each.encode() in answer for each in api_requests.UPSTREAM_500
        ):
            raise FailedError(answer[:1000].decode(errors="replace"))

    return check


KINDS: Final = (
    Kind("wire-serve", _generate_call, _checker(EXTENDER)),
    Kind("wire-fakeapi", _generate_request, _checker(FAKEAPI)),
)
