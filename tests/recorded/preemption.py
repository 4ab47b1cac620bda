"""Makes tests/recorded/preemption.jsonl.gz: a full cluster in which pods are preempted.

    .venv/bin/python -m tests.conformance.build scheduler
    .venv/bin/python -m tests.recorded.preemption

A real kube-scheduler offers one candidate at a time to ``reprieve serve``, its extender, which
searches the whole cluster. Three urgent pods preempt one batch pod each, a huge one two pods, whose
ReplicaSets replace them: the web pod preempts again, the batch pods stay pending until a node is
added, as does one that may not preempt. There are no kubelets: this module removes the victims.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tests.builders import Document, manifest
from tests.builders.replicas import a_replica_set
from tests.commands import COMMAND
from tests.conformance.build import program
from tests.conformance.objects import NAMESPACE
from tests.conformance.scheduling.environment import Environment, Setting, environment
from tests.conformance.scheduling.kube_scheduler import ONE_NODE
from tests.conformance.scheduling.pods import bound_pod, budget, pending_pod, small_node
from tests.conformance.scheduling.releases import RELEASES

FILE = Path(__file__).with_name("preemption.jsonl.gz")
RELEASE: Final = "1.37"
RUN: Final = "gc,namespaces,replicaset"
NODES: Final = 8

_FOLLOWED: Final = "namespaces,nodes,priorityclasses,poddisruptionbudgets,replicasets.apps,pods"
_RECORD: Final = (*COMMAND, "record")
_BETWEEN_SECONDS: Final = 0.05
_PAUSE_SECONDS: Final = 3.0
"""Longer than a pod's first two backoffs together, so that no pod is waiting for one."""
_QUIET: Final = manifest("PriorityClass", "quiet", value=100, preemptionPolicy="Never")


def residents() -> Iterable[Document]:
    """Fill each node: with a web pod, and a batch pod; the last batch pod may not be disrupted."""
    for n in range(NODES):
        yield small_node(f"node-{n}", cpu="4")
        yield bound_pod(f"web-{n}", f"node-{n}", "2", 50, started=n + 1, labels={"app": "web"})
        labels = {"app": "batch", **({"held": "yes"} if n == NODES - 1 else {})}
        yield bound_pod(f"batch-{n}", f"node-{n}", "2", 5, started=n + 1, labels=labels)
    yield budget("held", 0, {"held": "yes"})


def workload(name: str, priority: int) -> Document:
    """Return a ReplicaSet that adopts the residents of its name."""
    document = a_replica_set(name, namespace=NAMESPACE, replicas=NODES, labels={"app": name})
    pod = pending_pod(name, "2", priority)
    document["spec"]["template"]["spec"] = pod["spec"]
    return document


async def play(there: Environment) -> None:
    """Create pods, and remove their victims."""
    for n in range(3):
        await there.cluster.create(pending_pod(f"urgent-{n}"))
        await _make_room(there, f"urgent-{n}", victims=1)
    await there.cluster.create(pending_pod("huge", "4", 1000))
    await _make_room(there, "huge", victims=3)
    quiet = pending_pod("quiet")
    quiet["spec"]["priorityClassName"] = "quiet"
    await there.cluster.create(quiet)
    await there.wait_unschedulable("quiet")
    await asyncio.sleep(_PAUSE_SECONDS)
    await there.load(small_node("node-new", cpu="12"))
    await there.cluster.until(lambda: not unplaced(there))
    await asyncio.sleep(_PAUSE_SECONDS)


async def _make_room(there: Environment, preemptor: str, victims: int) -> None:
    await there.wait_nominated(preemptor)
    await there.wait_for_deletions(victims)
    await there.remove_terminating()
    await there.wait_bound(preemptor)
    await asyncio.sleep(_PAUSE_SECONDS)


def unplaced(there: Environment) -> list[str]:
    """Return the names of pods without a node."""
    pods = there.cluster.all("Pod")
    return [pod["metadata"]["name"] for pod in pods if not pod["spec"].get("nodeName")]


async def make(path: Path) -> None:
    """Record the cluster with ``reprieve record``."""
    setting = Setting(ONE_NODE, serving={"search": "cluster"}, run=RUN)
    async with environment(program(RELEASES[RELEASE]), RELEASE, setting) as there:
        await there.load(_QUIET, *residents())
        for name, priority in (("web", 50), ("batch", 5)):
            await there.load(workload(name, priority))
        await there.cluster.until(lambda: _adopted(there) == 2 * NODES)
        async with _recording(there.server.url, path):
            await play(there)


def _adopted(there: Environment) -> int:
    return sum("ownerReferences" in pod["metadata"] for pod in there.cluster.all("Pod"))


@asynccontextmanager
async def _recording(server: str, path: Path) -> AsyncIterator[None]:
    """Record a server, once everything has been listed, until the block ends."""
    _unlink(path)
    options = ("--server", server, "--resources", _FOLLOWED, "--out", str(path))
    process = await asyncio.create_subprocess_exec(*_RECORD, *options)
    try:
        await _begun(process, path)
        yield
    finally:
        process.terminate()
        await process.wait()


async def _begun(process: Process, path: Path) -> None:
    """Return when the file has a header: nothing else shows that everything has been listed."""
    while process.returncode is None and not _is_begun(path):  # noqa: ASYNC110 - files send no event
        await asyncio.sleep(_BETWEEN_SECONDS)


def _unlink(path: Path) -> None:
    path.unlink(missing_ok=True)


def _is_begun(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


if __name__ == "__main__":
    asyncio.run(make(FILE))
