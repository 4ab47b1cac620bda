from __future__ import annotations

import time

from extender.kube.clock import Clock, SystemClock
from tests.extender.kube.conftest import SteppedClock


def test_the_system_clock_reads_the_hosts_time() -> None:
    clock: Clock = SystemClock()
    before = (time.monotonic(), time.time_ns())
    now = (clock.monotonic(), clock.now_ns())
    after = (time.monotonic(), time.time_ns())
    assert before[0] <= now[0] <= after[0]
    assert before[1] <= now[1] <= after[1]


async def test_the_system_clock_does_not_sleep_for_a_past_moment() -> None:
    await SystemClock().sleep(-5)
    await SystemClock().sleep(0)


async def test_the_stepped_clock_is_there_at_once() -> None:
    clock: Clock = SteppedClock()
    started = clock.now_ns()
    await clock.sleep(3600)
    assert clock.monotonic() == 3600
    assert clock.now_ns() - started == 3600 * 10**9
