"""``make load``: the extender under load, with its budgets; ``make load-check``, in two minutes.

fakeapi holds 5,000 nodes and 150,000 pods, of which a hundred a second change; ``reprieve serve``
watches it, with its default configuration. locust sends calls, phase by phase
(:mod:`tests.load.mixes`). Each server and client is a process. Then all kept answers are checked by
the reference engine. Figures, CSV and a page are written to ``load-results/``.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import astuple, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from policies import DEFAULT_RULES, Snapshot
from tests.bench import budgets, report
from tests.bench.budgets import Budget, Figure
from tests.bench.clusters import cluster, snapshot_of
from tests.load import bodies
from tests.load.answer_check import check
from tests.load.figures import NEVER_NOISE, Moment, Outcome, figures
from tests.load.mixes import FILTERS_BESIDE, FULL, NODES, PODS_PER_NODE, QUICK, Plan, due
from tests.load.page import page
from tests.load.processes import Observer, calls_path, churn, locust, samples_path, start
from tests.load.records import read_calls, read_changes, read_decisions, read_samples

RESULTS: Final = Path("load-results")
BUDGETS: Final = Path(__file__).with_name("budgets.toml")


def main() -> None:
    """Run the phases, write the tables, and report the budgets that are broken."""
    plan = QUICK if _arguments().quick else FULL
    limits = budgets.read("load", BUDGETS)
    broken = budgets.confirmed_faults(lambda: _run(plan, limits), _say, NEVER_NOISE)
    for name, fault in broken.items():
        _say(f"over budget: load.{name}: {fault}")
    if broken:
        sys.exit(1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two minutes of load")
    return parser.parse_args()


def _run(plan: Plan, limits: Mapping[str, Budget]) -> dict[str, str]:
    """Run all phases, check the answers and write everything; return the budgets broken."""
    first = snapshot_of(cluster(NODES, PODS_PER_NODE))
    bodies.write(RESULTS / "bodies", first)
    with TemporaryDirectory() as directory:
        found = _observed(plan, Path(directory), first)
    measured = figures(found)
    broken = budgets.faults(limits, measured, calibration=1.0)
    _write(measured, limits, broken, found)
    return broken


def _observed(plan: Plan, directory: Path, first: Snapshot) -> Outcome:
    """Run all phases, and check their answers."""
    log, seen = directory / "serve.jsonl", directory / "changes.jsonl"
    with ExitStack() as stack:
        servers = start(stack, directory, log)
        with churn(servers["fakeapi"], seen) as changing:
            pids = {name: server.pid for name, server in servers.items()}
            observer = Observer({**pids, "churn": changing.pid})
            for phase in plan.phases:
                _say(f"{phase.name}: {phase.seconds} s")
                observer.watch(phase.name, locust(phase, plan, servers, RESULTS))
    calls = [call for each in plan.phases for call in read_calls(calls_path(each, RESULTS))]
    samples = [kept for each in plan.phases for kept in read_samples(samples_path(each, RESULTS))]
    _say(f"{len(samples)} answers are checked")
    decisions, changes = read_decisions(log), read_changes(seen)
    sent = bodies.read(RESULTS / "bodies")
    checked = check(samples, decisions, changes, first, sent, DEFAULT_RULES)
    return Outcome(
        calls,
        observer.moments,
        observer.shares,
        checked,
        due(plan),
        changing.changes,
        changing.seconds,
        [
            each.took_ms / 1000
            for each in decisions
            if each.event == "preempt" and each.request_id.startswith(f"{FILTERS_BESIDE}-")
        ],
    )


def _write(
    measured: Mapping[str, Figure],
    limits: Mapping[str, Budget],
    broken: Mapping[str, str],
    found: Outcome,
) -> None:
    rows = [["what", "found", "limit"]]
    for name, figure in measured.items():
        limit = limits.get(name, Budget()).limit
        rows.append([figure.what, figure.shown, "" if limit is None else f"≤ {limit:g}"])
    text = report.table(rows)
    sys.stdout.write(f"{text}\n")
    (RESULTS / "load.md").write_text(text)
    (RESULTS / "wrong.txt").write_text("".join(f"{each}\n" for each in found.checked.wrong))
    with (RESULTS / "memory.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(each.name for each in fields(Moment))
        writer.writerows(astuple(each) for each in found.moments)
    about = f"{report.machine()}; 5,000 nodes, 150,000 pods"
    (RESULTS / "load.html").write_text(page(about, measured, limits, broken, found))


def _say(line: str) -> None:
    sys.stdout.write(f"{time.strftime('%X')} {line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
