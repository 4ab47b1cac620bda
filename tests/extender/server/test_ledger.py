"""Answers over HTTP, and the entries that the ledger has of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from extender.config.component_config import (
    Config,
    Deadlines,
    LedgerConfig,
    LedgerVerb,
    load_config,
)
from extender.kube.rest.clock import SystemClock
from extender.ledger.entry import LedgerEntry, State, encode_body
from extender.ledger.storage.queries import Ledger, Selection
from extender.ledger.storage.sqlite_database import Access, open_sqlite
from tests.builders import manifest, node_json, owner, pdb_json, pod_json
from tests.builders.manifests import Document
from tests.extender.conftest import Following, filter_body, following, preempt_body

VIP = pod_json("vip", cpu="2", memory="1Gi", priority=100, labels={"team": "front"})
OBJECTS = [
    *(node_json(f"node-{n}", cpu="2", others={"example.com/gpu": "8"}) for n in range(1, 4)),
    pod_json("a", on="node-1", cpu="2", priority=5, started=10),
    pod_json("b", on="node-2", cpu="1", priority=1, labels={"app": "b", "team": "back"}),
    pod_json("b2", on="node-2", cpu="1", priority=2, metadata={"ownerReferences": [
        owner("web", "ReplicaSet", "apps/v1", controller=True)]}),
    pod_json("c", on="node-3", cpu="2", priority=200),
    pdb_json("strict", match={"app": "b"}, allowed=0),
    VIP,
]  # fmt: skip
CALM = Deadlines(preempt=60_000)
OFFER: Mapping[str, list[str]] = {"node_1": ["a"], "node_2": ["b", "b2"], "node_3": ["c"]}


async def entries_of(path: Path) -> Sequence[LedgerEntry]:
    """Return the entries of a ledger, the earliest first."""
    ledger = Ledger(await open_sqlite(path, Access.READ))
    try:
        return [each.entry for each in reversed(await ledger.records(Selection(), 1000))]
    finally:
        await ledger.close()


@asynccontextmanager
async def keeping(
    path: Path, objects: Iterable[Document] = OBJECTS, config: Config | None = None, **fields: Any
) -> AsyncIterator[Following]:
    """Serve an extender with a ledger; ``fields`` are of its configuration."""
    settings = config or Config(deadline_milliseconds=CALM)
    ledger = LedgerConfig(str(path), team_label="team", **fields)
    settings = msgspec.structs.replace(settings, port=0, ledger=ledger)
    async with following(objects, settings) as it:
        await it.let_it_sync()
        yield it


async def kept(path: Path, body: bytes, verb: str = "preempt", **options: Any) -> LedgerEntry:
    """Return the entry of a call that an extender has answered."""
    async with keeping(path, **options) as it:
        reply = await it.extender.post(f"/{verb}", body)
        assert reply.status == 200, reply.text
    [found] = await entries_of(path)
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


async def test_an_entry_is_the_answer_and_its_reasons(path: Path) -> None:
    before = SystemClock().now_ns()
    async with keeping(path) as it:
        reply = await it.extender.post("/preempt", preempt_body(VIP, **OFFER))
        decisions = json.loads((await it.extender.get("/decisions")).text)
    [found] = await entries_of(path)
    named = json.loads(reply.text)["NodeNameToMetaVictims"]
    assert [found.node] == list(named)
    assert [each.uid for each in found.victims] == [e["UID"] for e in named[found.node]["Pods"]]
    assert before // 1000 <= found.at_ns // 1000 <= SystemClock().now_ns() // 1000
    assert (found.pod.key, found.pod.team, found.pod.priority) == ("default/vip", "front", 100)
    assert found.pod.requests == {"cpu": 2000, "memory": 2**30}
    # node-2 has one victim whose budget is violated.
    assert found.node == "node-1"
    assert found.decided_by == found.criteria[0] == "fewest PDB violations"
    assert found.chosen is not None
    assert found.runner_up is not None
    assert (found.chosen.criteria[0], found.runner_up.criteria[0]) == (0, 1)
    assert len(found.chosen.criteria) == len(found.runner_up.criteria) == len(found.criteria)
    assert [each.key for each in found.runner_up.victims] == ["default/b2", "default/b"]
    assert found.runner_up.violated_pdbs == ("default/strict",)
    assert found.runner_up.num_pdb_violations == 1
    assert found.chosen.allocatable["cpu"] == found.chosen.requested["cpu"] == 2000
    assert found.candidates == 2
    assert sum(found.rejected.values()) == 1
    assert found.victims[0].run_seconds == pytest.approx(before / 1e9 - 10, abs=60)
    assert found.request_id == decisions["decisions"][0]["requestID"]
    assert all((found.policy, found.release, found.digest, found.took_microseconds))


async def test_spared_pods_are_kept(path: Path) -> None:
    small = pod_json("vip", cpu="1", priority=100)
    found = await kept(path, preempt_body(small, node_2=["b", "b2"]))
    assert found.chosen is not None
    assert [each.key for each in found.chosen.victims] == ["default/b2"]
    assert [each.key for each in found.chosen.spared] == ["default/b"]
    assert found.victims[0].owner == "ReplicaSet/web"


async def test_a_pod_that_may_preempt_nowhere_has_an_entry_without_a_node(path: Path) -> None:
    weak = pod_json("weak", cpu="2", priority=0)
    found = await kept(path, preempt_body(weak, node_3=["c"]))
    assert (found.node, found.victims, found.candidates) == (None, (), 0)
    assert sum(found.rejected.values()) >= 1


@pytest.mark.parametrize(
    ("verbs", "expected"),
    [
        ((LedgerVerb.PREEMPT,), ["preempt"]),
        ((LedgerVerb.FILTER,), ["filter"]),
        ((LedgerVerb.FILTER, LedgerVerb.PREEMPT), ["filter", "preempt"]),
    ],
)
async def test_the_configured_verbs_are_kept(
    path: Path, verbs: tuple[LedgerVerb, ...], expected: list[str]
) -> None:
    async with keeping(path, verbs=verbs) as it:
        await it.extender.post("/filter", filter_body(VIP, "node-1", "node-2"))
        await it.extender.post("/preempt", preempt_body(VIP, **OFFER))
    found = await entries_of(path)
    assert [each.verb for each in found] == expected
    assert {each.fits for each in found if each.verb == "filter"} <= {0}


async def test_a_fallback_is_kept(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "reprieve.yaml"
    file.write_text("degraded: {late: {preempt: echo}}\n")
    async with keeping(path, config=load_config(file)) as it:
        service = it.extender.service
        service.fallback_policy = replace(service.fallback_policy, deadlines={"preempt": -1.0})
        await it.extender.post("/preempt", preempt_body(VIP, **OFFER))
    [found] = await entries_of(path)
    assert found.fallback.startswith("late: ")
    assert (found.pod.key, found.node, found.victims) == ("default/vip", None, ())


@pytest.mark.parametrize("character", ["\0", "x", "\N{GRINNING FACE}"])
async def test_what_a_hostile_call_leaves_is_small(path: Path, character: str) -> None:
    """Longer names of objects, and values of labels, are refused."""
    name, owned = character * 253, [owner(character * 20_000, "Job", controller=True)]
    hostile = pod_json(
        name, cpu="2", priority=100, uid=name, namespace=name, metadata={"ownerReferences": owned},
        labels={"team": character * 63}, spec={"priorityClassName": name},
    )  # fmt: skip
    container = hostile["spec"]["containers"][0]
    container["resources"]["requests"] |= {f"example.com/{n:09}": "1" for n in range(3000)}
    found = await kept(path, preempt_body(hostile, **OFFER))
    assert "\0" not in f"{found.pod.owner_key}{found.pod.team}{found.pod.name}"
    assert len(msgspec.json.encode(found)) < 50_000
    assert len(encode_body(found)) < 10_000


async def test_ten_thousand_victims_are_counted_and_a_part_of_them_kept(path: Path) -> None:
    count = 10_000
    objects = [
        node_json("node-1", cpu=str(count), pods="20000"),
        *(pod_json(f"web-{n}", on="node-1", cpu="1", priority=1) for n in range(count)),
        pod_json("vip", cpu=str(count), priority=100),
    ]
    uids = [f"web-{n}" for n in range(count)]
    found = await kept(path, preempt_body(objects[-1], node_1=uids), objects=objects)
    assert len(found.victims) == 200
    assert "9800 more victims are not kept" in found.notes


async def test_lone_surrogates_are_answered_and_kept_or_refused(path: Path) -> None:
    body = preempt_body(VIP, **OFFER).replace(b'"name":"vip"', b'"name":"vip\\ud800"')
    async with keeping(path) as it:
        await it.extender.post("/preempt", body)
        reply = await it.extender.post("/preempt", preempt_body(VIP, **OFFER))
        assert reply.status == 200
    assert (await entries_of(path))[-1].pod.key == "default/vip"


async def test_the_outcome_follows_the_watch(path: Path) -> None:
    async with keeping(path) as it:
        await it.extender.post("/preempt", preempt_body(VIP, **OFFER))
    others = [each for each in OBJECTS if each["metadata"]["name"] != "a"]
    async with keeping(path, others) as it:
        recorder = it.extender.service.ledger
        assert recorder is not None
        assert await recorder.writer.flush()  # it finds that the victim has left
    ledger = Ledger(await open_sqlite(path, Access.READ))
    [record] = await ledger.records(Selection(), 10)
    await ledger.close()
    assert record.outcome.state is State.OPEN
    assert record.outcome.victims[0].gone_ns > record.entry.at_ns


def unusable(folder: Path) -> Mapping[str, Path]:
    """Return locations at which no ledger can be."""
    text, database = folder / "text.db", folder / "other.db"
    text.write_text("not a database\n" * 1000)
    with closing(sqlite3.connect(database)) as other:
        other.execute("CREATE TABLE accounts (id INTEGER)")
    return {
        "no directory": folder / "none" / "ledger.db",
        "a directory": folder,
        "no place for files": Path("/proc/ledger.db"),
        "a device": Path("/dev/full"),
        "a text": text,
        "another database": database,
    }


@pytest.mark.parametrize(
    "name",
    ["no directory", "a directory", "no place for files", "a device", "a text", "another database"],
)
async def test_an_extender_without_its_ledger_answers(tmp_path: Path, name: str) -> None:
    location = unusable(tmp_path)[name]
    before = location.read_bytes() if location.is_file() else b""
    with capture_logs() as lines:
        async with keeping(location) as it:
            writer = it.extender.service.ledger
            assert writer is not None
            for _ in range(3):
                reply = await it.extender.post("/preempt", preempt_body(VIP, **OFFER))
                assert reply.status == 200
                assert not await writer.writer.flush()
            ready = await it.extender.get("/readyz?verbose")
            metrics = await it.extender.get("/metrics")
    assert ready.status == 200
    [warning] = [line for line in ready.text.splitlines() if "ledger" in line]
    assert str(location) in warning
    assert "reprieve_ledger_waiting 3.0" in metrics.text
    assert [line["event"] for line in lines].count("ledger_not_written") == 1
    assert (location.read_bytes() if location.is_file() else b"") == before


COSTS = """
apiVersion: reprieve.dev/v1alpha1
kind: PreemptionPolicy
metadata: {name: spare-the-reports}
rules:
- name: all
  candidates: [least lost work, fewest victims]
  guards:
    protect:
    - {name: reports, labels: {matchLabels: {app: report}}}
"""


async def test_the_values_of_a_policy_and_its_guards_are_kept(path: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(COSTS)
    report = pod_json("report", on="node-2", labels={"app": "report"})
    config = Config(policy=str(policy), deadline_milliseconds=CALM)
    objects = [*OBJECTS, report]
    found = await kept(path, preempt_body(VIP, **OFFER), objects=objects, config=config)
    assert (found.policy, found.criteria) == (
        "spare-the-reports",
        ("least lost work", "fewest victims"),
    )
    assert found.chosen is not None
    assert found.runner_up is not None
    assert found.decided_by == "least lost work"
    assert found.chosen.criteria < found.runner_up.criteria
    assert (found.node, sum(found.protected.values())) == ("node-2", 1)


async def test_the_victims_of_a_deferred_resize_are_kept(path: Path) -> None:
    deferred = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
    growing = pod_json(
        "growing", on="node-1", cpu="3", priority=10, status={"conditions": [deferred]}
    )
    small = pod_json("cheap", on="node-1", cpu="1", priority=1)
    gates = {"InPlacePodVerticalScalingSchedulerPreemption": True}
    config = Config(upstream="1.37", feature_gates=gates, deadline_milliseconds=CALM)
    objects = [node_json("node-1", cpu="3"), growing, small]
    found = await kept(
        path, preempt_body(growing, node_1=["cheap"]), objects=objects, config=config
    )
    assert (found.pod.key, found.node) == ("default/growing", "node-1")
    assert [each.key for each in found.victims] == ["default/cheap"]


async def test_a_gang_is_kept_as_its_pods(path: Path) -> None:
    gates = {"GenericWorkload": True, "WorkloadAwarePreemption": True}
    gang = manifest("PodGroup", "gang", spec={"schedulingPolicy": {"gang": {"minCount": 2}}})
    spec = {"schedulingGroup": {"podGroupName": "gang"}}
    pods = [
        pod_json(f"g{n}", on="node-1", cpu="1", priority=1, spec=spec, started=10) for n in range(2)
    ]
    config = Config(upstream="1.37", feature_gates=gates, deadline_milliseconds=CALM)
    objects = [node_json("node-1", cpu="2"), gang, *pods, VIP]
    found = await kept(path, preempt_body(VIP, node_1=["g0", "g1"]), objects=objects, config=config)
    assert sorted(each.key for each in found.victims) == ["default/g0", "default/g1"]
