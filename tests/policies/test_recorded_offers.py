"""What a real kube-scheduler 1.37.0 found in its dry runs, this engine finds, too.

Several pods were put to each cluster; an extender that answered with nothing kept it as it was.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from extender.kube.objects import decode_budget, decode_namespace, decode_node
from extender.kube.pods import decode_pod
from policies import Rules, Snapshot, assemble, decide_filter, post_filter, release
from policies.decision import FilterDecision
from tests.builders import encoded

CLUSTERS: dict[str, dict[str, Any]] = {
    each["name"]: each
    for each in msgspec.json.Decoder().decode_lines(
        gzip.decompress((Path(__file__).parents[1] / "recorded/offers.jsonl.gz").read_bytes())
    )
}
RULES = Rules(release("1.37.0"))
PREEMPTION = " preemption: "


def snapshot_of(recorded: dict[str, Any]) -> Snapshot:
    return assemble(
        nodes=map(decode_node, objects(recorded, "Node")),
        pods=(decode_pod(raw, RULES.release) for raw in objects(recorded, "Pod")),
        budgets=map(decode_budget, objects(recorded, "PodDisruptionBudget")),
        namespaces={
            each.name: each.labels for each in map(decode_namespace, objects(recorded, "Namespace"))
        },
    )


def objects(recorded: dict[str, Any], kind: str) -> Iterator[bytes]:
    return (encoded(item) for item in recorded["items"] if item["kind"] == kind)


def filtered(asked: dict[str, Any], snapshot: Snapshot) -> FilterDecision:
    return decide_filter(decode_pod(encoded(asked["pod"]), RULES.release), snapshot, RULES)


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_same_nodes_are_offered_with_the_same_victims(name: str) -> None:
    snapshot = snapshot_of(CLUSTERS[name])
    for asked in refused(name):
        decision = post_filter(filtered(asked, snapshot), snapshot, RULES)
        assert {
            node: {
                "victims": [pod.uid for pod in candidate.victims.pods],
                "violations": candidate.victims.violations,
            }
            for node, candidate in decision.candidates.items()
        } == asked["candidates"]


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_same_is_said_of_it(name: str) -> None:
    """With candidates, the second sentence tells what came of the extender's empty answer."""
    snapshot = snapshot_of(CLUSTERS[name])
    for asked in refused(name):
        message = post_filter(filtered(asked, snapshot), snapshot, RULES).message
        if asked["candidates"]:
            assert message.split(PREEMPTION)[0] == asked["message"].split(PREEMPTION)[0]
        else:
            assert message == asked["message"]


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_pod_was_bound_only_where_it_fits(name: str) -> None:
    snapshot = snapshot_of(CLUSTERS[name])
    for asked in CLUSTERS[name]["asked"]:
        feasible = filtered(asked, snapshot).feasible
        assert asked["bound"] in feasible if asked["bound"] else not feasible


def refused(name: str) -> list[dict[str, Any]]:
    """Give what was asked about pods that fitted nowhere."""
    return [asked for asked in CLUSTERS[name]["asked"] if not asked["bound"]]


def test_the_recording_holds_every_kind_of_outcome() -> None:
    """Guard the data: placements, candidates with broken budgets, and hopeless pods."""
    asked = [each for recorded in CLUSTERS.values() for each in recorded["asked"]]
    found = [candidate for each in asked for candidate in each["candidates"].values()]
    assert any(each["bound"] for each in asked)
    assert any(not each["bound"] and not each["candidates"] for each in asked)
    assert any(candidate["violations"] for candidate in found)
    assert any(len(candidate["victims"]) > 1 for candidate in found)
