"""Scenarios: pods are created, admitted, scheduled and rescheduled until nothing changes.

The world around the rules is a few lines here: a workload that makes the pods it lacks, a scheduler
that looks at node affinity and taints, a controller that looks again when it said it would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from extender.explain.workloadspread import Operation, build_query, explain_spread
from extender.explain.workloadspread_files import WorkloadSpreadFiles
from extender.kube.decoders.cluster_objects import decode_node
from extender.kube.decoders.pods import decode_undefaulted_pod
from extender.kube.workloadspread.pod_injection import (
    adoption_patch,
    cost_patch,
    strategic_merge_pod,
)
from extender.kube.workloadspread.spread_pods import decode_spread_pod
from extender.kube.workloadspread.spreads import decode_workloadspread, encode_status
from policies import assemble, decide_filter
from policies.preemption.filtering import filters_named
from policies.preemption.policy import SchedulerRules
from policies.workloadspread.model import SECOND, SubsetStatus, WorkloadSpread
from policies.workloadspread.quirks import FIXED, UPSTREAM, Quirks
from tests.builders import encoded, rfc3339
from tests.builders.workloadspread import files, moment, rules

CASES: list[dict[str, Any]] = [
    case
    for case in msgspec.json.decode(
        (Path(__file__).parents[2] / "vectors" / "workloadspread.json").read_bytes()
    )["cases"]
    if case["table"] == "e2e"
]
PLACING = SchedulerRules(filters=filters_named(["NodeAffinity", "TaintToleration"]))
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
QUIET_NS = 60 * SECOND
"""What is due later than this is not waited for."""


class SimulatedCluster:
    """A WorkloadSpread, its workload, pods and nodes."""

    def __init__(self, case: Mapping[str, Any], quirks: Quirks) -> None:
        self.document = case["workloadspread"]
        self.workload = case["workload"]
        self.nodes = case["nodes"]
        self.pods: dict[str, dict[str, Any]] = {}
        self.now_ns = moment(case["now"])
        self.rules = rules(quirks)
        self.made = 0

    @property
    def files(self) -> WorkloadSpreadFiles:
        return files(self.document, self.workload, *self.nodes, *self.pods.values())

    @property
    def spread(self) -> WorkloadSpread:
        return decode_workloadspread(encoded(self.document)).spread

    def do(self, action: Mapping[str, Any]) -> None:
        if "create" in action:
            self.workload["spec"]["replicas"] = action["create"]["replicas"]
        strategy = action.get("scheduleStrategy")
        if strategy is not None:
            written = {"type": strategy} if isinstance(strategy, str) else strategy
            self.document["spec"]["scheduleStrategy"] = written
        if "waitSeconds" in action:
            self.now_ns += (action["waitSeconds"] + 1) * SECOND  # deadlines are strict
        self.settle()

    def settle(self) -> None:
        """Sync until nothing changes, now and within a minute."""
        while True:
            before = encoded([self.document, self.pods])
            self.make_pods()
            self.schedule()
            due_ns = self.reconcile()
            if encoded([self.document, self.pods]) == before:
                if due_ns is None or due_ns > QUIET_NS:
                    return
                self.now_ns += due_ns + SECOND

    def make_pods(self) -> None:
        while len(self.pods) < self.workload["spec"]["replicas"]:
            self.made += 1
            owner = {
                "apiVersion": self.workload["apiVersion"],
                "kind": self.workload["kind"],
                "name": self.workload["metadata"]["name"],
                "uid": self.workload["metadata"]["uid"],
                "controller": True,
            }
            name = f"pod-{self.made}"
            template = self.workload["spec"]["template"]
            metadata = {
                **template["metadata"],
                "name": name,
                "namespace": "default",
                "creationTimestamp": rfc3339(self.now_ns // SECOND),
                "ownerReferences": [owner],
            }
            pod = {**template, "kind": "Pod", "metadata": metadata, "status": {"phase": "Pending"}}
            self.pods[name] = self.admit(pod)

    def admit(self, pod: dict[str, Any]) -> dict[str, Any]:
        question = build_query(pod, "default", Operation.CREATE)
        explained = explain_spread(self.files, self.spread.key, self.now_ns, self.rules, question)
        assert explained.injection is not None
        status = explained.injection.admission.status
        if status is not None:
            self.document["status"] = encode_status(status)
        return dict(explained.injection.pod)

    def schedule(self) -> None:
        snapshot = assemble([decode_node(encoded(node)) for node in self.nodes])
        for pod in self.pods.values():
            if "nodeName" in pod["spec"]:
                continue
            fitting = decide_filter(
                decode_undefaulted_pod(encoded(pod), PLACING.release), snapshot, PLACING
            ).feasible
            if fitting:
                pod["spec"]["nodeName"] = fitting[0]
                pod["status"] = {"phase": "Running"}
            else:
                pod["status"] = {"phase": "Pending", "conditions": [UNSCHEDULABLE]}

    def reconcile(self) -> int | None:
        written = decode_workloadspread(encoded(self.document))
        outcome = explain_spread(self.files, self.spread.key, self.now_ns, self.rules).outcome
        assert not outcome.failure
        for name, subset in outcome.groups.adopted.items():
            self.pods[name] = strategic_merge_pod(
                self.pods[name], adoption_patch(written, subset.name)
            )
        for name, cost in outcome.cost_changes.items():
            self.pods[name] = strategic_merge_pod(self.pods[name], cost_patch(cost))
        if outcome.writes_status:
            self.document["status"] = encode_status(outcome.status)
        for deletion in outcome.pods_to_delete:
            del self.pods[deletion.pod.name]
        return outcome.requeue_after_ns

    def per_subset(self, *, running: bool = False) -> Counter[str]:
        found: Counter[str] = Counter()
        for pod in self.pods.values():
            value = decode_spread_pod(encoded(pod))
            if value.injection is not None and (value.phase == "Running" or not running):
                found[value.injection.subset] += 1
        return found

    def costs(self, subset: str) -> set[str | None]:
        pods = [decode_spread_pod(encoded(pod)) for pod in self.pods.values()]
        return {
            pod.deletion_cost
            for pod in pods
            if pod.injection is not None and pod.injection.subset == subset
        }

    def status(self, subset: str) -> SubsetStatus:
        return next(each for each in self.spread.status.subsets if each.name == subset)

    def check(self, step: Mapping[str, Any]) -> None:
        """Assert the expectations of a step."""
        pods, running = self.per_subset(), self.per_subset(running=True)
        for subset, count in step.get("podsPerSubset", {}).items():
            assert pods[subset] == count, subset
        for subset, count in step.get("runningPerSubset", {}).items():
            assert running[subset] == count, subset
        for subset, cost in step.get("deletionCostPerSubset", {}).items():
            assert self.costs(subset) == {cost}, subset
        for subset, missing in step.get("missingReplicas", {}).items():
            assert self.status(subset).missing == missing, subset
        for subset, status in step.get("schedulable", {}).items():
            assert [each.status for each in self.status(subset).conditions] == [status], subset
        if step.get("conditions") == []:
            assert not any(each.conditions for each in self.spread.status.subsets)


@pytest.mark.parametrize("quirks", [UPSTREAM, FIXED], ids=["upstream", "fixed"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_upstreams_scenarios_hold(case: dict[str, Any], quirks: Quirks) -> None:
    world = SimulatedCluster(msgspec.json.decode(encoded(case)), quirks)
    for step in case["expect"]["steps"]:
        world.do(step["do"])
        world.check(step)


def all_failing(quirks: Quirks) -> SimulatedCluster:
    """Return a world in which every pod has gone to a subset without nodes."""
    case = msgspec.json.decode(encoded(CASES[0]))
    case["workloadspread"]["spec"]["subsets"][0]["maxReplicas"] = 5
    adaptive = {"disableSimulationSchedule": True, "rescheduleCriticalSeconds": 5}
    world = SimulatedCluster(case, quirks)
    world.do({"create": {"replicas": 5}, "scheduleStrategy": "Fixed"})
    assert world.per_subset() == {"subset-a": 5}
    world.document["spec"]["scheduleStrategy"] = {"type": "Adaptive", "adaptive": adaptive}
    return world


def test_a_failed_subset_is_avoided_after_its_pods_are_deleted() -> None:
    world = all_failing(FIXED)
    world.settle()
    assert world.per_subset() == {"subset-b": 5}
    assert [each.status for each in world.status("subset-a").conditions] == ["False"]


def test_upstream_retries_the_subset_at_once() -> None:
    world = all_failing(UPSTREAM)
    world.now_ns += 10 * SECOND
    world.schedule()
    world.reconcile()
    assert not world.pods
    world.reconcile()
    world.make_pods()
    assert world.per_subset() == {"subset-a": 5}
