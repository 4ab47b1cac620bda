"""``make bench``: what the extender and fakeapi cost, on stdout and in ``bench-results/``.

Figures that depend on the machine stand beside an echo of the same bytes in the same run, or beside
a calibration loop; the ratio is what to compare. ``--check`` fails if one breaks its budget,
``--quick`` leaves out what takes minutes, ``--only`` measures one half. ``--document`` measures
nothing: it writes the last full run into docs/performance.md. Another API server is measured next
to fakeapi: the one at ``--beside URL``, or an etcd and kube-apiserver that are started if the
environment variables ``ETCD`` and ``KUBE_APISERVER`` name their binaries.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.bench import budgets, extender, fakeapi, report
from tests.bench.budgets import Figure
from tests.bench.calibration import calibrate
from tests.bench.document import NoResultsError, write_document
from tests.bench.report import Measured
from tests.bench.timing import FULL, QUICK
from tests.real_server import TOKEN, real_server


def main() -> None:
    """Measure what is asked for, write the tables, and say which budgets are broken."""
    asked = _arguments()
    if asked.document:
        _document()
        return
    broken = []
    if asked.only != "extender":
        beside = _beside(asked.beside, asked.token)
        broken += _half("fakeapi", fakeapi.measure, beside, quick=asked.quick)
    if asked.only != "fakeapi":
        effort = QUICK if asked.quick else FULL
        broken += _half("extender", lambda: extender.measure(effort), {}, quick=asked.quick)
    sys.stdout.write("".join(f"over budget: {fault}\n" for fault in broken))
    if broken and asked.check:
        sys.exit(1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", choices=("extender", "fakeapi"), help="measure only this")
    parser.add_argument("--check", action="store_true", help="fail if a budget is broken")
    parser.add_argument("--quick", action="store_true", help="smaller, and less often")
    parser.add_argument("--document", action="store_true", help="write docs/performance.md")
    parser.add_argument("--beside", metavar="URL", default="", help="another API server")
    parser.add_argument("--token", default="", help="how that one lets us in")
    return parser.parse_args()


def _half(
    half: str,
    measure: Callable[[], dict[str, Figure]],
    beside: Mapping[str, Figure],
    *,
    quick: bool,
) -> list[str]:
    """Measure one half and write its table; gives the budgets that are broken."""
    before = calibrate()
    figures = measure()
    calibration = statistics.mean((before, calibrate()))
    given = budgets.read(half)
    report.write(half, Measured(figures, calibration, quick, report.machine()), given, beside)
    checked = {name: budget for name, budget in given.items() if not (quick and budget.full)}
    return [f"{half}.{fault}" for fault in budgets.faults(checked, figures, calibration)]


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
