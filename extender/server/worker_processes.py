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
from secrets import token_hex
from typing import Final

_LOOPBACK: Final = "127.0.0.1"
_BACKLOG: Final = 100
"""As of asyncio."""


def _do_nothing() -> None:
    """Do nothing when a process ends."""


@dataclass(frozen=True, slots=True)
class LinkedProcess:
    """Another process of the group, by the link to it; the primary's number is 0."""

    number: int
    pid: int
    link: socket.socket


@dataclass(slots=True)
class WorkerGroup:
    """The processes that serve one address, as one of them sees them.

    ``listening`` is the shared socket, ``own`` that for requests of the others, on the loopback
    address and the port in ``ports`` by number; they must name the ``token``. ``ended`` is the
    worker that has ended first.
    """

    number: int
    listening: socket.socket
    own: socket.socket
    ports: Sequence[int]
    token: str
    linked: Sequence[LinkedProcess]
    ended: LinkedProcess | None = field(default=None, init=False)
    _on_end: Callable[[], None] = field(default=_do_nothing, init=False)

    @property
    def is_primary(self) -> bool:
        """Whether this process is the primary."""
        return self.number == 0

    def url(self, number: int) -> str:
        """Return the URL of a process for requests of the others."""
        return f"http://{_LOOPBACK}:{self.ports[number]}"

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

    def problem(self) -> str:
        """Return why the primary ends, or ""."""
        lost = self.ended if self.is_primary else None
        return "" if lost is None else f"worker {lost.number} (process {lost.pid}) has ended"


def fork_workers(count: int, host: str, port: int) -> WorkerGroup:
    """Bind the address, and fork until there are ``count`` processes; return in each of them.

    Raise OSError for the socket.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    own = [socket.create_server((_LOOPBACK, 0), backlog=_BACKLOG) for _ in range(count)]
    ports, token = [each.getsockname()[1] for each in own], token_hex()
    linked: list[LinkedProcess] = []
    for number in range(1, count):
        ours, theirs = socket.socketpair()
        primary, pid = os.getpid(), os.fork()
        if pid == 0:
            _close([ours, *(each.link for each in linked), *own[:number], *own[number + 1 :]])
            links = [LinkedProcess(0, primary, theirs)]
            return WorkerGroup(number, listening, own[number], ports, token, links)
        _close([theirs])
        linked.append(LinkedProcess(number, pid, ours))
    _close(own[1:])
    return WorkerGroup(0, listening, own[0], ports, token, linked)


def _close(sockets: Iterable[socket.socket]) -> None:
    for each in sockets:
        each.close()
