"""The decisions of a ledger are made again under policies, from the inputs that it keeps."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec
import pytest

from extender.config.component_config import Config, LedgerConfig
from extender.config.preemption_policy import PolicySource
from extender.config.rules_source import build_rules, read_rules_source
from extender.ledger.entry import LedgerEntry, format_id
from extender.ledger.storage.database import LedgerError
from extender.ledger.storage.location import open_database
from extender.ledger.storage.queries import NEWEST_ID, Ledger
from extender.ledger.storage.sqlite_database import Access
from extender.protocol.verb_context import Search
from extender.server.ledger_use import build_recorder
from extender.server.service import Service, VerbCall
from fakeapi.backtest.ledger.decisions import decide_again
from fakeapi.backtest.ledger.workload import (
    ledger_segments,
    open_ledger_workload,
)
from fakeapi.backtest.report.comparison import compare
from fakeapi.backtest.report.page import render_html
from fakeapi.backtest.results import BacktestResults, UnitResult
from fakeapi.backtest.simulation.simulated_scheduler import STOCK, SimulatedPolicy
from fakeapi.backtest.statistics import RunStatistics, conservation_error, merge_statistics
from policies.engine_selection import build_engine
from tests.builders import budget, node, pod, pod_json
from tests.commands import reprieve
from tests.extender.conftest import HandClock, live_cluster, preempt_body

HOUR: Final = 3600
START: Final = 100 * HOUR
CHECKPOINT: Final = "example.com/checkpoint"
PREEMPTORS: Final = ("one", "two", "three", "four", "five")
DEFAULT: Final = SimulatedPolicy("kube-scheduler", PolicySource("kube-scheduler"))
STOCK_POLICY: Final = SimulatedPolicy(STOCK, None)


def policy(**rule: object) -> SimulatedPolicy:
    """Return a policy with one rule."""
    document = {
        "apiVersion": "reprieve.dev/v1alpha1",
        "kind": "PreemptionPolicy",
        "metadata": {"name": "other"},
        "rules": [{"name": "default", **rule}],
    }
    return SimulatedPolicy(
        "other", PolicySource("other.yaml", msgspec.json.encode(document).decode())
    )


SAVING: Final = policy(lostWork={"weights": {"cpu": 1}, "checkpoint": CHECKPOINT})


async def record(
    location: Path | str,
    live: SimulatedPolicy = DEFAULT,
    offers: Mapping[str, Mapping[str, list[str]]] | None = None,
    *,
    snapshots: bool = True,
    saved: str = "1970-01-05T03:30:00Z",
) -> str:
    """Keep the ledger of an extender that decides once an hour, and return its location.

    It decides under the ``live`` policy about PREEMPTORS, each for a whole node. The pods of nodes
    1 to 6 have priorities 1 to 6, and started so many hours before. ``saved`` is when those of
    class batch wrote a checkpoint. The last preemptor may not preempt anybody.
    """
    clock = HandClock()
    clock.seconds = START
    source = live.source or PolicySource("kube-scheduler")
    if source.text is not None:
        policy_file = Path(location).with_suffix(".yaml")
        policy_file.write_text(source.text)
        source = PolicySource(str(policy_file))
    settings = Config(policy=source.name_or_path)
    engine = build_engine(build_rules(read_rules_source(settings)))
    names = [f"node-{number}" for number in range(1, 7)]
    running = [
        pod(
            f"pod-{number}",
            on=name,
            cpu="4",
            memory="1Gi",
            namespace="red" if number % 2 else "blue",
            priority=number,
            priority_class="batch" if number % 2 else "",
            started=START - number * HOUR,
            annotations={CHECKPOINT: saved} if number % 2 else {},
            labels={"app": "web"} if number == 2 else {},
        )
        for number, name in enumerate(names, 1)
    ]
    cluster = live_cluster(
        *(node(name, cpu="4", memory="8Gi") for name in names),
        *running,
        budget("web", namespace="blue", match={"app": "web"}, allowed=0),
        clock=clock,
        engine=engine,
    )
    recorder = build_recorder(
        settings,
        LedgerConfig(str(location), snapshots=snapshots),
        cluster.pods,
        clock,
        random.Random(1),
    )
    service = Service(cluster, engine, clock, Search.CLUSTER, ledger=recorder)
    for preemptor in PREEMPTORS:
        clock.seconds += HOUR
        priority = 0 if preemptor == "five" else 100
        cluster.pods.upsert(pod(preemptor, cpu="4", priority=priority))
        body = preempt_body(
            pod_json(preemptor, cpu="4", priority=priority), **(offers or {}).get(preemptor, {})
        )
        (await service.call(VerbCall("preempt", body, clock.monotonic()))).record()
        assert await recorder.writer.flush()
        entry = (await entries(str(location)))[-1]
        for victim in entry.victims:
            cluster.pods.remove(cluster.pods.by_key[victim.key])
        if entry.node:
            cluster.pods.upsert(pod(preemptor, cpu="4", priority=priority, on=entry.node))
    await recorder.writer.close()
    return str(location)


async def entries(location: str) -> list[LedgerEntry]:
    ledger = Ledger(await open_database(location, Access.READ))
    try:
        return [each.entry for each in await ledger.records_after(0, NEWEST_ID, 1000)]
    finally:
        await ledger.close()


@pytest.fixture
def location(tmp_path: Path) -> str:
    return asyncio.run(record(tmp_path / "ledger.db"))


def facts(statistics: RunStatistics) -> list[tuple[int, str, str, list[str], str]]:
    """Return the decisions in the order of time."""
    return [
        (
            each.at_ns // 10**9 // HOUR,
            each.preemptor,
            each.node,
            [victim.name for victim in each.victims],
            each.reason,
        )
        for each in sorted(statistics.decisions, key=lambda each: each.at_ns)
    ]


@pytest.mark.parametrize("live", [DEFAULT, SAVING])
def test_the_policy_of_the_ledger_makes_each_decision_again(
    live: SimulatedPolicy, tmp_path: Path
) -> None:
    location = asyncio.run(record(tmp_path / "ledger.db", live))
    found = decide_again(open_ledger_workload(location), live)
    kept = [each for each in asyncio.run(entries(location)) if each.victims]
    assert facts(found) == [
        (hour, each.pod.key, each.node, [v.key for v in each.victims], each.decided_by)
        for hour, each in enumerate(kept)
    ]
    assert found.preemptions == len(kept) == 4
    assert found.refused == 0
    assert sum(each.disruptions for each in found.groups.values()) == 4
    assert conservation_error(found) == ""


def test_victims_are_counted_by_namespace_and_class_with_their_work(location: str) -> None:
    found = decide_again(open_ledger_workload(location), DEFAULT)
    # pod-1, 3 and 5 run for an hour longer each time, pod-2 is protected by a budget.
    assert facts(found)[0] == (0, "default/one", "node-1", ["red/pod-1"], found.decisions[0].reason)
    assert {name: group.disruptions for name, group in found.groups.items()} == {
        "red/batch": 3,
        "blue/priority-4": 1,
    }
    hours = (1 + 1) + (3 + 2) + (5 + 4)
    assert found.groups["red/batch"].lost == {
        "cpu": 4000 * hours * HOUR,
        "memory": 1024 * hours * HOUR,
    }
    assert found.duration_ns == 3 * HOUR * 10**9


def test_work_before_a_checkpoint_of_the_policy_of_the_ledger_is_not_lost(tmp_path: Path) -> None:
    # 99:30 h after the epoch; the decisions are made 101 h after it and later.
    location = asyncio.run(record(tmp_path / "ledger.db", SAVING))
    workload = open_ledger_workload(location)
    for each in (SAVING, DEFAULT):
        lost = decide_again(workload, each).groups["red/batch"].lost
        assert lost["cpu"] == 4000 * (1.5 + 2.5 + 4.5) * HOUR


def test_a_stricter_policy_names_other_victims_or_none(location: str) -> None:
    workload = open_ledger_workload(location)
    found = decide_again(
        workload, policy(guards={"protect": [{"name": "red", "namespaces": ["red"]}]})
    )
    # Each is about the recorded state, in which pod-2 was never evicted.
    assert [each[1:4] for each in facts(found)] == [
        ("default/one", "node-4", ["blue/pod-4"]),
        ("default/two", "node-4", ["blue/pod-4"]),
        ("default/three", "node-4", ["blue/pod-4"]),
        ("default/four", "node-6", ["blue/pod-6"]),
    ]
    none = decide_again(workload, policy(guards={"priorityGap": 100}))
    assert (none.preemptions, none.refused, none.groups, none.decisions) == (0, 4, {}, ())


def test_a_policy_that_reads_the_time_has_that_of_the_decision(location: str) -> None:
    """The policy of the ledger does not read the time, so that its inputs have none."""
    found = decide_again(open_ledger_workload(location), policy(candidates=["least run time"]))
    # The pods have run for 1 + 1, 2 + 2, ... hours at the decisions.
    assert [each[3] for each in facts(found)] == [
        ["red/pod-1"], ["blue/pod-2"], ["blue/pod-2"], ["blue/pod-2"]
    ]  # fmt: skip
    assert found.violations == 3


def test_stock_is_the_choice_of_kube_scheduler_among_its_candidates(tmp_path: Path) -> None:
    offers = {"one": {"node_3": ["pod-3"], "node_4": ["pod-4"]}, "two": {"node_6": ["pod-6"]}}
    location = asyncio.run(record(tmp_path / "ledger.db", offers=offers))
    found = decide_again(open_ledger_workload(location), STOCK_POLICY)
    assert [each[1:4] for each in facts(found)] == [
        ("default/one", "node-3", ["red/pod-3"]),
        ("default/two", "node-6", ["blue/pod-6"]),
    ]
    assert (found.preemptions, found.refused) == (2, 2)


def test_segments_have_the_statistics_of_the_whole(location: str) -> None:
    workload = open_ledger_workload(location)
    whole = decide_again(workload, DEFAULT)
    assert decide_again(workload, DEFAULT) == whole
    assert whole.digest != decide_again(workload, STOCK_POLICY).digest
    for number in (1, 2, 3, 9):
        parts = ledger_segments(workload, number)
        assert len(parts) == min(number, 4)
        merged = merge_statistics(decide_again(part, DEFAULT) for part in parts)
        assert msgspec.structs.replace(merged, digest=whole.digest) == whole


def test_the_summary_has_what_the_ledger_keeps(location: str) -> None:
    summary = open_ledger_workload(location).summary
    assert (summary.nodes, summary.decisions, summary.jobs) == (6, 4, 0)
    assert summary.capacity["cpu"] == 24_000
    assert summary.duration_ns == 3 * HOUR * 10**9
    last = asyncio.run(entries(location))[-1]
    assert [(each.reason, each.count, each.first) for each in summary.left_out] == [
        ("it named no victims, so its inputs were not kept", 1, f"entry {format_id(last.id)}")
    ]


def test_the_report_has_no_measures_of_simulations(location: str) -> None:
    workload = open_ledger_workload(location)
    units = tuple(
        UnitResult(each.name, 0, 0, decide_again(workload, each))
        for each in (STOCK_POLICY, DEFAULT)
    )
    results = BacktestResults(workload.summary, (STOCK, DEFAULT.name), 1, 1, units)
    comparison = compare(results)
    assert [each.measure.title for each in comparison.measures] == [
        "disruptions", "CPU-hours lost", "preemptions", "PDB violations", "refused attempts"
    ]  # fmt: skip
    page = render_html(comparison)
    assert "finished" not in page
    assert "utilization" not in page
    assert "jobs" not in page


async def test_the_command_compares_policies_on_a_ledger(tmp_path: Path) -> None:
    location = await record(tmp_path / "ledger.db")
    rules = policy(guards={"protect": [{"name": "red", "namespaces": ["red"]}]}).source
    assert rules is not None
    (tmp_path / "other.yaml").write_text(rules.text or "")
    policies = ("--policy", "stock", "--policy", str(tmp_path / "other.yaml"))
    done = await reprieve("backtest", location, *policies, "--segments", "3", "-o", "json")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert (report["seeds"], report["segments"], report["missing"]) == (1, 3, 0)
    preemptions = {m["measure"]["name"]: m["policies"] for m in report["measures"]}["preemptions"]
    assert [each["value"]["mean"] for each in preemptions] == [0, 4]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ((), "ledger.db: file is not a database"),
        (("--nodes", "nodes.csv"), "--nodes: a ledger has its own nodes"),
    ],
)
async def test_the_command_has_one_line_for_a_file_that_it_cannot_use(
    options: tuple[str, ...], error: str, tmp_path: Path
) -> None:
    path = tmp_path / "ledger.db"
    path.write_text("no ledger")
    done = await reprieve("backtest", str(path), *options)
    assert (done.code, done.out) == (2, "")
    [line] = done.err.splitlines()
    assert line.endswith(error)


def lines(error: pytest.ExceptionInfo[LedgerError]) -> Iterator[str]:
    return iter(str(error.value).splitlines())


@pytest.mark.parametrize(
    ("rule", "missing"),
    [
        (
            {"lostWork": {"weights": {"cpu": 1}, "checkpoint": CHECKPOINT},
             "candidates": ["least lost work"]},
            f"annotation {CHECKPOINT}",
        ),
        ({"guards": {"limits": [{"victims": 5, "per": "1h", "by": "namespace"}]}},
         "earlier preemptions"),
        ({"guards": {"waitForAutoscaler": "2m"}}, "objects of kind Event"),
    ],
)  # fmt: skip
def test_a_policy_that_reads_more_than_is_kept_is_an_error(
    rule: dict[str, object], missing: str, location: str
) -> None:
    with pytest.raises(LedgerError) as error:
        decide_again(open_ledger_workload(location), policy(**rule))
    [line] = lines(error)
    assert line.startswith(f"{location}: entry 0")
    assert line.endswith(
        f"policy other reads {missing}, which the ledger does not keep; expected what the policy "
        "of the ledger reads, or less"
    )


def test_a_ledger_without_inputs_is_an_error(tmp_path: Path) -> None:
    location = asyncio.run(record(tmp_path / "ledger.db", snapshots=False))
    with pytest.raises(
        LedgerError, match="no decision has inputs; expected a ledger that"
    ) as error:
        open_ledger_workload(location)
    assert len([*lines(error)]) == 1


def tear(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:3000])


def remove_blobs(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("DELETE FROM blob")
        database.commit()


def write_other(path: Path) -> None:
    path.write_text("apiVersion: v1\n")


def delete(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (tear, "malformed|not a ledger|disk image"),
        (remove_blobs, "entry 0[0-9a-f]{15}: blob [0-9a-f]{32}: not found"),
        (write_other, "file is not a database"),
        (delete, "no such file"),
    ],
)
def test_a_file_that_is_no_whole_ledger_is_an_error(
    damage: object, expected: str, location: str
) -> None:
    assert callable(damage)
    damage(Path(location))
    with pytest.raises(LedgerError, match=expected) as error:
        open_ledger_workload(location)
    [line] = lines(error)
    assert line.startswith(location)
