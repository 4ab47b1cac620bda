"""The notifiers of memory on this machine's own kernel.

What a machine does not offer (no pressure information, no control group of version 1, or none that
may be listened to) has to be said in one line; what it offers has to tell. Nothing is changed but
what the kernel keeps for descriptors of this process.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from extender.eviction.memory.cgroups import Cgroup, CgroupVersion, MemoryReader, find_cgroup
from extender.eviction.memory.notification_loop import CgroupNotifiers, NotifierListener
from extender.eviction.memory.notifiers import (
    Notifier,
    NotifierError,
    PsiNotifier,
    ThresholdNotifier,
)
from extender.kube.rest.clock import SystemClock

PROC = Path("/proc")
MIB = 2**20
LONGEST = 60.0
BUSY = "while True: pass"


@pytest.fixture
async def listener() -> AsyncIterator[NotifierListener]:
    made = NotifierListener(SystemClock())
    yield made
    made.close()


def refused(listener: NotifierListener, make: Callable[[], Notifier]) -> str:
    """Listen to a notifier; gives why that cannot be had, or nothing."""
    try:
        listener.add(make())
    except NotifierError as error:
        return str(error)
    return ""


async def test_cpu_stalls_are_notified(listener: NotifierListener) -> None:
    """Stalls on a processor are notified like those on memory, and are easier to cause."""
    path = PROC / "pressure/cpu"
    problem = refused(listener, lambda: PsiNotifier(path))
    crowd = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", BUSY)
        for _ in range(2 * (os.cpu_count() or 1) + 1)
    ]
    notified = await listener.wait(0 if problem else LONGEST)
    for each in crowd:
        each.kill()
        await each.wait()
    expected = [f"{path}: tasks stalled for 100 ms of 2000"]
    assert notified == expected or (not notified and problem.startswith(f"{path}: "))


def group_of_version_one() -> Cgroup | None:
    group = find_cgroup(PROC)
    return group if group is not None and group.version is CgroupVersion.ONE else None


async def test_using_memory_crosses_a_threshold(listener: NotifierListener) -> None:
    """Without a version 1 cgroup there is no threshold to cross."""
    group = group_of_version_one()
    used = MemoryReader(PROC, group).read(0).usage
    assert used is not None
    directory = PROC if group is None else group.directory
    level = used + 32 * MIB
    problem = refused(listener, lambda: ThresholdNotifier(directory, level))
    held = [bytearray(b"x" * MIB) for _ in range(256)]
    notified = await listener.wait(0 if problem else LONGEST)
    assert len(held) == 256
    expected = [f"{directory}/memory.usage_in_bytes: has crossed {level} bytes"]
    assert notified == expected or (not notified and problem.startswith(f"{directory}/"))


async def test_the_machine_is_listened_to_or_says_why_not(listener: NotifierListener) -> None:
    notifiers = CgroupNotifiers(listener, PROC, find_cgroup(PROC))
    assert all(line.startswith("/") and "\n" not in line for line in notifiers.unavailable)
