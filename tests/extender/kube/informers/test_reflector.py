from __future__ import annotations

import random

from extender.kube.informers.reflector import ReflectorBackoff
from tests.extender.kube.conftest import SteppedClock


class NoJitter(random.Random):
    def random(self) -> float:
        return 0.0


def test_delays_double_up_to_half_a_minute() -> None:
    backoff = ReflectorBackoff(SteppedClock(), NoJitter())
    assert [backoff.next_delay() for _ in range(8)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30]


def test_jitter_stays_below_twice_the_delay() -> None:
    delays = [
        ReflectorBackoff(SteppedClock(), random.Random(seed)).next_delay() for seed in range(200)
    ]
    assert all(0.8 <= delay < 1.6 for delay in delays)
    assert max(delays) - min(delays) > 0.7


async def test_two_minutes_without_a_delay_start_the_row_anew() -> None:
    clock = SteppedClock()
    backoff = ReflectorBackoff(clock, NoJitter())
    backoff.next_delay()
    await clock.sleep(120)
    assert backoff.next_delay() == 1.6
    await clock.sleep(120.1)
    assert backoff.next_delay() == 0.8


def test_the_same_seed_gives_the_same_delays() -> None:
    first, second = (ReflectorBackoff(SteppedClock(), random.Random(3)) for _ in range(2))
    assert [first.next_delay() for _ in range(5)] == [second.next_delay() for _ in range(5)]
