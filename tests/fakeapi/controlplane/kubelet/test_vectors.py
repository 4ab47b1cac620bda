"""Upstream's scenarios of node pressure on simulated nodes.

The scripts of a node and its pods produce the available memory and process IDs of each step. They
cannot produce reclaimed resources, growing disks and stale stats; tests/policies covers these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from extender.eviction.scenario import Scenario, decode_scenario
from extender.kube.decoders.manifests import Document
from fakeapi.apiserver.serving.virtual_clock import START_NS
from fakeapi.controlplane.kubelet.eviction_manager import run_round
from fakeapi.controlplane.kubelet.hollow_node import HollowNode, RunningPod
from fakeapi.controlplane.kubelet.ip_allocator import PodCIDRPool, PodIPAllocator
from fakeapi.controlplane.kubelet.pod_admission import AllocatedPod
from fakeapi.controlplane.kubelet.pod_lifecycle import PodLifecycle
from fakeapi.controlplane.kubelet.pod_status import WrittenConditions
from fakeapi.controlplane.kubelet.scripts import ContainerScript, NodeScript, PodScript, Run
from fakeapi.controlplane.kubelet.summary_stats import MAX_PROCESSES
from fakeapi.controlplane.kubelet.types import (
    KubeletNode,
    KubeletNodeStatus,
    KubeletObjectMeta,
    decode_pod,
)
from fakeapi.controlplane.kubelet.usage_curves import CurveStep
from policies.eviction.config import resolve
from policies.eviction.kubelet_releases import NEWEST_EVICTION
from policies.kubernetes.snapshot import NO_RESOURCES
from policies.kubernetes.snapshot import Node as Facts
from tests.builders import encoded

SECOND: Final = 10**9
MEMORY: Final = 2**40
FILE: Final = Path(__file__).parents[3] / "vectors" / "eviction.json"
Case = Mapping[str, Any]


def cases() -> Iterator[Case]:
    for case in msgspec.json.decode(FILE.read_bytes())["cases"]:
        if case["table"] == "managerScenario" and "stale" not in case["name"]:
            signals = {each["signal"] for each in case["config"]["thresholds"]}
            if signals and signals <= {"memory.available", "pid.available"}:
                yield case


def used_by(summary: Mapping[str, Any], uid: str) -> dict[str, int]:
    """Return a pod's usage in a step."""
    found: Case = next((p for p in summary.get("pods", ()) if p["podRef"]["uid"] == uid), {})
    return {
        "memory": found.get("memory", {}).get("workingSetBytes", 0),
        "processes": found.get("process_stats", {}).get("process_count", 0),
    }


def available(summary: Mapping[str, Any]) -> dict[str, int]:
    """Return what is available in a step."""
    node = summary["node"]
    pids = node.get("rlimit", {"maxpid": MAX_PROCESSES, "curproc": 0})
    memory = node.get("memory", {}).get("availableBytes", MEMORY // 2)
    return {"memory": memory, "processes": pids["maxpid"] - pids["curproc"]}


def steps(times: list[int], amounts: list[dict[str, int]]) -> dict[str, tuple[CurveStep, ...]]:
    return {
        name: tuple(CurveStep(at, each[name], 0) for at, each in zip(times, amounts, strict=True))
        for name in ("memory", "processes")
    }


def hollow_node(case: Case, scenario: Scenario, times: list[int]) -> HollowNode:
    """Return a node whose usage at the times of the steps is theirs."""
    summaries = [step["summary"] for step in case["steps"]]
    uids = [each["metadata"]["uid"] for each in case["pods"]]
    used = {uid: [used_by(summary, uid) for summary in summaries] for uid in uids}
    own = [
        {
            name: total
            - available(summary)[name]
            - sum(each[index][name] for each in used.values())
            for name, total in (("memory", MEMORY), ("processes", MAX_PROCESSES))
        }
        for index, summary in enumerate(summaries)
    ]
    assert all(amount >= 0 for each in own for amount in each.values())
    amounts: dict[str, str | int | float] = {"memory": MEMORY, "ephemeral-storage": "100Gi"}
    target = HollowNode(
        node=KubeletNode(
            KubeletObjectMeta(name="n"),
            status=KubeletNodeStatus(capacity=amounts, allocatable=amounts),
        ),
        model=Facts("n"),
        script=NodeScript(steps=steps(times, own), plan=resolve(scenario.config)),
        began=START_NS,
        address="",
        addresses=PodIPAllocator(PodCIDRPool(), ""),
    )
    for document in case["pods"]:
        pod = decode_pod(msgspec.Raw(encoded(document))).object
        uid = pod.metadata.uid
        script = PodScript(0, ContainerScript((Run(steps=steps(times, used[uid])),)))
        life = PodLifecycle.admit(pod, script, START_NS)
        life.sync_containers(START_NS)
        target.pods[uid] = RunningPod(
            life, WrittenConditions(), AllocatedPod(uid, NO_RESOURCES, frozenset())
        )
    return target


def test_there_are_scenarios_for_simulated_nodes() -> None:
    assert len(list(cases())) >= 6


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case["name"])
def test_a_simulated_node_decides_as_upstreams_kubelet(case: Case) -> None:
    times = [at * SECOND for at in accumulate(step["advanceSeconds"] for step in case["steps"])]
    scenario = decode_scenario(Document(encoded(case), case["name"]), NEWEST_EVICTION)
    target = hollow_node(case, scenario, times)
    for at, expected in zip(times, case["expect"]["steps"], strict=True):
        sync = run_round(target, scenario.pods, START_NS + at)
        target.eviction = sync.state
        gone = [(each.pod.name, each.grace_seconds) for each in sync.evictions]
        assert list(sync.state.pressures) == sorted(expected["nodeConditions"])
        assert gone == [(each["pod"], each["gracePeriodSeconds"]) for each in expected["evicted"]]
