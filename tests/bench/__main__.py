"""``make bench``: what the extender and fakeapi cost, on stdout and in ``bench-results/``.

Figures that depend on the machine stand beside an echo of the same bytes in the same run, or beside
a calibration loop; the ratio is what to compare. ``--check`` fails if one breaks its budget,
``--only`` measures one half. Another API server is measured next to fakeapi: the one at ``--beside
URL``, or an etcd and kube-apiserver that are started if the environment variables ``ETCD`` and
``KUBE_APISERVER`` name their binaries.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from extender.kube.objects import decode_budget, decode_node
from extender.kube.pods import decode_pod
from policies import DEFAULT_RULES, Snapshot, assemble, decide_preemption
from policies.upstream import NEWEST
from tests.bench import fakeapi
from tests.bench.budgets import Figure, faults
from tests.bench.calibration import calibrate
from tests.bench.clusters import cluster, encoded, preemptor
from tests.bench.http import Beside, beside_echo, wait_ready
from tests.bench.processes import echo, reprieve
from tests.real_server import TOKEN, real_server

RESULTS = Path("bench-results")
Row = tuple[str, str]


def main() -> None:
    """Measure what is asked for, and write the tables."""
    asked = _arguments()
    if asked.only != "fakeapi":
        rows = asyncio.run(_extender())
        _write("extender.md", [("what", "result"), ("---", "---"), *rows])
    if asked.only != "extender":
        broken = _fakeapi(asked.beside, asked.token)
        sys.stdout.write("".join(f"over budget: {fault}\n" for fault in broken))
        if broken and asked.check:
            sys.exit(1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", choices=("extender", "fakeapi"), help="measure only this")
    parser.add_argument("--check", action="store_true", help="fail if a budget is broken")
    parser.add_argument("--beside", metavar="URL", default="", help="another API server")
    parser.add_argument("--token", default="", help="how that one lets us in")
    return parser.parse_args()


async def _extender() -> list[Row]:
    return [*_engine(), *await _preempt_and_sync(), *await _filter()]


def _fakeapi(beside: str, token: str) -> list[str]:
    """Measure fakeapi, and another server if one is given; gives the budgets that are broken."""
    calibration = calibrate()
    figures = fakeapi.measure()
    other = fakeapi.everyday(beside, token) if beside else asyncio.run(_real())
    rows = [_row(figure, calibration, other.get(name)) for name, figure in figures.items()]
    calibrated = ("calibration loop", f"{calibration * 1e3:.1f} ms", "1", "")
    head = [("what", "fakeapi", "per calibration", "beside"), ("---",) * 4]
    _write("fakeapi.md", [*head, *rows, calibrated])
    return faults(figures, calibration)


async def _real() -> dict[str, Figure]:
    etcd, apiserver = (os.environ.get(name, "") for name in ("ETCD", "KUBE_APISERVER"))
    if not etcd or not apiserver:
        return {}
    async with real_server(Path(etcd), Path(apiserver)) as server:
        return await asyncio.to_thread(fakeapi.everyday, server.url, TOKEN)


def _row(figure: Figure, calibration: float, beside: Figure | None) -> tuple[str, ...]:
    ratio = f"{figure.cost / calibration:.3g}" if figure.timed else ""
    return figure.what, figure.shown, ratio, beside.shown if beside else ""


def _write(name: str, rows: list[tuple[str, ...]] | list[Row]) -> None:
    RESULTS.mkdir(exist_ok=True)
    text = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    (RESULTS / name).write_text(text)
    sys.stdout.write(text)


def _engine() -> Iterator[Row]:
    pod = decode_pod(encoded(preemptor(8, 16)), NEWEST)
    for budgets in (0, 100):
        snapshot = _snapshot(100, budgets)
        taken = []
        for _ in range(7):
            started = time.perf_counter()
            decide_preemption(pod, snapshot, DEFAULT_RULES)
            taken.append(time.perf_counter() - started)
        per_node = statistics.median(taken) / 100 * 1e6
        yield f"reference engine, per node of 30 pods, {budgets} PDBs", f"{per_node:.0f} µs"


async def _preempt_and_sync() -> list[Row]:
    rows: list[Row] = []
    with _file(1000) as file, reprieve("fakeapi", "--port", "0", "--load", file) as api:
        started = time.perf_counter()
        with reprieve("serve", "--port", "0", "--server", api.url) as extender:
            listening = time.perf_counter() - started
            before = extender.resident_bytes()
            synced = await wait_ready(extender)
            grown = (extender.resident_bytes() - before) / 2**20
            rows.append(("start to listening", f"{listening:.2f} s"))
            rows.append(("first sync of 1,000 nodes and 30,000 pods", f"{synced:.2f} s"))
            rows.append(("memory it takes", f"{grown:.0f} MiB on top of {before / 2**20:.0f} MiB"))
            body = _preempt_body(_snapshot(1000, 100))
            with echo() as bare:
                beside = await beside_echo(extender, "preempt", body, bare, 20)
            rows += _compared("HTTP preempt, 500 offered nodes, 100 PDBs", beside)
    return rows


async def _filter() -> list[Row]:
    names = [f"node-{index:05}" for index in range(5000)]
    body = encoded({"Pod": preemptor(8, 16), "Nodes": None, "NodeNames": names})
    with (
        _file(5000, pods_per_node=4) as file,
        reprieve("fakeapi", "--port", "0", "--load", file) as api,
        reprieve("serve", "--port", "0", "--server", api.url) as extender,
        echo() as bare,
    ):
        await wait_ready(extender)
        beside = await beside_echo(extender, "filter", body, bare, 100)
    return list(_compared("HTTP filter, 5,000 node names", beside))


def _compared(what: str, beside: Beside) -> Iterator[Row]:
    for name in ("p50", "p99"):
        ours, bare = getattr(beside.extender, name), getattr(beside.echo, name)
        ratio = ours / bare
        yield f"{what}, {name}", f"{ours:.1f} ms; echo {bare:.2f} ms; ratio {ratio:.1f}"


def _preempt_body(snapshot: Snapshot) -> bytes:
    document = preemptor(8, 16)
    pod = decode_pod(encoded(document), NEWEST)
    offered = sorted(snapshot.nodes)[:500]
    candidates = decide_preemption(pod, snapshot, DEFAULT_RULES, offered).candidates
    offers = {
        node: {
            "Pods": [{"UID": victim.uid} for victim in candidate.victims.pods],
            "NumPDBViolations": candidate.victims.violations,
        }
        for node, candidate in candidates.items()
    }
    return encoded({"Pod": document, "NodeNameToVictims": None, "NodeNameToMetaVictims": offers})


def _snapshot(nodes: int, budgets: int) -> Snapshot:
    documents = [(each["kind"], encoded(each)) for each in cluster(nodes, budgets=budgets)]
    return assemble(
        [decode_node(raw) for kind, raw in documents if kind == "Node"],
        [decode_pod(raw, NEWEST) for kind, raw in documents if kind == "Pod"],
        [decode_budget(raw) for kind, raw in documents if kind == "PodDisruptionBudget"],
    )


@contextmanager
def _file(nodes: int, pods_per_node: int = 30) -> Iterator[str]:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "cluster.jsonl"
        path.write_bytes(b"\n".join(encoded(each) for each in cluster(nodes, pods_per_node)))
        yield str(path)


if __name__ == "__main__":
    main()
