"""Several processes that serve one address: a primary process and its workers.

The primary binds the address and forks the workers before any of them has a thread or an event
loop. All of them accept connections on the same socket, each has its own informers, and any
process answers ``filter`` calls. Only the primary decides preemption, since each decision depends
on those before it; workers forward these calls, and all other requests
(:mod:`extender.server.worker_requests`).

A pair of sockets links the primary with each worker, on which nothing is sent: it is readable once
the other process has ended. A worker without a primary stops. A primary without one of its workers
ends with an error, so that whatever supervises it starts all of them anew.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Final

_BACKLOG: Final = 100
"""As of asyncio."""


def _do_nothing() -> None:
    """Do nothing: nobody waits for the end of a process."""


@dataclass(frozen=True, slots=True)
class LinkedProcess:
    """Another process of the group, by the link to it; the primary's number is 0."""

    number: int
    pid: int
    link: socket.socket


@dataclass(slots=True)
class WorkerGroup:
    """The processes that serve one address, as one of them sees them.

    ``listening`` is the shared socket, ``directory`` has a socket of each process for the others.
    ``ended`` is the worker that has ended first.
    """

    number: int
    listening: socket.socket
    directory: Path
    linked: Sequence[LinkedProcess]
    ended: LinkedProcess | None = field(default=None, init=False)
    _on_end: Callable[[], None] = field(default=_do_nothing, init=False)

    @property
    def is_primary(self) -> bool:
        """Whether this process is the primary."""
        return self.number == 0

    def path(self, number: int) -> str:
        """Return the path of the socket of a process."""
        return str(self.directory / str(number))

    def watch(self) -> None:
        """Note from now on which linked process ends first."""
        loop = asyncio.get_running_loop()

        def note_end(process: LinkedProcess) -> None:
            loop.remove_reader(process.link)
            self.ended = self.ended or process
            self._on_end()

        for each in self.linked:
            loop.add_reader(each.link, note_end, each)

    def call_at_end(self, on_end: Callable[[], None]) -> None:
        """Call ``on_end`` when a linked process ends, at once if one has ended."""
        self._on_end = on_end
        if self.ended is not None:
            on_end()

    async def stop_workers(self) -> None:
        """Return when the workers have been told to stop and have ended; a worker has none."""
        for each in self.linked if self.is_primary else ():
            asyncio.get_running_loop().remove_reader(each.link)
            os.kill(each.pid, signal.SIGTERM)
        for each in self.linked if self.is_primary else ():
            await asyncio.to_thread(os.waitpid, each.pid, 0)

    def finish(self) -> str:
        """Remove the sockets between the processes; return why the primary ends, or ""."""
        if not self.is_primary:
            return ""
        rmtree(self.directory)
        lost = self.ended
        return "" if lost is None else f"worker {lost.number} (process {lost.pid}) has ended"


def fork_workers(count: int, host: str, port: int) -> WorkerGroup:
    """Bind the address, and fork until there are ``count`` processes; return in each of them.

    Raise OSError for the socket.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    directory = Path(mkdtemp(prefix="reprieve-"))
    linked: list[LinkedProcess] = []
    for number in range(1, count):
        ours, theirs = socket.socketpair()
        primary, pid = os.getpid(), os.fork()
        if pid == 0:
            _close([ours, *(each.link for each in linked)])
            return WorkerGroup(number, listening, directory, [LinkedProcess(0, primary, theirs)])
        _close([theirs])
        linked.append(LinkedProcess(number, pid, ours))
    return WorkerGroup(0, listening, directory, linked)


def _close(sockets: Iterable[socket.socket]) -> None:
    for each in sockets:
        each.close()
