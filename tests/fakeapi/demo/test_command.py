"""``reprieve demo`` as a process, with HTTP between scheduler and extender."""

from __future__ import annotations

import pytest

from tests.commands import reprieve


@pytest.mark.slow
async def test_the_loop_is_closed_over_http() -> None:
    done = await reprieve("demo", "--speed", "5")
    assert (done.code, done.err) == (0, ""), done.out
    assert "\x1b" not in done.out
    for told in ("reprieve on http://127.0.0.1:", "is evicted from", "accepted", "What's next"):
        assert told in done.out
