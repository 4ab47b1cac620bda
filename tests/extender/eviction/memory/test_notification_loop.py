"""Notifiers of memory with real descriptors and written files.

What a trigger for stalls is to a kernel, urgent data on a connection is here: both make a
descriptor ready by priority (POLLPRI). The kernel's own files are listened to in
``tests/e2e/test_memory.py``.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from extender.eviction.memory.cgroups import find_cgroup
from extender.eviction.memory.notification_loop import CgroupNotifiers, NotifierListener
from extender.eviction.memory.notifiers import (
    EventsNotifier,
    NotifierError,
    PsiNotifier,
    ThresholdNotifier,
)
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from tests.extender.eviction.memory.kernel_files import MIB, bare, hybrid, unified

LONG = 3600.0


class SocketNotifier:
    """A notifier that is ready by priority when urgent data arrives from its peer."""

    mask = select.EPOLLPRI

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            self._far = socket.create_connection(server.getsockname())
            self._near, _ = server.accept()
        self.closed = False

    def notify(self) -> None:
        self._far.send(b"!", socket.MSG_OOB)

    def reset(self) -> None:
        abruptly = struct.pack("ii", 1, 0)
        self._far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, abruptly)
        self._far.close()

    def fileno(self) -> int:
        return self._near.fileno()

    def read_notification(self) -> str:
        self._near.recv(1, socket.MSG_OOB)
        return "a notify"

    def close(self) -> None:
        self._near.close()
        self._far.close()
        self.closed = True

    def __str__(self) -> str:
        return "notifier"


@pytest.fixture
async def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def listener(clock: VirtualClock) -> AsyncIterator[NotifierListener]:
    made = NotifierListener(clock)
    yield made
    made.close()


@pytest.fixture
def notifier() -> Iterator[SocketNotifier]:
    made = SocketNotifier()
    yield made
    made.close()


def eventfd_of(group: Path) -> int:
    """Return the eventfd that was registered last."""
    return int((group / "cgroup.event_control").read_text().split()[0])


async def test_a_priority_event_is_delivered_at_once(
    listener: NotifierListener, notifier: SocketNotifier
) -> None:
    listener.add(notifier)
    waiting = asyncio.create_task(listener.wait(LONG))
    notifier.notify()
    assert await waiting == ["a notify"]


async def test_a_notification_before_the_wait_is_not_lost(
    listener: NotifierListener, notifier: SocketNotifier
) -> None:
    listener.add(notifier)
    for _ in range(3):
        notifier.notify()
        assert await listener.wait(LONG) == ["a notify"]


async def test_a_wait_without_notifications_times_out(
    listener: NotifierListener, notifier: SocketNotifier, clock: VirtualClock
) -> None:
    listener.add(notifier)
    waiting = asyncio.create_task(listener.wait(10))
    await clock.advance(9.9)
    assert not waiting.done()
    await clock.advance(0.1)
    assert await waiting == []


async def test_a_removed_notifier_is_closed(
    listener: NotifierListener, notifier: SocketNotifier
) -> None:
    listener.add(notifier)
    listener.remove(notifier)
    listener.remove(notifier)
    assert notifier.closed


async def test_a_broken_notifier_is_reported_once_and_removed(
    listener: NotifierListener, notifier: SocketNotifier, clock: VirtualClock
) -> None:
    listener.add(notifier)
    notifier.reset()
    assert await listener.wait(LONG) == ["notifier: the notifier no longer exists"]
    assert notifier.closed
    waiting = asyncio.create_task(listener.wait(10))
    await clock.advance(10)
    assert await waiting == []


async def test_closing_closes_all(clock: VirtualClock, notifier: SocketNotifier) -> None:
    made = NotifierListener(clock)
    made.add(notifier)
    made.close()
    assert notifier.closed


async def test_a_file_that_cannot_be_polled_is_refused(
    listener: NotifierListener, tmp_path: Path
) -> None:
    path = tmp_path / "memory.events"
    path.write_text("high 0\n")
    with pytest.raises(NotifierError) as caught:
        listener.add(EventsNotifier(path))
    assert str(caught.value) == f"{path}: cannot be polled: Operation not permitted"


def test_a_trigger_for_stalls_is_written_as_the_kernel_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    path.write_text("")
    notifier = PsiNotifier(path)
    assert path.read_bytes() == b"some 100000 2000000\0"
    assert notifier.read_notification() == f"{path}: tasks stalled for 100 ms of 2000"
    notifier.close()


def test_increased_counts_are_named(tmp_path: Path) -> None:
    path = tmp_path / "memory.events"
    path.write_text("low 0\nhigh 2\nmax 0\noom 0\noom_kill 0\n")
    notifier = EventsNotifier(path)
    assert notifier.read_notification() == ""
    path.write_text("low 0\nhigh 5\nmax 0\noom 0\noom_kill 1\n")
    assert notifier.read_notification() == f"{path}: high +3, oom_kill +1"
    assert notifier.read_notification() == ""
    notifier.close()


@pytest.mark.parametrize("notifier", [PsiNotifier, EventsNotifier])
def test_missing_kernel_files_are_reported(notifier: type, tmp_path: Path) -> None:
    with pytest.raises(NotifierError) as caught:
        notifier(tmp_path / "none")
    assert str(caught.value) == f"{tmp_path}/none: cannot be opened: No such file or directory"


def test_a_threshold_is_registered_with_its_usage(tmp_path: Path) -> None:
    group = find_cgroup(hybrid(tmp_path))
    assert group is not None
    notifier = ThresholdNotifier(group.directory, 12345)
    counter, usage, level = (group.directory / "cgroup.event_control").read_text().split()
    assert (int(counter), level) == (notifier.fileno(), "12345")
    assert Path(f"/proc/self/fd/{usage}").readlink() == group.directory / "memory.usage_in_bytes"
    notifier.close()


def test_a_threshold_that_cannot_be_registered_leaves_nothing_open(tmp_path: Path) -> None:
    group = find_cgroup(hybrid(tmp_path))
    assert group is not None
    (group.directory / "cgroup.event_control").unlink()
    before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names, not paths
    with pytest.raises(NotifierError, match=r"cgroup\.event_control: cannot be opened: No such"):
        ThresholdNotifier(group.directory, 1)
    assert set(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


async def test_a_crossed_threshold_is_reported(listener: NotifierListener, tmp_path: Path) -> None:
    group = find_cgroup(hybrid(tmp_path))
    assert group is not None
    notifiers = CgroupNotifiers(listener, tmp_path / "proc", group)
    notifiers.set_thresholds([100 * MIB])
    os.eventfd_write(eventfd_of(group.directory), 1)
    message = f"{group.directory}/memory.usage_in_bytes: has crossed {100 * MIB} bytes"
    assert await listener.wait(LONG) == [message]


async def test_thresholds_follow_what_is_expected(
    listener: NotifierListener, tmp_path: Path
) -> None:
    group = find_cgroup(hybrid(tmp_path))
    assert group is not None
    control = group.directory / "cgroup.event_control"
    notifiers = CgroupNotifiers(listener, tmp_path / "proc", group)
    seen = []
    for levels in ([1], [1], [2], []):
        control.write_text("")
        notifiers.set_thresholds(levels)
        seen.append(control.read_text().split()[-1:])
    assert seen == [["1"], [], ["2"], []]


UNPOLLED = "cannot be polled: Operation not permitted"


@pytest.mark.parametrize(
    ("machine", "missing"),
    [
        (hybrid, ["proc/pressure/memory"]),
        (unified, ["cgroup/kubepods.slice/memory.pressure", "cgroup/kubepods.slice/memory.events"]),
    ],
)
async def test_a_missing_notifier_is_reported_and_the_others_work(
    machine: Callable[[Path], Path], missing: list[str], listener: NotifierListener, tmp_path: Path
) -> None:
    """Regular files cannot be polled, so every attempt is in the list of missing notifiers."""
    proc = machine(tmp_path)
    notifiers = CgroupNotifiers(listener, proc, find_cgroup(proc, "self"))
    notifiers.set_thresholds([5])
    assert notifiers.unavailable == [f"{tmp_path}/{path}: {UNPOLLED}" for path in missing]


async def test_a_node_without_cgroups_has_stall_notifications(
    listener: NotifierListener, tmp_path: Path
) -> None:
    proc = bare(tmp_path)
    notifiers = CgroupNotifiers(listener, proc, None)
    notifiers.set_thresholds([5])
    assert notifiers.unavailable == [f"{proc}/pressure/memory: {UNPOLLED}"]
