"""``make bench``: what the extender costs, as a table on stdout and in ``bench-results/``.

Figures that depend on the machine stand beside an echo of the same bytes in the same run; the ratio
is what to compare.
"""

from __future__ import annotations

import asyncio
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
from tests.bench.clusters import cluster, encoded, preemptor
from tests.bench.http import Beside, beside_echo, wait_ready
from tests.bench.processes import echo, reprieve

RESULTS = Path("bench-results") / "extender.md"
Row = tuple[str, str]


async def main() -> None:
    """Measure everything and write the table."""
    rows = [*_engine(), *await _preempt_and_sync(), *await _filter()]
    lines = ["| what | result |", "|---|---|", *(f"| {what} | {result} |" for what, result in rows)]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join(lines) + "\n")
    sys.stdout.write(RESULTS.read_text())


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


asyncio.run(main())
