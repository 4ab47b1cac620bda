"""A thousand preemptions of a real kube-scheduler: its Events, the API's history, and the ledger.

For each Preempted Event on a victim, which names its preemptor by UID, the ledger has an entry that
names this victim for this preemptor, and the reverse. The exception is a victim that an earlier
answer named for another preemptor: kube-scheduler does not delete it twice. The outcomes of the
entries are those of the API server's history: which victims left, where the preemptor was bound.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from extender.ledger.entry import LedgerRecord, State
from extender.ledger.storage.queries import Ledger, Selection
from extender.ledger.storage.sqlite_database import Access, open_sqlite
from tests.builders import Document
from tests.conformance.objects import NAMESPACE
from tests.conformance.scheduling.environment import Environment, Setting, environment
from tests.conformance.scheduling.kube_scheduler import DEFAULT
from tests.conformance.scheduling.pods import admitted, bound_pod, pending_pod, small_node
from tests.conformance.scheduling.releases import scheduler

NODES: Final = 120
PODS_PER_NODE: Final = 10
PREEMPTIONS: Final = 1000
AT_ONCE: Final = 100
_EVENTS: Final = f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"
_HISTORY: Final = "/_fakeapi/history?kind=pods"
_NAMED: Final = re.compile(r"Preempted by pod (\S+) on node (\S+)")
_WAIT_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class PodHistory:
    """The UIDs of the pods that were deleted, and the nodes of pods that were bound, by UID."""

    deleted: frozenset[str]
    nodes: Mapping[str, str]


def cluster() -> Iterable[Document]:
    """Yield full nodes; a pod that is deleted is removed at once, for there is no kubelet."""
    for node in range(NODES):
        yield small_node(f"node-{node}", cpu=str(PODS_PER_NODE))
        for number in range(PODS_PER_NODE):
            yield bound_pod(
                f"old-{node}-{number}",
                f"node-{node}",
                cpu="1",
                priority=1 + (node + number) % 7,
                spec={"terminationGracePeriodSeconds": 0},
            )


async def pod_history(env: Environment) -> PodHistory:
    """Return what the API server's history has of pods."""
    async with env.server.session() as session, session.get(_HISTORY) as reply:
        changes = (await reply.json())["changes"]
    shown = [(each["type"], each["object"]) for each in changes]
    bound = ((pod["metadata"]["uid"], pod["spec"].get("nodeName")) for _, pod in shown)
    return PodHistory(
        frozenset(pod["metadata"]["uid"] for kind, pod in shown if kind == "DELETED"),
        {uid: node for uid, node in bound if node},
    )


async def preempted_pairs(env: Environment) -> set[tuple[str, str]]:
    """Return preemptor and victim, by UID, of each Preempted Event."""
    async with env.server.session() as session, session.get(_EVENTS) as reply:
        events = (await reply.json())["items"]
    found = set[tuple[str, str]]()
    for event in events:
        if event["reason"] == "Preempted":
            named = _NAMED.fullmatch(event["note"])
            assert named is not None, event["note"]
            found.add((named[1], event["regarding"]["uid"]))
    return found


async def final_records(path: Path) -> Sequence[LedgerRecord]:
    """Return the entries that name victims once no preemptor is followed any more."""
    async with asyncio.timeout(_WAIT_SECONDS):
        while True:
            ledger = Ledger(await open_sqlite(path, Access.READ))
            try:
                records = await ledger.records(Selection(), 10**6)
            finally:
                await ledger.close()
            followed = [each for each in records if each.outcome.state is State.OPEN]
            if not any(each.entry.victims for each in followed):
                return [each for each in records if each.entry.victims]
            await asyncio.sleep(0.2)  # a file has no event


def pairs(records: Iterable[LedgerRecord]) -> set[tuple[str, str]]:
    """Return preemptor and victim, by UID, of each entry."""
    return {(r.entry.pod.uid, victim.uid) for r in records for victim in r.entry.victims}


def named_again(records: Iterable[LedgerRecord]) -> set[tuple[str, str]]:
    """Return the pairs whose victim an earlier entry names for another preemptor."""
    first, again = dict[str, str](), set[tuple[str, str]]()
    for record in sorted(records, key=lambda each: each.entry.id):
        for victim in record.entry.victims:
            preemptor = record.entry.pod.uid
            if first.setdefault(victim.uid, preemptor) != preemptor:
                again.add((preemptor, victim.uid))
    return again


@pytest.mark.parametrize("release", ["1.37"])
async def test_the_ledger_agrees_with_events_and_history(tmp_path: Path, release: str) -> None:
    path = tmp_path / "ledger.db"
    serving = {"ledger": {"location": str(path)}, "log": {"level": "error"}}
    setting = Setting(sampling=DEFAULT, serving=serving)
    async with environment(scheduler(release), release, setting) as env:
        await env.load(*cluster())
        for first in range(0, PREEMPTIONS, AT_ONCE):
            names = [f"new-{number}" for number in range(first, first + AT_ONCE)]
            # Each tenth preemptor needs two victims.
            pods = (pending_pod(name, "1" if int(name[4:]) % 10 else "2") for name in names)
            await env.load(*map(admitted, pods))
            await env.wait_bound(*names)
        records = await final_records(path)
        events = await preempted_pairs(env)
        history = await pod_history(env)
    assert len({preemptor for preemptor, _ in events}) == PREEMPTIONS
    carried_out = [each for each in records if each.outcome.state is State.BOUND]
    assert events <= pairs(records)
    # Two answers in a row may count on the same victim: kube-scheduler evicts it for the first.
    assert pairs(carried_out) - events <= named_again(records)
    assert {uid for _, uid in pairs(carried_out)} == {uid for _, uid in events}
    assert len(carried_out) == PREEMPTIONS
    for each in records:
        gone = {
            pod.uid
            for pod, found in zip(each.entry.victims, each.outcome.victims, strict=True)
            if found.gone_ns
        }
        assert gone == {pod.uid for pod in each.entry.victims} & history.deleted
    for each in carried_out:
        assert each.outcome.node == history.nodes[each.entry.pod.uid] == each.entry.node
