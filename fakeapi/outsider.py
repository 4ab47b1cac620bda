"""Extenders in other processes, and how a replay waits for them.

Recorded events are due at fixed times. So a replay starts once all extenders are ready, and the
world's clock is paused during each call. The latency of an extender then does not affect the
comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from extender.kube.clock import SystemClock
from fakeapi.clock import VirtualClock
from fakeapi.controlplane.scheduler.outfits import ExtenderWait

READY_TIMEOUT_SECONDS: Final = 60.0

_POLL_SECONDS: Final = 0.2
_NOT_READY_STATUS: Final = 503


class ExtenderNotReadyError(Exception):
    """An extender cannot be reached or is not ready; the text names it and the reason."""


def pause_during_calls(clock: VirtualClock) -> ExtenderWait:
    """Return the wait that pauses ``clock`` during calls; their timeouts use the host's clock."""
    return ExtenderWait(SystemClock(), clock.paused)


async def wait_extenders_ready(
    urls: Sequence[str], timeout_seconds: float = READY_TIMEOUT_SECONDS
) -> None:
    """Wait until each ``/readyz`` answers with another status than 503.

    Raises ExtenderNotReadyError after ``timeout_seconds``.
    """
    clock = SystemClock()
    deadline = clock.monotonic() + timeout_seconds
    timeout = aiohttp.ClientTimeout(total=timeout_seconds)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        for url in urls:
            while trouble := await _readiness_error(session, url):
                if clock.monotonic() > deadline:
                    raise ExtenderNotReadyError(f"{url}: {trouble}, for {timeout_seconds:g} s")
                await clock.sleep(_POLL_SECONDS)


async def _readiness_error(session: aiohttp.ClientSession, url: str) -> str:
    """Return why an extender is not ready, "" if it is."""
    place = urlsplit(url)
    try:
        async with session.get(f"{place.scheme}://{place.netloc}/readyz", ssl=False) as answer:
            return "is not ready" if answer.status == _NOT_READY_STATUS else ""
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return f"does not answer ({error})"
