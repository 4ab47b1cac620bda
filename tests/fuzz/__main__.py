"""Random hostile inputs: ``python -m tests.fuzz --seconds 3600 [--seed N] [--kinds NAME,…]``.

Each input is generated from the seed and its number, so that a seed repeats a run. An input that is
handled wrongly is written to ``bench-results/fuzz/KIND/``, as is one that is not answered in time;
``--replay FILE`` checks such a file again. At the end the table of inputs and failures is printed,
and the memory of this process and of the servers is compared between two moments of the run. The
exit code is 1 after a failure.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import gc
import hashlib
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Final

from extender.server.python_gc import return_free_memory
from extender.terminal.log_output import log_to_stderr
from tests.fuzz.kind import Kind
from tests.fuzz.kinds import KINDS, SERVERS

FAILURES: Final = Path("bench-results/fuzz")
STALL_SECONDS: Final = 60
MAX_GROWTH: Final = 1.2
_MIN_GROWTH_KIB: Final = 48 * 1024


class Run:
    """The inputs and failures of a run, and the memory at its moments."""

    def __init__(self, seed: int, directory: Path) -> None:
        self._seed = seed
        self._directory = directory
        self.inputs: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.milliseconds: Counter[str] = Counter()
        self._seen: set[str] = set()

    async def check_next(self, kind: Kind) -> None:
        """Generate the next input of a kind, and check it."""
        number = self.inputs[kind.name]
        self.inputs[kind.name] += 1
        data = kind.generate(Random(f"{self._seed}/{kind.name}/{number}"))
        current = self._directory / "current"
        current.write_bytes(data)  # kept if the check stalls, and ends the process
        faulthandler.dump_traceback_later(STALL_SECONDS * 2, exit=True)
        started = time.monotonic()
        try:
            await kind.check(data)
            _require_in_time(time.monotonic() - started)
        except Exception as error:  # noqa: BLE001 - any exception is what this program looks for
            self._record(kind, data, error)
        finally:
            faulthandler.cancel_dump_traceback_later()

    def _record(self, kind: Kind, data: bytes, error: Exception) -> None:
        self.failures[kind.name] += 1
        places = [
            f"{each.filename}:{each.lineno}" for each in traceback.extract_tb(error.__traceback__)
        ]
        place = " ".join(re.findall(r"[\w/]+\.py:\d+", " ".join(places[-2:])))
        cause = f"{type(error).__name__} {place} {str(error)[:40]}"
        if cause in self._seen:
            return
        self._seen.add(cause)
        name = hashlib.sha256(data).hexdigest()[:12]
        path = self._directory / kind.name / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        _report(f"FAILED {path}: {type(error).__name__}: {str(error)[:500]}\n    {place}")


def _require_in_time(seconds: float) -> None:
    if seconds > STALL_SECONDS:
        raise TimeoutError(f"the check took {seconds:.0f} s")


def _report(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def resident_kib() -> Mapping[str, int]:
    """Return the resident memory of this process and of the servers, in KiB."""
    gc.collect()
    return_free_memory()
    own = re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())
    assert own is not None
    return {"this process": int(own[1])} | {
        name: server.resident_kib() for name, server in SERVERS.items()
    }


def growth(before: Mapping[str, int], after: Mapping[str, int]) -> Sequence[str]:
    """Return the processes that have grown by more than is allowed."""
    return [
        f"{name} grew from {before[name] // 1024} to {size // 1024} MiB"
        for name, size in after.items()
        if before.get(name) and size > before[name] * MAX_GROWTH + _MIN_GROWTH_KIB
    ]


async def fuzz(kinds: Sequence[Kind], seconds: float, run: Run) -> Sequence[str]:
    """Check inputs for some seconds, as long for each kind; return what has grown."""
    started, half = time.monotonic(), dict[str, int]()
    try:
        while (elapsed := time.monotonic() - started) < seconds:
            if not half and elapsed > seconds / 2:
                await forget_objects()
                half.update(resident_kib())
            kind = min(kinds, key=lambda each: run.milliseconds[each.name])
            before = time.monotonic()
            await run.check_next(kind)
            run.milliseconds[kind.name] += 1 + int((time.monotonic() - before) * 1000)
        await forget_objects()
        return growth(half, resident_kib())
    finally:
        for server in SERVERS.values():
            await server.stop()


async def forget_objects() -> None:
    """Delete what clients have stored in fakeapi."""
    if SERVERS["fakeapi"].resident_kib():
        head = b"POST /_fakeapi/reset HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
        await SERVERS["fakeapi"].send(head)


async def replay(kind: Kind, data: bytes) -> None:
    """Check one input."""
    try:
        await kind.check(data)
    finally:
        for server in SERVERS.values():
            await server.stop()


def main() -> int:
    """Run, print the table, and return the exit code."""
    options = _parse_arguments()
    log_to_stderr()
    if options.replay:
        path = options.replay
        asyncio.run(replay(KINDS[path.parent.name], path.read_bytes()))
        return 0
    FAILURES.mkdir(parents=True, exist_ok=True)
    _report(f"seed {options.seed}")
    kinds = (
        [KINDS[name] for name in options.kinds.split(",")] if options.kinds else [*KINDS.values()]
    )
    run = Run(options.seed, FAILURES)
    grown = asyncio.run(fuzz(kinds, options.seconds, run))
    for kind in kinds:
        inputs, failures = run.inputs[kind.name], run.failures[kind.name]
        _report(f"{kind.name:14} {inputs:8} inputs {failures:6} failures")
    for each in grown:
        _report(f"FAILED {each}")
    return 1 if grown or run.failures else 0


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default="", help="default: " + ",".join(KINDS))
    parser.add_argument("--replay", type=Path, metavar="FILE")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
