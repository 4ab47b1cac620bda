"""``make differential``: random clusters, scheduled by a real kube-scheduler and by us.

    make differential COUNT=5000 SEED=7
    python -m tests.differential --count 5000 --seed 7 --upstream 1.30
    python -m tests.differential --upstream 1.37 --feature-gates PodLevelResources=false
    python -m tests.differential --replay bench-results/differential/1.37-7-12-1.json

Every case that differs is written to a file, which ``--replay`` compares again without a scheduler.
A cluster that differs is scheduled once more, and counts only if it differs again: the scheduler
may have received an event late. The exit code is 1 if one differs.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from tests.conformance.build import BuildError, NoGoError, program
from tests.conformance.scheduling.releases import ALL_RELEASES, RELEASES
from tests.differential.case import Case, read, write
from tests.differential.comparison import differences
from tests.differential.kube_scheduler import ScheduleRunner, schedule_runner
from tests.differential.matrix import DEFAULT, PAGE, Cell, cells, write_table
from tests.differential.random_clusters import generate

OUTPUT: Final = Path("bench-results/differential")
DEFAULT_GATES: Final[Mapping[str, bool]] = {}
_TOLD_EVERY: Final = 500


class Tally:
    """The number of cases by their outcome, and the cases that differ.

    ``passing`` are the differences that did not recur.
    """

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.mismatches: list[Case] = []
        self.passing: list[str] = []

    def count(self, cases: list[Case]) -> None:
        """Count the outcomes of a cluster."""
        self.outcomes.update(map(_outcome, cases))


async def compare(
    upstream: str, seed: int, numbers: range, gates: Mapping[str, bool] = DEFAULT_GATES
) -> Tally:
    """Compare a scheduler of the release ``upstream`` with us on clusters of a seed."""
    tally = Tally()
    async with schedule_runner(program(ALL_RELEASES[upstream]), upstream, gates) as runner:
        for number in numbers:
            await _compare_one(runner, seed, number, tally)
    return tally


async def _compare_one(runner: ScheduleRunner, seed: int, number: int, tally: Tally) -> None:
    settings = (f"{gate}={enabled}" for gate, enabled in runner.gates.items())
    name = "-".join((runner.upstream, *settings, str(seed), str(number)))
    cases = await runner.schedule_all(name, generate(seed, number))
    tally.count(cases)
    first = [f"{case.name}: {line}" for case in cases for line in differences(case)]
    if not first:
        return
    repeated = await runner.schedule_all(name, generate(seed, number))
    again = [case for case in repeated if differences(case)]
    tally.mismatches += again
    if not again:
        tally.passing += first


def _outcome(case: Case) -> str:
    answer = case.answer
    if answer.bound_to:
        return "bound"
    return "nominated" if answer.nominated_node else "refused"


async def _run(upstream: str, gates: str, seed: int, count: int) -> Cell:
    OUTPUT.mkdir(parents=True, exist_ok=True)
    begun, compared, found = time.perf_counter(), 0, 0
    settings = DEFAULT_GATES if gates == DEFAULT else parse_gates(gates)
    for first in range(0, count, _TOLD_EVERY):
        numbers = range(first, min(first + _TOLD_EVERY, count))
        tally = await compare(upstream, seed, numbers, settings)
        compared += tally.outcomes.total()
        for case in tally.mismatches:
            path = OUTPUT / f"{case.name}.json"
            write(case, path)
            sys.stdout.write(f"{path}\n" + "".join(f"  {line}\n" for line in differences(case)))
        found += len(tally.mismatches)
        seconds = time.perf_counter() - begun
        _print_progress(f"{upstream}, {gates} gates", tally, numbers.stop, seconds)
    return Cell(upstream, gates, compared, found)


def _print_progress(what: str, tally: Tally, clusters: int, seconds: float) -> None:
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(tally.outcomes.items()))
    passing = "".join(f"  passing: {line}\n" for line in tally.passing)
    sys.stdout.write(
        f"{what}: {clusters} clusters, {clusters / seconds:.1f} a second; the last ones: "
        f"{outcomes}, {len(tally.mismatches)} differ\n{passing}"
    )
    sys.stdout.flush()


def _replay(path: Path) -> int:
    try:
        found = differences(read(path))
    except (OSError, msgspec.DecodeError) as error:
        sys.exit(f"{path}: {error}")
    sys.stdout.write("".join(f"{line}\n" for line in found) or "no difference\n")
    return len(found)


def parse_gates(text: str) -> dict[str, bool]:
    """Return settings of feature gates; raise ValueError if a value is not a boolean."""
    settings: dict[str, bool] = {}
    for each in text.split(","):
        name, _, value = each.partition("=")
        if not name or value not in ("true", "false"):
            raise ValueError(f"{each!r}; expected NAME=true or NAME=false")
        settings[name] = value == "true"
    return settings


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many clusters")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the clusters")
    parser.add_argument("--upstream", choices=tuple(ALL_RELEASES), help="only this release")
    parser.add_argument(
        "--feature-gates",
        default=DEFAULT,
        metavar="A=true,B=false",
        help="settings of kube-scheduler and of explain preempt",
    )
    parser.add_argument("--matrix", action="store_true", help=f"write the table in {PAGE}")
    parser.add_argument("--replay", metavar="FILE", type=Path, help="compare a case again")
    return parser.parse_args()


def main() -> None:
    """Run the command."""
    asked = _arguments()
    if asked.replay is not None:
        sys.exit(1 if _replay(asked.replay) else 0)
    releases = [asked.upstream] if asked.upstream else list(RELEASES)
    chosen = list(cells()) if asked.matrix else [(each, asked.feature_gates) for each in releases]
    try:
        found = [
            asyncio.run(_run(upstream, gates, asked.seed, asked.count))
            for upstream, gates in chosen
        ]
    except (NoGoError, BuildError, ValueError) as error:
        sys.exit(str(error))
    if asked.matrix:
        write_table(found)
    sys.exit(1 if any(each.differ for each in found) else 0)


if __name__ == "__main__":
    main()
