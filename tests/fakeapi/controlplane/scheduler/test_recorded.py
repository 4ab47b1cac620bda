"""Recorded requests, decisions and messages of real kube-schedulers, reproduced.

The recordings are clusters and pods that were created there: 1.30.12 with an extender that returned
the offered victims, 1.36.0 and 1.37.0 with one that rejected every node. Each third cluster of
these is used here; tests/policies uses all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from extender.kube.rest.resources import PODS
from fakeapi import VirtualCluster
from tests.builders import Document
from tests.fakeapi.controlplane.scheduler.stages import (
    SchedulerStage,
    X,
    configured,
    passing,
    player,
    preempting,
)
from tests.policies.test_recorded import RECORDED
from tests.policies.test_recorded_offers import CLUSTERS

ALL_NODES = {"minCandidateNodesPercentage": 100, "minCandidateNodesAbsolute": 100}
PREEMPTION = [{"name": "DefaultPreemption", "args": ALL_NODES}]


def configuration(pods: Iterable[Document]) -> Document:
    """Build a configuration for the schedulers that pods name; all nodes are tried."""
    names = {each["spec"]["schedulerName"] for each in pods}
    profiles = [{"schedulerName": name, "pluginConfig": PREEMPTION} for name in sorted(names)]
    return configured({"filterVerb": ""}, profiles=profiles)


def offers(exchange: Any) -> dict[str, tuple[list[str], int]]:
    """Return the victims and PDB violations that an extender was offered, by node."""
    nodes = exchange.asked["NodeNameToMetaVictims"]
    return {node: _offer(each) for node, each in nodes.items()}


def _offer(victims: Mapping[str, Any]) -> tuple[list[str], int]:
    return [pod["UID"] for pod in victims["Pods"]], victims["NumPDBViolations"]


def versioned(document: Document) -> Document:
    """Return an object with its API version, which the recordings leave out."""
    budgets = document["kind"] == "PodDisruptionBudget"
    return {"apiVersion": "policy/v1" if budgets else "v1", **document}


def standing(documents: Iterable[Document]) -> set[str]:
    """Return the UIDs of the pods that are not terminating."""
    pods = (each["metadata"] for each in documents if each["kind"] == "Pod")
    return {each["uid"] for each in pods if "deletionTimestamp" not in each}


@pytest.mark.parametrize("name", RECORDED)
async def test_a_preemption_equals_the_recorded_one(name: str) -> None:
    """The choice among equal nodes is random."""
    recorded = RECORDED[name]
    made = VirtualCluster(
        run="scheduler",
        extenders={X: passing},
        scheduler=configuration([recorded["pod"]]),
        upstream=recorded["upstream"],
    )
    before = [*recorded["cluster"]["items"], recorded["pod"]]
    metadata = recorded["pod"]["metadata"]
    async with made as cluster:
        stage = SchedulerStage(cluster)
        stage.load(*before)
        await stage.passes(0.5)
        pod = await stage.get(PODS, metadata["name"], metadata["namespace"])
        after = cluster.export()
    asked = [
        {node: _offer(each) for node, each in request["NodeNameToMetaVictims"].items()}
        for request in recorded["preemptRequests"]
    ]
    assert [offers(each) for each in stage.trace] == asked
    nominated = pod["status"].get("nominatedNodeName")
    assert (nominated is None) == (recorded["result"]["nominatedNode"] is None)
    victims = set(asked[0][nominated][0]) if nominated else set()
    assert standing(before) - standing(after) == victims & standing(before)
    [condition] = [c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled"]
    assert condition["message"] == recorded["result"]["message"]


@pytest.mark.parametrize("name", list(CLUSTERS)[::3])
async def test_offers_and_messages_equal_the_recorded_ones(name: str) -> None:
    recorded = CLUSTERS[name]
    made = VirtualCluster(
        run="scheduler",
        extenders={X: player(preempt=preempting())},
        scheduler=configuration(each["pod"] for each in recorded["asked"]),
        upstream=recorded["upstream"],
    )
    async with made as cluster:
        stage = SchedulerStage(cluster)
        stage.load(*map(versioned, recorded["items"]))
        for asked in recorded["asked"]:
            metadata = asked["pod"]["metadata"]
            place = metadata["name"], metadata["namespace"]
            stage.trace.clear()
            stage.load(versioned({"kind": "Pod", **asked["pod"]}))
            await stage.passes(0.5)
            pod = await stage.get(PODS, *place)
            await cluster.client.delete(PODS.object(*place), grace_period_seconds=0)
            await stage.passes(0.5)
            if asked["bound"]:
                assert pod["spec"].get("nodeName")
                continue
            [condition] = [c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled"]
            assert condition["message"] == asked["message"]
            offered = {node for each in stage.trace for node in offers(each)}
            assert offered == set(asked["candidates"])
