"""``make bench``: the costs of the extender and fakeapi, on stdout and in ``bench-results/``.

Figures that depend on the machine are shown next to an echo of the same bytes in the same run, or
to a calibration loop; compare the ratios. ``--check`` fails if one breaks its budget twice: its
part is measured once more, since noise rarely occurs twice. ``--quick`` omits measurements that
take minutes, ``--only`` measures one part. ``--document`` measures nothing: it writes the last
full run into docs/performance.md. Another API server is measured next to fakeapi: the one at
``--beside URL``, or an etcd and kube-apiserver that are started if the environment variables
``ETCD`` and ``KUBE_APISERVER`` name their binaries.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.bench import (
    budgets,
    controllers,
    extender,
    fakeapi,
    ledger,
    report,
    scheduling,
    shadows,
    webhooks,
)
from tests.bench.budgets import Figure
from tests.bench.document import NoResultsError, write_document
from tests.bench.report import Measured
from tests.bench.timing import FULL, QUICK, calibrate
from tests.real_server import TOKEN, real_server


def main() -> None:
    """Measure, write the tables, and report the budgets that are broken."""
    asked = _arguments()
    if asked.document:
        _document()
        return
    effort = QUICK if asked.quick else FULL
    calls = shadows.QUICK if asked.quick else shadows.FULL
    decisions = ledger.QUICK if asked.quick else ledger.FULL
    extent = scheduling.QUICK if asked.quick else scheduling.FULL
    nodes = (1_000,) if asked.quick else (1_000, 10_000)
    beside = _beside(asked.beside, asked.token) if asked.only in (None, "fakeapi") else {}
    parts = [
        Part("fakeapi", lambda: fakeapi.measure(nodes), beside, asked.quick),
        Part("extender", lambda: extender.measure(effort), {}, asked.quick),
        Part("ledger", lambda: ledger.measure(decisions), {}, asked.quick),
        Part("shadows", lambda: shadows.measure(calls), {}, asked.quick),
        Part("controllers", lambda: controllers.measure(effort.contests), {}, asked.quick),
        Part("webhooks", lambda: webhooks.measure(effort.contests), {}, asked.quick),
        Part("scheduling", lambda: scheduling.measure(extent), {}, asked.quick),
    ]
    broken = {
        part.name: budgets.confirmed_faults(part.faults, _say) if asked.check else part.faults()
        for part in parts
        if asked.only in (None, part.name)
    }
    for name, faults in broken.items():
        for figure, fault in faults.items():
            _say(f"over budget: {name}.{figure}: {fault}")
    if asked.check and any(broken.values()):
        sys.exit(1)


@dataclass(frozen=True, slots=True)
class Part:
    """The benchmarks of one report; ``beside`` are the figures of another server."""

    name: str
    measure: Callable[[], dict[str, Figure]]
    beside: Mapping[str, Figure]
    quick: bool

    def faults(self) -> dict[str, str]:
        """Measure and write the table; return the budgets that are broken."""
        before = calibrate()
        figures = self.measure()
        calibration = statistics.mean((before, calibrate()))
        given = budgets.read(self.name)
        measured = Measured(figures, calibration, self.quick, report.machine())
        report.write(self.name, measured, given, self.beside)
        checked = {name: each for name, each in given.items() if not (self.quick and each.full)}
        return budgets.faults(checked, figures, calibration)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parts = ("controllers", "extender", "fakeapi", "ledger", "scheduling", "shadows", "webhooks")
    parser.add_argument("--only", choices=parts, help="measure only this")
    parser.add_argument("--check", action="store_true", help="fail if a budget is broken")
    parser.add_argument("--quick", action="store_true", help="smaller, and less often")
    parser.add_argument("--document", action="store_true", help="write docs/performance.md")
    parser.add_argument("--beside", metavar="URL", default="", help="another API server")
    parser.add_argument("--token", default="", help="its bearer token")
    return parser.parse_args()


def _beside(url: str, token: str) -> Mapping[str, Figure]:
    return fakeapi.everyday(url, token) if url else asyncio.run(_real())


async def _real() -> dict[str, Figure]:
    etcd, apiserver = (os.environ.get(name, "") for name in ("ETCD", "KUBE_APISERVER"))
    if not etcd or not apiserver:
        return {}
    async with real_server(Path(etcd), Path(apiserver)) as server:
        return await asyncio.to_thread(fakeapi.everyday, server.url, TOKEN)


def _document() -> None:
    try:
        write_document()
    except NoResultsError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
