"""Dry runs of real kube-schedulers 1.36.0 and 1.37.0.

Several pods were put to each cluster; an extender that answered with nothing kept it as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest

from extender.kube.decoders.pods import decode_pod
from policies import SchedulerRules, Snapshot, decide_filter, post_filter, release
from policies.preemption.decision import PreemptionDecision
from policies.preemption.filtering.status import FilterDecision
from tests.builders import encoded
from tests.builders.recorded import decode_cluster, read_recorded

CLUSTERS = read_recorded("offers.jsonl.gz")
SECOND_SENTENCE = re.compile(r" (no new claims to deallocate, )?preemption: .*")


def rules_of(recorded: Mapping[str, Any]) -> SchedulerRules:
    return SchedulerRules(release(recorded["upstream"]))


def snapshot_of(recorded: Mapping[str, Any]) -> Snapshot:
    return decode_cluster(recorded["items"], rules_of(recorded).release)


def filterings(name: str) -> Iterator[tuple[dict[str, Any], FilterDecision]]:
    """Return the recorded requests of a cluster, with the decisions of our filters."""
    recorded = CLUSTERS[name]
    rules, snapshot = rules_of(recorded), snapshot_of(recorded)
    for asked in recorded["asked"]:
        pod = decode_pod(encoded(asked["pod"]), rules.release)
        yield asked, decide_filter(pod, snapshot, rules)


def decisions(name: str) -> Iterator[tuple[dict[str, Any], PreemptionDecision]]:
    """Return the requests that fitted no node, with our decisions."""
    rules, snapshot = rules_of(CLUSTERS[name]), snapshot_of(CLUSTERS[name])
    for asked, filtering in filterings(name):
        if not asked["bound"]:
            yield asked, post_filter(filtering, snapshot, rules)


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_same_nodes_are_offered_with_the_same_victims(name: str) -> None:
    """Compare without the order of unstarted pods of one priority: upstream defines none."""
    pods = {
        pod.uid: pod for state in snapshot_of(CLUSTERS[name]).nodes.values() for pod in state.pods
    }

    def ranks(uids: Iterable[str]) -> list[tuple[int, int | None, str]]:
        victims = [pods[uid] for uid in uids]
        return [(p.priority, p.started_ns, p.uid if p.started_ns else "any") for p in victims]

    for asked, decision in decisions(name):
        assert {
            node: (ranks(pod.uid for pod in each.victims.pods), each.victims.violations)
            for node, each in decision.candidates.items()
        } == {
            node: (ranks(each["victims"]), each["violations"])
            for node, each in asked["candidates"].items()
        }


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_messages_are_the_same(name: str) -> None:
    """With candidates, the second sentence is about the extender's empty answer."""
    for asked, decision in decisions(name):
        if asked["candidates"]:
            ours, recorded = (
                SECOND_SENTENCE.sub("", text) for text in (decision.message, asked["message"])
            )
            assert ours == recorded
        else:
            assert decision.message == asked["message"]


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_pod_was_bound_only_where_it_fits(name: str) -> None:
    for asked, filtering in filterings(name):
        assert asked["bound"] in filtering.feasible if asked["bound"] else not filtering.feasible


def test_the_recording_holds_every_kind_of_outcome() -> None:
    """Assert that there are placements, violated budgets and pods without candidates."""
    asked = [each for recorded in CLUSTERS.values() for each in recorded["asked"]]
    found = [candidate for each in asked for candidate in each["candidates"].values()]
    assert any(each["bound"] for each in asked)
    assert any(not each["bound"] and not each["candidates"] for each in asked)
    assert any(candidate["violations"] for candidate in found)
    assert any(len(candidate["victims"]) > 1 for candidate in found)
