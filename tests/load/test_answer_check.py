"""Right and wrong answers are recognized, whatever the state of their decision."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from extender.cluster.scheduler_cache import SchedulerCache
from extender.kube.decoders.pods import decode_pod
from extender.protocol.request_size import at_once
from extender.server.service import Service, VerbCall
from policies import DEFAULT_RULES, Snapshot
from policies.preemption.vectorized import VectorizedEngine
from tests.bench.clusters import cluster, encoded, snapshot_of
from tests.extender.conftest import HandClock, InformerState
from tests.load import bodies
from tests.load.answer_check import Checked, Lags, check, difference
from tests.load.history import History
from tests.load.mixes import KIND, KINDS
from tests.load.pod_changes import writes
from tests.load.records import Change, Decision, Event, Sample

NODES = 100
ASKED = ("filter-5000", "preempt-100")
BODIES = 3
"""The calls that a small cluster can answer."""


_EVENTS = {"POST": "ADDED", "PATCH": "MODIFIED", "DELETE": "DELETED"}


@cache
def first() -> Snapshot:
    return snapshot_of(cluster(NODES))


@cache
def sent() -> dict[str, list[bytes]]:
    return {name: bodies.build(replace(KIND[name]), first())[:BODIES] for name in ASKED}


@dataclass
class RunResults:
    """The results of a run, built without a server."""

    changes: list[Change] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    def check(self) -> Checked:
        return check(self.samples, self.decisions, self.changes, first(), sent(), DEFAULT_RULES)


def changes(count: int) -> list[Change]:
    """Return events as a server makes them of the writes; version 2 is the first."""
    pods: dict[str, dict[str, Any]] = {}
    made = []
    for version, write in enumerate(islice(writes(NODES), count), 2):
        body = write.body or {}
        name = write.path.strip("/").split("?")[0].removesuffix("/status")
        given = body.get("metadata", {})
        if write.method == "POST":
            name = given["name"]
            given = {**given, "namespace": "default", "uid": f"uid-{name}"}
        before = pods.get(name, {})
        metadata = {**before.get("metadata", {}), **given, "resourceVersion": str(version)}
        pods[name] = {**before, **body, "metadata": metadata}
        event = Event(_EVENTS[write.method], msgspec.Raw(encoded(pods[name])))
        made.append(Change(version / 100, event))
    return made


def live(feed: InformerState) -> tuple[SchedulerCache, Service]:
    engine = VectorizedEngine(DEFAULT_RULES)
    following = SchedulerCache(lambda: 0.0, engine.follow)
    for state in first().nodes.values():
        following.nodes.upsert(state.node)
        for pod in state.pods:
            following.pods.upsert(pod)
    for each in (pod for kind in KINDS for pod in bodies.preemptors(kind)):
        following.pods.upsert(decode_pod(encoded(each), DEFAULT_RULES.release))
    for budget in first().budgets:
        following.budgets.upsert(budget)
    return following, Service(following, engine, HandClock(), informers={"pods": feed})


def follow(following: SchedulerCache, feed: InformerState, change: Change) -> None:
    pod = decode_pod(bytes(change.event.object), DEFAULT_RULES.release)
    if change.event.type == "DELETED":
        following.pods.remove(pod)
    else:
        following.pods.upsert(pod)
    feed.resource_version = str(change.version)


@cache
def full_run() -> RunResults:
    """Ask an extender now and then while pods change."""
    results, feed = RunResults(changes(400)), InformerState()
    following, service = live(feed)
    calls = [(name, number) for number in range(BODIES) for name in ASKED] * 2
    for index, change in enumerate(results.changes):
        follow(following, feed, change)
        if index % 30 == 29 and calls:
            name, number = calls.pop()
            ask(results, service, f"r-{index}", name, number)
    return results


def ask(results: RunResults, service: Service, request_id: str, name: str, number: int) -> None:
    verb, body = KIND[name].verb, sent()[name][number]
    with capture_logs() as logs:
        answered = at_once(service.answer(VerbCall(verb, body, 0.0, request_id)))
        answered.record()
    [line] = [each for each in logs if each["event"] == verb]
    results.decisions.append(msgspec.convert({**line, "request_id": request_id}, Decision))
    answer = answered.body.decode()
    results.samples.append(Sample("steady", name, number, request_id, 1.0, 1.1, answer))


def altered(sample: Sample, answer: object) -> RunResults:
    """Return the same run with another answer kept, and that alone."""
    return replace(full_run(), samples=[msgspec.structs.replace(sample, answer=json.dumps(answer))])


def of_kind(name: str) -> list[Sample]:
    return [each for each in full_run().samples if each.kind == name]


@pytest.mark.slow
def test_the_answers_of_the_fast_engine_are_right_in_every_state() -> None:
    checked = full_run().check()
    assert checked.wrong == []
    assert checked.right == {"filter-5000": 6, "preempt-100": 6}
    assert sum(bool(each.victims) for each in full_run().decisions) >= 5


def test_the_states_differ() -> None:
    by_body: dict[int, set[str]] = {}
    for sample in of_kind("filter-5000"):
        by_body.setdefault(sample.body, set()).add(sample.answer)
    assert all(len(answers) > 1 for answers in by_body.values())


def test_a_node_too_many_or_too_few_is_found() -> None:
    sample = of_kind("filter-5000")[-1]
    answer = json.loads(sample.answer)
    dropped = answer["NodeNames"].pop()
    [wrong] = altered(sample, answer).check().wrong
    assert wrong.startswith(f"{sample.request_id} (filter-5000, version ")
    assert wrong.endswith(f"NodeNames: [] too many, ['{dropped}'] missing, or in another order")


def test_another_reason_is_found() -> None:
    sample = next(each for each in of_kind("filter-5000") if json.loads(each.answer)["FailedNodes"])
    answer = json.loads(sample.answer)
    node = next(iter(answer["FailedNodes"]))
    answer["FailedNodes"][node] = "bad weather"
    [wrong] = altered(sample, answer).check().wrong
    assert f"FailedNodes: {node}: 'bad weather' in place of " in wrong


@pytest.mark.parametrize("fault", ["another node", "a victim less", "budgets", "no node"])
def test_another_choice_is_found(fault: str) -> None:
    sample = of_kind("preempt-100")[-1]
    answer = json.loads(sample.answer)
    [(node, entry)] = answer["NodeNameToMetaVictims"].items()
    match fault:
        case "another node":
            answer["NodeNameToMetaVictims"] = {"node-00001": entry}
        case "a victim less":
            entry["Pods"].pop()
        case "budgets":
            entry["NumPDBViolations"] += 1
        case _:
            del answer["NodeNameToMetaVictims"][node]
    [wrong] = altered(sample, answer).check().wrong
    assert "NodeNameToMetaVictims" in wrong


def test_an_answer_of_another_state_is_found() -> None:
    early, *_, late = (each for each in of_kind("filter-5000") if each.body == 0)
    assert len(altered(late, json.loads(early.answer)).check().wrong) == 1


def test_an_answer_that_ignores_assumed_preemptions_is_found() -> None:
    forgetful = [msgspec.structs.replace(each, victims=()) for each in full_run().decisions]
    assert replace(full_run(), decisions=forgetful).check().wrong


def test_an_answer_that_is_not_in_the_log_is_wrong() -> None:
    results = replace(
        full_run(), samples=full_run().samples[-1:], decisions=full_run().decisions[:-1]
    )
    last = full_run().decisions[-1].request_id
    assert results.check().wrong == [f"{last}: not in the log"]


def test_pods_that_go_back_in_time_are_wrong() -> None:
    *earlier, last = full_run().decisions
    back = msgspec.structs.replace(last, pods_version="3")
    results = replace(full_run(), samples=full_run().samples[-1:], decisions=[*earlier, back])
    assert results.check().wrong == [f"{last.request_id}: pods went back to version 3"]


NOTE = "7 nodes were not tried before the deadline"


def cut_short(choose: str) -> Checked:
    """Check the first preemption as one that was cut short and names another candidate."""
    sample = of_kind("preempt-100")[0]
    offered = json.loads(sent()["preempt-100"][sample.body])["NodeNameToMetaVictims"]
    chosen = next(iter(json.loads(sample.answer)["NodeNameToMetaVictims"]))
    cold = [node for node in offered if node != chosen and int(node[-5:]) % 10]
    entry = offered[cold[0]]
    answer = {"NodeNameToMetaVictims": {cold[0] if choose == "other" else cold[1]: entry}}
    decisions = [
        msgspec.structs.replace(each, notes=(NOTE,))
        if each.request_id == sample.request_id
        else each
        for each in full_run().decisions
    ]
    return replace(altered(sample, answer), decisions=decisions).check()


def test_a_search_that_was_cut_short_may_name_a_worse_candidate() -> None:
    checked = cut_short("other")
    assert (checked.wrong, checked.cut_short) == ([], 1)


def test_a_search_that_was_cut_short_may_not_name_a_node_that_is_no_candidate() -> None:
    [wrong] = cut_short("wrong").wrong
    assert wrong.endswith("is no candidate with these victims")


def test_the_history_equals_the_extenders_cache() -> None:
    results, feed = full_run(), InformerState()
    following, _ = live(feed)
    history = History(first(), results.changes, DEFAULT_RULES.release)
    for change in results.changes:
        follow(following, feed, change)
        if change.version % 50 == 0:
            history.advance(change.version)
            assert history.snapshot().nodes == following.snapshot().nodes


def test_history_does_not_go_back() -> None:
    history = History(first(), [], DEFAULT_RULES.release)
    history.advance(5)
    with pytest.raises(ValueError, match="version 4 comes after 5"):
        history.advance(4)


@pytest.mark.parametrize(
    ("version", "at", "seconds"),
    [(1, 0.05, 0.03), (2, 0.05, 0.02), (6, 0.05, 0.0), (6, 0.0, 0.0), (4, 0.0, 0.0)],
)
def test_staleness_begins_when_another_replica_saw_the_change(
    version: int, at: float, seconds: float
) -> None:
    assert Lags(changes(5)).behind(version, at) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("given", "expected", "expected_line"),
    [
        ({"a": 1}, {"a": 1}, ""),
        ({"a": 1, "b": 2}, {"a": 1}, "b: 2 in place of None"),
        ({}, {"a": {"x": 1}}, "a: None in place of {'x': 1}"),
        ([], {}, "not an object: []"),
    ],
)
def test_a_difference_is_reported_in_one_line(
    given: object, expected: object, expected_line: str
) -> None:
    assert difference(given, expected) == expected_line
