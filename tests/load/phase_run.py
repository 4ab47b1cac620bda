"""A phase of a load run in the process of locust: what is sent next, and what is kept."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import IO, Any

import msgspec

from tests.load import mixes
from tests.load.mixes import KIND, Kind, drawn, gaps
from tests.load.records import ANSWERED, REPRIEVE, Call, Sample, write_calls


class Run:
    """One phase: what is sent next, and what is kept of the answers."""

    def __init__(self, options: Any) -> None:
        rng = random.Random(f"{options.phase} bodies")
        self.phase: str = options.phase
        self.echo: str = options.echo
        self._out = Path(options.out)
        self._bodies = _read_bodies(Path(options.bodies))
        self._draws = drawn(rng)
        self._sampling: float = options.sampling
        self._due: dict[str, float] = {}
        self._numbers = count(1)
        self._calls: list[Call] = []
        self._samples: IO[bytes] = (self._out / f"samples-{self.phase}.jsonl").open("wb")
        self.rate: float = options.rate
        clock = random.Random(f"{options.phase} gaps")
        self.gaps: Iterator[float] = gaps(clock, options.rate, options.doubling)

    def draw(self) -> tuple[Kind, int]:
        """Return the next request body."""
        return next(self._draws)

    def body(self, kind: Kind, number: int) -> bytes:
        """Return the request body."""
        return self._bodies[kind.name][number]

    def request_id(self) -> str:
        """Name a call."""
        return f"{self.phase}-{next(self._numbers)}"

    def keep(self, call: Call, number: int, request_id: str, answer: bytes) -> None:
        """Write down a call, and its answer if one of its kind is due."""
        self._calls.append(call)
        if call.target != REPRIEVE or call.outcome != ANSWERED:
            return
        if call.started < self._due.get(call.kind, 0.0):
            return
        self._due[call.kind] = call.started + KIND[call.kind].sampled_seconds * self._sampling
        text = answer.decode()
        sample = Sample(self.phase, call.kind, number, request_id, call.started, call.ended, text)
        self._samples.write(msgspec.json.encode(sample) + b"\n")

    def close(self) -> None:
        """Write what is left."""
        self._samples.close()
        write_calls(self._out / f"calls-{self.phase}.csv", self._calls)


@cache
def run_of(environment: Any) -> Run:
    """Return the run of locust's environment."""
    run = Run(environment.parsed_options)
    environment.events.quitting.add_listener(lambda **_: run.close())
    return run


def _read_bodies(directory: Path) -> Mapping[str, Sequence[bytes]]:
    return {
        kind.name: [
            (directory / f"{kind.name}-{number}.json").read_bytes() for number in range(kind.bodies)
        ]
        for kind in mixes.KINDS
    }
