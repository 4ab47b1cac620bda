"""Work within a share of one core, on a clock that the test moves."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from extender.protocol.request_size import Steps
from extender.server.cpu_share import PAUSE_SECONDS, CpuShare
from tests.extender.conftest import HandClock


@dataclass
class Worker:
    """Steps of some seconds each; ``begins`` are the times at which they began."""

    clock: HandClock = field(default_factory=HandClock)
    idle_seconds: float = PAUSE_SECONDS
    begins: list[float] = field(default_factory=list)

    def share(self, share: float) -> CpuShare:
        return CpuShare(share, self.clock, lambda: self.idle_seconds)

    def steps(self, *seconds: float) -> Steps[str]:
        for each in seconds:
            self.begins.append(self.clock.monotonic())
            self.clock.seconds += each
            yield
        return "done"


@pytest.mark.parametrize(
    ("share", "idle_seconds", "second"),
    [
        pytest.param(0.5, PAUSE_SECONDS, 2.0, id="half a core in a pause"),
        pytest.param(0.2, PAUSE_SECONDS, 5.0, id="a fifth"),
        pytest.param(1.0, PAUSE_SECONDS, 1.0, id="no limit"),
        pytest.param(0.5, 0.0, 20.0, id="a tenth of it while a call is in progress"),
        pytest.param(0.5, 0.09, 20.0, id="a tenth of it right after a call"),
    ],
)
async def test_a_step_waits_for_the_share_of_the_one_before(
    share: float, idle_seconds: float, second: float
) -> None:
    worker = Worker(idle_seconds=idle_seconds)
    result, seconds = await worker.share(share).run(worker.steps(1.0, 1.0))
    assert (result, seconds) == ("done", 2.0)
    assert worker.begins == pytest.approx([0.0, second], abs=0.02)


async def test_work_that_follows_other_work_waits_for_it() -> None:
    worker = Worker()
    share = worker.share(0.1)
    await share.run(worker.steps(1.0))
    await share.run(worker.steps(1.0))
    assert worker.begins[1] >= 10.0


async def test_over_a_long_time_the_share_is_used_and_not_exceeded() -> None:
    worker = Worker()
    _, seconds = await worker.share(0.25).run(worker.steps(*[0.1] * 100))
    assert 0.24 < seconds / worker.clock.seconds <= 0.253


async def test_an_error_in_a_step_is_raised() -> None:
    def steps() -> Steps[None]:
        yield
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        await Worker().share(1.0).run(steps())
