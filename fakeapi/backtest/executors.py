"""Executors that run units: processes of this machine, a Dask cluster, or a Ray cluster.

A unit whose worker ends, for example because it was killed for its use of memory, runs again.
After :data:`ATTEMPTS` it is lost: its future has one of the errors in ``lost``. Dask and Ray repeat
units by themselves. Here each unit has a process of its own, because a ProcessPoolExecutor loses
the units of all of its processes when one of them ends.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, ParamSpec, TypeVar

from extender.terminal.log_output import LogFormat, LogLevel, log_to_stderr
from fakeapi.backtest.results import UnitResult
from fakeapi.backtest.units import Unit, run_unit
from policies.kubernetes.input_error import InputError

P = ParamSpec("P")
R = TypeVar("R")

ATTEMPTS: Final = 3
CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 20.0


class ExecutorError(InputError):
    """A cluster cannot be used; the text names the option, the address and the reason."""


@dataclass(frozen=True, slots=True)
class Workers:
    """An executor, and the errors of a future whose workers have ended too often."""

    executor: Executor
    lost: tuple[type[BaseException], ...]


Finished = SimpleQueue[Future[UnitResult] | None]
"""The futures that are done; None stops the backtest. A signal handler may put it there."""


def run_units(
    workers: Workers, units: Iterable[Unit], finished: Finished
) -> Iterator[tuple[Unit, UnitResult | None]]:
    """Yield each unit with its result as soon as it has finished, with None if it is lost.

    Raise UnitError, TraceError and ConfigError of any unit.
    """
    running = {workers.executor.submit(_run_in_worker, unit): unit for unit in units}
    for future in running:
        future.add_done_callback(finished.put)
    while running:
        done = finished.get()
        if done is None:
            return
        try:
            result = done.result()
        except workers.lost:
            result = None
        yield running.pop(done), result


def _run_in_worker(unit: Unit) -> UnitResult:
    """Run a unit in the process of a worker, which logs no more than warnings."""
    log_to_stderr(LogLevel.WARNING, LogFormat.TEXT)
    return run_unit(unit)


@contextmanager
def local_processes(number: int) -> Iterator[Workers]:
    """Run up to ``number`` units at a time in processes, which end with the block."""
    executor = _Processes(number)
    try:
        yield Workers(executor, (BrokenProcessPool,))
    finally:
        executor.end()


class _Processes(ThreadPoolExecutor):
    """Threads that run each call in a process of its own.

    Processes end when the other end of their pipe is closed: by :meth:`end`, or with this process.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number, initializer=_block_interrupts)
        self._context = get_context("spawn")
        self._reader, self._writer = self._context.Pipe(duplex=False)

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        return super().submit(self._run, partial(fn, *args, **kwargs))

    def end(self) -> None:
        """End all processes and threads."""
        self._writer.close()
        self.shutdown(cancel_futures=True)
        self._reader.close()

    def _run(self, call: Callable[[], R]) -> R:
        for _ in range(ATTEMPTS - 1):
            try:
                return self._attempt(call)
            except BrokenProcessPool:
                if self._writer.closed:
                    raise
        return self._attempt(call)

    def _attempt(self, call: Callable[[], R]) -> R:
        start = (_end_when_closed, (self._reader,))
        with ProcessPoolExecutor(1, self._context, *start) as process:
            return process.submit(call).result()


def _block_interrupts() -> None:
    """Block SIGINT in this thread and in its processes: a terminal sends it to all of them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _end_when_closed(pipe: Connection) -> None:
    Thread(target=_wait_and_end, args=(pipe,), daemon=True).start()


def _wait_and_end(pipe: Connection) -> None:
    pipe.poll(None)
    os._exit(1)


@contextmanager
def dask_cluster(address: str) -> Iterator[Workers]:
    """Run units on the workers of a Dask scheduler. Raise ExecutorError.

    If the scheduler ends, the units that have not finished are lost.
    """
    try:
        from distributed import Client, KilledWorker
    except ImportError as error:
        raise _missing_extra("dask", error) from None
    client = _answer(
        f"--dask {address}",
        partial(Client, address, timeout=CONNECT_SECONDS, set_as_default=False),
    )
    with client, client.get_executor(pure=False) as executor:
        yield Workers(executor, (KilledWorker, CancelledError))


@contextmanager
def ray_cluster(address: str) -> Iterator[Workers]:
    """Run units on the nodes of a Ray cluster, of which this machine is one. Raise ExecutorError.

    ``address`` is HOST:PORT of its head.
    """
    try:
        import ray
        from ray.exceptions import NodeDiedError, OutOfMemoryError, WorkerCrashedError
    except ImportError as error:
        raise _missing_extra("ray", error) from None
    _check_listening("--ray", address)
    _answer(
        f"--ray {address}",
        partial(ray.init, address, log_to_driver=False, logging_level=logging.ERROR),
    )
    try:
        yield Workers(_Ray(ray), (NodeDiedError, OutOfMemoryError, WorkerCrashedError))
    finally:
        ray.shutdown()


class _Ray(Executor):
    """Calls as tasks of Ray, which has no executor of its own."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        task = self._ray.remote(max_retries=ATTEMPTS - 1)(fn)
        found: Future[R] = task.remote(*args, **kwargs).future()
        return found


def _answer(option: str, connect: Callable[[], R]) -> R:
    """Return what ``connect`` returns. Raise ExecutorError if it fails or takes too long.

    Both libraries wait without end for a server that accepts connections and does not answer.
    """
    thread = ThreadPoolExecutor(1)
    try:
        return thread.submit(connect).result(ANSWER_SECONDS)
    except TimeoutError:
        raise ExecutorError(f"{option}: no answer within {ANSWER_SECONDS:g} s") from None
    except (OSError, RuntimeError, ValueError) as error:
        raise ExecutorError(f"{option}: {error}") from None
    finally:
        thread.shutdown(wait=False)


def _check_listening(option: str, address: str) -> None:
    """Raise ExecutorError if no server listens, for which Ray logs many lines."""
    host, _, port = address.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or len(port) > len("65535"):
        raise ExecutorError(f"{option} {address}: expected HOST:PORT")
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ExecutorError(f"{option} {address}: no connection: {reason}") from None


def _missing_extra(extra: str, error: ImportError) -> ExecutorError:
    return ExecutorError(
        f"--{extra} needs the package {error.name}; install it with:"
        f" pip install 'reprieve[{extra}]'"
    )
