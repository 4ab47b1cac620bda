"""Memory notifiers: the kernel signals memory pressure before the next periodic measurement.

    a stall        /proc/pressure/memory, or memory.pressure of a group: tasks have waited for
                   memory for 100 ms of 2 s (PSI)
    an event       memory.events of a group of version 2: it was throttled, was at its limit, or
                   a process in it was killed
    a threshold    usage of a group of version 1 has crossed a number of bytes, either way

Each notifier (:class:`Notifier`) is a file descriptor that becomes ready; its text is the path of
the file. A kubelet uses only the third, and only with kernelMemcgNotification; version 2 of control
groups has no equivalent, so the kubelet polls there. Here a stall or an event replaces it. A
notification decides nothing: it triggers an immediate measurement.

The window of a stall is 2 s, because other windows require CAP_SYS_RESOURCE.

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

from policies.kubernetes.integers import parse_integer

STALL_US: Final = 100_000
WINDOW_US: Final = 2_000_000

_MAX_BYTES: Final = 4096


class NotifierError(Exception):
    """A notifier is not supported, or not permitted; the text names the file and the reason."""


class Notifier(Protocol):
    """A source of notifications of the kernel with a file descriptor."""

    @property
    def mask(self) -> int:
        """The poll events of the descriptor (EPOLLIN, EPOLLPRI)."""
        ...

    def fileno(self) -> int:
        """Return the descriptor."""
        ...

    def read_notification(self) -> str:
        """Consume the notification, and return its text; "" if there is nothing to report."""
        ...

    def close(self) -> None:
        """Stop the notifications."""
        ...


class PsiNotifier:
    """Notifies of tasks that had to wait for memory."""

    mask: Final = select.EPOLLPRI

    def __init__(self, path: Path, stall_us: int = STALL_US, window_us: int = WINDOW_US) -> None:
        """Register the trigger. Raise NotifierError."""
        self._path = path
        self._text = f"{path}: tasks stalled for {stall_us // 1000} ms of {window_us // 1000}"
        self._file = _open(path, os.O_RDWR)
        try:
            os.write(self._file, f"some {stall_us} {window_us}\0".encode())
        except OSError as error:
            os.close(self._file)
            raise NotifierError(f"{path}: cannot set a trigger: {error.strerror}") from None

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._file

    def read_notification(self) -> str:
        """Return the text of the notification; a trigger fires at most once per window."""
        return self._text

    def close(self) -> None:
        """Remove the trigger."""
        os.close(self._file)

    def __str__(self) -> str:
        return str(self._path)


class EventsNotifier:
    """Notifies of a count in memory.events that has increased."""

    mask: Final = select.EPOLLPRI

    def __init__(self, path: Path) -> None:
        """Read the counts. Raise NotifierError."""
        self._path = path
        self._file = _open(path, os.O_RDONLY)
        self._counts = self._read()

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._file

    def read_notification(self) -> str:
        """Read the counts, which rearms the notification, and return the ones that increased."""
        before, self._counts = self._counts, self._read()
        grown = (
            f"{name} +{count - before.get(name, 0)}"
            for name, count in self._counts.items()
            if count > before.get(name, 0)
        )
        listed = ", ".join(grown)
        return f"{self._path}: {listed}" if listed else ""

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def __str__(self) -> str:
        return str(self._path)

    def _read(self) -> Mapping[str, int]:
        text = os.pread(self._file, _MAX_BYTES, 0).decode(errors="replace")
        lines = (line.split() for line in text.splitlines())
        found = {each[0]: parse_integer(each[1]) for each in lines if len(each) == 2}
        return {name: count for name, count in found.items() if count is not None}


class ThresholdNotifier:
    """Notifies of a usage of a group of version 1 that has crossed a number of bytes."""

    mask: Final = select.EPOLLIN

    def __init__(self, directory: Path, usage: int) -> None:
        """Register an eventfd for ``usage`` bytes. Raise NotifierError."""
        self._path = directory / "memory.usage_in_bytes"
        self._text = f"{self._path}: has crossed {usage} bytes"
        with ExitStack() as stack:
            self._usage = _open(self._path, os.O_RDONLY)
            stack.callback(os.close, self._usage)
            self._counter = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            stack.callback(os.close, self._counter)
            _register(directory / "cgroup.event_control", f"{self._counter} {self._usage} {usage}")
            stack.pop_all()

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._counter

    def read_notification(self) -> str:
        """Return the text of the notification, and reset the descriptor."""
        os.eventfd_read(self._counter)
        return self._text

    def close(self) -> None:
        """Close the eventfd, which removes the threshold in the kernel."""
        os.close(self._counter)
        os.close(self._usage)

    def __str__(self) -> str:
        return str(self._path)


def _register(control: Path, line: str) -> None:
    file = _open(control, os.O_WRONLY)
    try:
        os.write(file, line.encode())
    except OSError as error:
        raise NotifierError(f"{control}: cannot set a threshold: {error.strerror}") from None
    finally:
        os.close(file)


def _open(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise NotifierError(f"{path}: cannot be opened: {error.strerror}") from None
