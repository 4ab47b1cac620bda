"""Creates, changes and deletes so many pods a second, and records the events of a watch.

A process: ``python -m tests.load.churn --server URL --out FILE``. It prints ``listening on URL``
once its watch is open, and runs until SIGTERM; then it waits for the events of all changes, and
prints their number and the seconds. Writes are made one after another, so that their order is
known; when they are late, they follow each other without a pause.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import aiohttp

from extender.terminal.command_line import stop_signal
from tests.load.mixes import CHANGES_PER_SECOND, NODES
from tests.load.pod_changes import Write, writes

_PODS: Final = "/api/v1/namespaces/default/pods"
_MERGE: Final = "application/merge-patch+json"
_CATCH_UP_SECONDS: Final = 30.0


async def _main(server: str, out: Path) -> None:
    stop = stop_signal()
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(server, timeout=timeout) as session:
        async with session.get(_PODS, params={"limit": "1"}) as response:
            version = (await response.json())["metadata"]["resourceVersion"]
        asked = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "3600"}
        async with session.get(_PODS, params=asked) as watch:
            seen = _Seen(out)
            following = asyncio.create_task(seen.follow(watch.content))
            _say(f"listening on {server}")
            begun = time.monotonic()
            made = await change_pods(session, stop)
            seconds = time.monotonic() - begun
            await asyncio.wait_for(seen.until(made), _CATCH_UP_SECONDS)
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following
    seen.close()
    _say(json.dumps({"changes": made, "seconds": seconds}))


class _Seen:
    """The events of the watch, written to a file as they arrive."""

    def __init__(self, out: Path) -> None:
        self._file = out.open("wb")
        self._count = 0
        self._more = asyncio.Event()

    async def follow(self, stream: aiohttp.StreamReader) -> None:
        async for line in stream:
            at = f"{time.monotonic():.6f}".encode()
            self._file.write(b'{"at":' + at + b',"event":' + line.strip() + b"}\n")
            self._count += 1
            self._more.set()

    async def until(self, count: int) -> None:
        """Return once so many events have come."""
        while self._count < count:
            self._more.clear()
            await self._more.wait()

    def close(self) -> None:
        self._file.close()


async def change_pods(session: aiohttp.ClientSession, stop: asyncio.Event) -> int:
    """Make one change after the other at their pace, until stopped; return how many."""
    due, made = time.monotonic(), 0
    for write in writes(NODES):
        due += 1 / CHANGES_PER_SECOND
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), max(0.0, due - time.monotonic()))
        if stop.is_set():
            break
        await _make(session, write)
        made += 1
    return made


async def _make(session: aiohttp.ClientSession, write: Write) -> None:
    kind = _MERGE if write.method == "PATCH" else "application/json"
    body = None if write.body is None else json.dumps(write.body).encode()
    path, headers = f"{_PODS}{write.path}", {"Content-Type": kind}
    async with session.request(write.method, path, data=body, headers=headers) as response:
        text = await response.text()
        if response.status >= 300:
            raise RuntimeError(
                f"{write.method} {path} was answered {response.status}: {text[:200]}"
            )


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.load.churn", description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    asyncio.run(_main(given.server, given.out))


if __name__ == "__main__":
    main()
