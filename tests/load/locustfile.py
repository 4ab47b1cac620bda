"""The users that locust spawns: schedulers in a hurry, patient ones, many at once, and slow ones.

``tests/load/__main__.py`` runs it once for each phase; by itself it can be looked at with locust's
own page, before any extender that knows the nodes::

    locust -f tests/load/locustfile.py --host http://127.0.0.1:8888 --bodies load-results/bodies \
        --out load-results Closed

locust has patched the sockets of this process, so nothing here may be asyncio. All bodies were made
before; a call costs the client its socket and a line of CSV.
"""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse
from itertools import cycle
from typing import Any
from urllib.parse import urlsplit

import gevent
from gevent.pool import Pool
from locust import FastHttpUser, User, constant, constant_pacing, events, task

from tests.load import mixes
from tests.load.mixes import Kind
from tests.load.phase_run import run_of
from tests.load.records import ANSWERED, ECHO, ORDERLY, REPRIEVE, Call, outcome

_AT_ONCE = 200
_MOST_SECONDS = 60.0
_READ_BYTES = 16 * 1024
_PAUSE_SECONDS = 0.05
_SEND_SECONDS = 2.5
"""What a slow sender takes for its body: more than the deadline, so that it is refused as late."""

_HOLD_SECONDS = 1.5
"""How long a slow finisher keeps its last byte: less than the deadline."""


@events.init_command_line_parser.add_listener
def _arguments(parser: Any) -> None:
    parser.add_argument("--phase", default="by-hand", help="what the files are named by")
    parser.add_argument("--bodies", default="load-results/bodies", help="where the bodies are")
    parser.add_argument("--out", default="load-results", help="where calls and samples go")
    parser.add_argument("--echo", default="", help="URL of the echo, asked in turns if given")
    parser.add_argument("--rate", type=float, default=10.0, help="calls a second, all users")
    parser.add_argument("--doubling", type=float, default=0.0, help="seconds to twice the rate")
    parser.add_argument("--sampling", type=float, default=1.0, help="how much rarer to sample")
    parser.add_argument("--counts", type=json.loads, default={}, help="users by class, as JSON")


@events.init.add_listener
def _count_users(environment: Any, **_: object) -> None:
    """Set the number of users of each class; by itself locust spawns as many of each."""
    for each in environment.user_classes:
        each.fixed_count = environment.parsed_options.counts.get(each.__name__, 0)


class Asking(FastHttpUser):
    """A user that asks over HTTP as kube-scheduler does: connections are kept."""

    abstract = True
    concurrency = _AT_ONCE
    network_timeout = _MOST_SECONDS
    connection_timeout = _MOST_SECONDS

    def on_start(self) -> None:
        """Take part in the run."""
        self.run_data = run_of(self.environment)

    def ask(self, kind: Kind, number: int) -> None:
        """Ask the extender."""
        self._send(REPRIEVE, f"/{kind.verb}", kind, number)

    def ask_echo(self, kind: Kind, number: int) -> None:
        """Send the same to the echo."""
        self._send(ECHO, f"{self.run_data.echo}/{kind.verb}", kind, number)

    def _send(self, target: str, url: str, kind: Kind, number: int) -> None:
        run = self.run_data
        request_id, body = run.request_id(), run.body(kind, number)
        headers = {"Content-Type": "application/json", "X-Request-Id": request_id}
        name = f"{target} {kind.name}"
        started = time.monotonic()
        with self.client.post(
            url, data=body, headers=headers, name=name, catch_response=True
        ) as response:
            ended = time.monotonic()
            status, answer = response.status_code, response.content or b""
            retry_after = (response.headers or {}).get("retry-after", "")
            how = outcome(status, retry_after, answer)
            if how == ANSWERED:
                response.success()
            else:
                response.failure(how)
        user = type(self).__name__
        call = Call(run.phase, user, target, kind.name, started, ended, status, how)
        run.keep(call, number, request_id, answer)


class Closed(Asking):
    """Asks again when it has been answered, at an even pace; extender and echo in turns."""

    def on_start(self) -> None:
        """Begin now."""
        super().on_start()
        self._due = time.monotonic()

    def wait_time(self) -> float:
        """Wait until it is time for one's part of the pace; what was missed is not made up for."""
        now = time.monotonic()
        self._due = max(now, self._due + mixes.CLOSED / self.run_data.rate)
        return self._due - now

    @task
    def ask_both(self) -> None:
        """Ask the extender, then the echo."""
        kind, number = self.run_data.draw()
        self.ask(kind, number)
        self.ask_echo(kind, number)


class Burst(Asking):
    """Asks many times at once, and then nothing for a while."""

    wait_time = constant_pacing(mixes.BURST_SECONDS)

    @task
    def ask_at_once(self) -> None:
        """Ask the extender, then the echo, each with all calls at once."""
        calls = [self.run_data.draw() for _ in range(mixes.burst_calls(self.run_data.rate))]
        for ask in (self.ask, self.ask_echo):
            gevent.joinall([gevent.spawn(ask, *call) for call in calls])


class FlatOut(Asking):
    """Asks the extender again as soon as it has been answered."""

    wait_time = constant(0)

    @task
    def ask_again(self) -> None:
        """Ask the extender."""
        self.ask(*self.run_data.draw())


class FlatOutEcho(Asking):
    """Asks the echo again as soon as it has been answered."""

    wait_time = constant(0)

    @task
    def ask_again(self) -> None:
        """Ask the echo."""
        self.ask_echo(*self.run_data.draw())


class Filtering(Asking):
    """Asks for filter answers at an even pace."""

    wait_time = constant_pacing(1 / mixes.FILTERS_PER_SECOND)

    def on_start(self) -> None:
        """Begin with the first body."""
        super().on_start()
        self._numbers = cycle(range(mixes.FILTER.bodies))

    @task
    def filter(self) -> None:
        """Ask the extender about all nodes."""
        self.ask(mixes.FILTER, next(self._numbers))


class Preempting(Asking):
    """Asks for preempt answers, again as soon as it has been answered."""

    wait_time = constant(0)

    @task
    def preempt(self) -> None:
        """Ask the extender with the next preempt call of the mix."""
        draws = iter(self.run_data.draw, None)
        self.ask(*next(call for call in draws if call[0] is not mixes.FILTER))


class OpenLoop(Asking):
    """Asks whenever the time has come, answered or not; at most 200 calls are under way."""

    def on_start(self) -> None:
        """Begin now."""
        super().on_start()
        self._under_way = Pool(_AT_ONCE)
        self._due = time.monotonic()

    def wait_time(self) -> float:
        """Wait until the next call arrives; it may have done so already."""
        self._due += next(self.run_data.gaps)
        return max(0.0, self._due - time.monotonic())

    @task
    def arrive(self) -> None:
        """Send a call, and do not wait for it."""
        self._under_way.spawn(self.ask, *self.run_data.draw())

    def on_stop(self) -> None:
        """Wait for what is under way."""
        self._under_way.join(timeout=_MOST_SECONDS)


class Slow(User):
    """A user with a socket of its own, over which bytes trickle."""

    abstract = True

    def on_start(self) -> None:
        """Take part in the run."""
        self.run_data = run_of(self.environment)

    def _trickle(self, kind: Kind, number: int) -> None:
        run = self.run_data
        request_id = run.request_id()
        started = time.monotonic()
        try:
            status, retry_after, answer = self._exchange(kind, run.body(kind, number), request_id)
        except (OSError, HTTPException):
            status, retry_after, answer = 0, "", b""
        ended = time.monotonic()
        how, user = outcome(status, retry_after, answer), type(self).__name__
        self.environment.events.request.fire(
            request_type="POST",
            name=f"{user} {kind.name}",
            response_time=(ended - started) * 1000,
            response_length=len(answer),
            exception=None if how in ORDERLY else RuntimeError(how),
            context={},
        )
        call = Call(run.phase, user, REPRIEVE, kind.name, started, ended, status, how)
        run.keep(call, number, request_id, answer)

    def _exchange(self, kind: Kind, body: bytes, request_id: str) -> tuple[int, str, bytes]:
        raise NotImplementedError

    def _connect(self) -> socket.socket:
        where = urlsplit(str(self.host))
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _READ_BYTES)
        connection.settimeout(_MOST_SECONDS)
        connection.connect((where.hostname, where.port))
        return connection

    def _head(self, kind: Kind, body: bytes, request_id: str) -> bytes:
        return (
            f"POST /{kind.verb} HTTP/1.1\r\nHost: {urlsplit(str(self.host)).netloc}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            f"X-Request-Id: {request_id}\r\nConnection: close\r\n\r\n"
        ).encode()


class SlowReader(Slow):
    """Sends at once, and reads its answer bit by bit."""

    wait_time = constant_pacing(2.0)

    @task
    def read_slowly(self) -> None:
        """Ask about all nodes: the longest of answers."""
        self._trickle(mixes.FILTER, 0)

    def _exchange(self, kind: Kind, body: bytes, request_id: str) -> tuple[int, str, bytes]:
        with self._connect() as connection:
            connection.sendall(self._head(kind, body, request_id) + body)
            return _answer(_bits(connection))


class SlowSender(Slow):
    """Sends its question bit by bit, for longer than it may take to be answered."""

    wait_time = constant_pacing(3.0)

    @task
    def send_slowly(self) -> None:
        """Ask about a hundred nodes."""
        self._trickle(mixes.KINDS[1], 0)

    def _exchange(self, kind: Kind, body: bytes, request_id: str) -> tuple[int, str, bytes]:
        size = -(-len(body) // 10)
        with self._connect() as connection:
            connection.sendall(self._head(kind, body, request_id))
            for begin in range(0, len(body), size):
                gevent.sleep(_SEND_SECONDS / 10)
                connection.sendall(body[begin : begin + size])
            return _answer(_bits(connection))


class SlowFinisher(Slow):
    """Keeps its last byte for a while, and so its connection, unless it is refused before.

    It asks again at once, on a new connection, or at the next turn of its pace if it was refused.
    """

    wait_time = constant_pacing(_HOLD_SECONDS)

    @task
    def finish_late(self) -> None:
        """Ask about a hundred nodes."""
        self._trickle(mixes.KINDS[1], 0)

    def _exchange(self, kind: Kind, body: bytes, request_id: str) -> tuple[int, str, bytes]:
        with self._connect() as connection:
            connection.sendall(self._head(kind, body, request_id) + body[:-1])
            refused, _, _ = select.select([connection], [], [], _HOLD_SECONDS)
            if not refused:
                connection.sendall(body[-1:])
            response = HTTPResponse(connection)
            response.begin()
            return response.status, response.getheader("Retry-After", ""), response.read()


def _bits(connection: socket.socket) -> Iterator[bytes]:
    """Read until the other side closes, with pauses."""
    while bits := connection.recv(_READ_BYTES):
        yield bits
        gevent.sleep(_PAUSE_SECONDS)


def _answer(bits: Iterator[bytes]) -> tuple[int, str, bytes]:
    """Read status, Retry-After and body of an answer; status 0 for half a one."""
    head, _, body = b"".join(bits).partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (e.partition(":") for e in lines)}
    if not first or len(body) != int(fields.get("content-length", "-1")):
        return 0, "", b""
    return int(first.split()[1]), fields.get("retry-after", ""), body
