"""Extenders elsewhere, as a replay waits for them: until they are ready, and while they answer.

A recording does not wait. So it begins when whoever is to be asked can be asked, and its time
stands still while somebody is: how long an answer takes is then no part of what is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from extender.kube.clock import SystemClock
from fakeapi.clock import VirtualClock
from fakeapi.controlplane.scheduler.outfits import Waiting

PATIENCE_SECONDS: Final = 60.0

_BETWEEN_SECONDS: Final = 0.2
_NOT_YET: Final = 503


class SilentError(Exception):
    """An extender is not there, or does not get ready; the text says which, and what it says."""


def standing_still(clock: VirtualClock) -> Waiting:
    """Have a world's time stand still while an extender is asked, whose limits are the host's."""
    return Waiting(SystemClock(), clock.standing)


async def until_ready(urls: Sequence[str], patience: float = PATIENCE_SECONDS) -> None:
    """Return once all answer; a 503 of their ``/readyz`` is no answer yet. Raises SilentError."""
    clock = SystemClock()
    deadline = clock.monotonic() + patience
    timeout = aiohttp.ClientTimeout(total=patience)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        for url in urls:
            while trouble := await _trouble(session, url):
                if clock.monotonic() > deadline:
                    raise SilentError(f"{url}: {trouble}, for {patience:g} s")
                await clock.sleep(_BETWEEN_SECONDS)


async def _trouble(session: aiohttp.ClientSession, url: str) -> str:
    """Say why an extender cannot be asked, "" if it can."""
    place = urlsplit(url)
    try:
        async with session.get(f"{place.scheme}://{place.netloc}/readyz", ssl=False) as answer:
            return "is not ready" if answer.status == _NOT_YET else ""
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return f"does not answer ({error})"
