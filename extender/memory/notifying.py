"""The kernel's word that memory gets short, at once instead of when it is next looked at.

    a stall        /proc/pressure/memory, or memory.pressure of a group: tasks have waited for
                   memory for 100 ms of 2 s (PSI)
    an event       memory.events of a group of version 2: it was throttled, was at its limit, or
                   something in it was killed
    a threshold    usage of a group of version 1 has crossed a number of bytes, either way

Each is a file descriptor that becomes ready, behind one interface (:class:`Notifier`), whose text
is the file that it watches. A kubelet listens to the third only, and only if told to
(kernelMemcgNotification); version 2 of control groups has nothing like it, and there it polls. Here
a stall or an event makes up for it. What a notifier says decides nothing: it makes whoever waits
measure at once.

A stall is watched over 2 s as only those with CAP_SYS_RESOURCE may have another window.

Sources: Documentation/accounting/psi.rst, admin-guide/cgroup-v1/memory.rst (Thresholds) and
admin-guide/cgroup-v2.rst of the kernel; threshold_notifier_linux.go in pkg/kubelet/eviction.
"""

from __future__ import annotations

import os
import select
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Protocol

STALL_US: Final = 100_000
WINDOW_US: Final = 2_000_000

_MOST_BYTES: Final = 4096


class NotifierError(Exception):
    """The kernel does not offer it, or not to us; the text names the file, and why."""


class Notifier(Protocol):
    """Something that the kernel tells by making a file descriptor ready."""

    @property
    def mask(self) -> int:
        """For what the descriptor is polled (EPOLLIN, EPOLLPRI)."""
        ...

    def fileno(self) -> int:
        """Return the descriptor."""
        ...

    def heard(self) -> str:
        """Take note that it was ready, and give what that says, or nothing if it says nothing."""
        ...

    def close(self) -> None:
        """Listen no more."""
        ...


class StallNotifier:
    """Tells that tasks had to wait for memory."""

    mask: Final = select.EPOLLPRI

    def __init__(self, path: Path, stall_us: int = STALL_US, window_us: int = WINDOW_US) -> None:
        """Set the trigger. Raises NotifierError."""
        self._path = path
        self._told = f"{path}: tasks had to wait {stall_us // 1000} ms of {window_us // 1000}"
        self._file = _opened(path, os.O_RDWR)
        try:
            os.write(self._file, f"some {stall_us} {window_us}\0".encode())
        except OSError as error:
            os.close(self._file)
            raise NotifierError(f"{path}: takes no trigger: {error.strerror}") from None

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._file

    def heard(self) -> str:
        """Return what being ready says; a trigger is ready once in each window at most."""
        return self._told

    def close(self) -> None:
        """Take the trigger back."""
        os.close(self._file)

    def __str__(self) -> str:
        return str(self._path)


class EventsNotifier:
    """Tells that one of the counts in memory.events has grown."""

    mask: Final = select.EPOLLPRI

    def __init__(self, path: Path) -> None:
        """Read the counts. Raises NotifierError."""
        self._path = path
        self._file = _opened(path, os.O_RDONLY)
        self._counts = self._read()

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._file

    def heard(self) -> str:
        """Read the counts anew, which is what makes the next change known; give what grew."""
        before, self._counts = self._counts, self._read()
        grown = (
            f"{name} +{count - before.get(name, 0)}"
            for name, count in self._counts.items()
            if count > before.get(name, 0)
        )
        listed = ", ".join(grown)
        return f"{self._path}: {listed}" if listed else ""

    def close(self) -> None:
        """Listen no more."""
        os.close(self._file)

    def __str__(self) -> str:
        return str(self._path)

    def _read(self) -> Mapping[str, int]:
        text = os.pread(self._file, _MOST_BYTES, 0).decode(errors="replace")
        lines = (line.split() for line in text.splitlines())
        return {each[0]: int(each[1]) for each in lines if len(each) == 2 and each[1].isdigit()}


class ThresholdNotifier:
    """Tells that the usage of a group of version 1 has crossed a number of bytes."""

    mask: Final = select.EPOLLIN

    def __init__(self, directory: Path, usage: int) -> None:
        """Register an eventfd for ``usage`` bytes. Raises NotifierError."""
        self._path = directory / "memory.usage_in_bytes"
        self._told = f"{self._path}: has crossed {usage} bytes"
        with ExitStack() as stack:
            self._usage = _opened(self._path, os.O_RDONLY)
            stack.callback(os.close, self._usage)
            self._counter = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            stack.callback(os.close, self._counter)
            _register(directory / "cgroup.event_control", f"{self._counter} {self._usage} {usage}")
            stack.pop_all()

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._counter

    def heard(self) -> str:
        """Return what being ready says, and be no longer ready."""
        os.eventfd_read(self._counter)
        return self._told

    def close(self) -> None:
        """Listen no more; the kernel forgets a threshold whose eventfd is closed."""
        os.close(self._counter)
        os.close(self._usage)

    def __str__(self) -> str:
        return str(self._path)


def _register(control: Path, line: str) -> None:
    file = _opened(control, os.O_WRONLY)
    try:
        os.write(file, line.encode())
    except OSError as error:
        raise NotifierError(f"{control}: takes no threshold: {error.strerror}") from None
    finally:
        os.close(file)


def _opened(path: Path, how: int) -> int:
    try:
        return os.open(path, how | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise NotifierError(f"{path}: cannot be opened: {error.strerror}") from None
