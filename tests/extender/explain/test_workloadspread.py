"""``explain spread``: the specified JSON document, the tables, and simulated pods."""

from __future__ import annotations

from typing import Any

import pytest

from extender.explain.cluster_files import load_cluster
from extender.explain.cluster_objects import read_objects
from extender.explain.workloadspread import (
    Operation,
    SpreadDocument,
    SpreadExplanation,
    build_query,
    explain_spread,
    spread_document,
)
from extender.explain.workloadspread_files import SpreadFileError
from extender.explain.workloadspread_tables import spread_table
from extender.kube.workloadspread.pod_injection import SchedulingSimulation
from extender.kube.workloadspread.spread_pods import MATCHED_WORKLOADSPREAD
from extender.terminal.output import TableRows
from policies.preemption.policy import DEFAULT_RULES
from policies.workloadspread.quirks import FIXED, UPSTREAM, Quirks
from tests.builders import encoded, node_json, owner, snapshot
from tests.builders import node as node_of
from tests.builders.workloadspread import (
    NOW_NS,
    Document,
    clone_set_json,
    files,
    pod_of,
    rules,
    spread_json,
)
from tests.commands import rendered

A = {"name": "a", "maxReplicas": 1}
B = {"name": "b"}
CLUSTER = (
    spread_json(A, B),
    clone_set_json(3),
    node_json("node-1"),
    pod_of("web-1", "a", spec={"nodeName": "node-1"}),
    pod_of("web-2", "a"),
    pod_of("web-3"),
)
ADAPTIVE = {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 20}}
STUCK = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
}


def explained(
    *documents: Document,
    pod: Document | None = None,
    operation: Operation = Operation.CREATE,
    quirks: Quirks = FIXED,
    trial: SchedulingSimulation | None = None,
) -> SpreadExplanation:
    question = None if pod is None else build_query(pod, "default", operation)
    tried = None if trial is None else lambda: trial
    return explain_spread(files(*documents), "default/web", NOW_NS, rules(quirks), question, tried)


def document(*documents: Document, **options: Any) -> SpreadDocument:
    return spread_document(explained(*documents, **options))


def shown(result: SpreadExplanation) -> list[str]:
    return [
        " ".join(line.split())
        for line in rendered(spread_table(result, TableRows.LIMITED), width=140).splitlines()
    ]


class TestDocuments:
    def test_subsets_costs_and_status(self) -> None:
        entries = [
            {"name": "a", "replicas": 2, "missingReplicas": 0},
            {"name": "b", "replicas": 0, "missingReplicas": -1},
        ]
        assert document(*CLUSTER) == {
            "subsets": {
                "web-1": "a",
                "web-2": "a",
                "web-3": "kruise.io/workloadspread-fake-subset-name",
            },
            "deletionCosts": {"web-1": 200, "web-2": -100, "web-3": -300},
            "status": {
                "subsetStatuses": entries,
                "versionedSubsetStatuses": {"versionIgnored": entries},
            },
            "delete": [],
            "requeueAfterSeconds": None,
            "events": [],
            "failure": "",
        }

    def test_pods_that_were_not_created(self) -> None:
        stuck = pod_of(
            "web-1", "a", metadata={"creationTimestamp": "2026-01-01T11:59:00Z"}, status=STUCK
        )
        late = pod_of(
            "web-2", "a", metadata={"creationTimestamp": "2026-01-01T11:59:50Z"}, status=STUCK
        )
        found = document(
            spread_json(A, B, scheduleStrategy=ADAPTIVE), clone_set_json(), stuck, late
        )
        assert found["delete"] == ["web-1"]
        assert found["requeueAfterSeconds"] == 10
        assert found["status"]["subsetStatuses"][0]["conditions"] == [
            {
                "type": "Schedulable",
                "status": "False",
                "lastTransitionTime": "2026-01-01T12:00:00Z",
                "reason": "PodUnschedulable",
                "message": "",
            }
        ]

    def test_the_printed_explanation(self) -> None:
        status = {
            "subsetStatuses": [
                {
                    "name": "a",
                    "replicas": 0,
                    "missingReplicas": 0,
                    "creatingPods": {"x": "2026-01-01T11:59:00Z"},
                }
            ]
        }
        event = {
            "type": "Warning",
            "reason": "CreatePodFailed",
            "message": "Pod default/x was expected to be created but it wasn't",
        }
        found = document({**spread_json(A, B), "status": status}, clone_set_json())
        assert found["events"] == [event]

    def test_a_failed_sync_is_explained(self) -> None:
        filtered = spread_json(A, B, targetFilter={"replicasPathList": ["spec.nope"]})
        found = document(filtered, clone_set_json())
        assert found["failure"] == 'CloneSet default/web: path "nope" not exists'
        assert (found["status"], found["subsets"]) == ({}, {})

    def test_a_missing_workload_spread(self) -> None:
        with pytest.raises(SpreadFileError, match="no WorkloadSpread 'default/web' in cluster"):
            explained(clone_set_json())

    def test_an_unreadable_workload_spread(self) -> None:
        with pytest.raises(SpreadFileError, match=r"^cluster\.json: WorkloadSpread default/web: "):
            explained(spread_json(subsets=5))


class TestPods:
    NEW = pod_of("web-4")

    def admitted(self, *documents: Document, **options: Any) -> Any:
        return document(*(documents or CLUSTER), **{"pod": self.NEW, **options})["admitted"]

    def test_a_pod_to_create(self) -> None:
        found = self.admitted(spread_json(A, B), clone_set_json())
        assert list(found) == [
            "allowed",
            "subset",
            "pod",
            "status",
            "workloadspread",
            "message",
            "passedOver",
            "deletionCost",
        ]
        assert (found["allowed"], found["subset"], found["workloadspread"]) == (True, "a", "web")
        annotations = found["pod"]["metadata"]["annotations"]
        assert annotations == {MATCHED_WORKLOADSPREAD: '{"name":"web","subset":"a"}'}
        entries = found["status"]["versionedSubsetStatuses"]["versionIgnored"]
        assert entries[0] == {
            "name": "a",
            "replicas": 0,
            "missingReplicas": 0,
            "creatingPods": {"web-4": "2026-01-01T12:00:00Z"},
        }

    def test_a_pod_without_a_name_is_given_the_same_id_each_time(self) -> None:
        nameless = pod_of("")
        found = [self.admitted(pod=nameless), self.admitted(pod=nameless)]
        assert found[0] == found[1]
        (uid,) = found[0]["status"]["versionedSubsetStatuses"]["versionIgnored"][0]["creatingPods"]
        assert uid in found[0]["pod"]["metadata"]["annotations"][MATCHED_WORKLOADSPREAD]

    def test_a_pod_without_a_namespace_is_of_the_spreads(self) -> None:
        nowhere = pod_of("web-4")
        del nowhere["metadata"]["namespace"]
        assert self.admitted(pod=nowhere)["subset"] == "a"
        assert self.admitted(pod=pod_of("web-4", metadata={"namespace": "other"})) == {
            "allowed": True,
            "subset": None,
            "pod": pod_of("web-4", metadata={"namespace": "other"}),
            "status": {},
            "workloadspread": None,
            "message": "",
            "passedOver": {},
            "deletionCost": None,
        }

    @pytest.mark.parametrize("operation", [Operation.DELETE, Operation.EVICT])
    def test_a_pod_to_delete(self, operation: Operation) -> None:
        going = pod_of("web-1", "a")
        found = self.admitted(pod=going, operation=operation)
        assert (found["allowed"], found["subset"], found["pod"]) == (True, "a", going)
        entry = found["status"]["versionedSubsetStatuses"]["versionIgnored"][0]
        assert entry["deletingPods"] == {"web-1": "2026-01-01T12:00:00Z"}

    def test_a_pod_without_its_owner_is_refused(self) -> None:
        hashed = owner("web-h1", "ReplicaSet", "apps/v1", controller=True)
        found = self.admitted(pod=pod_of("web-4", metadata={"ownerReferences": [hashed]}))
        assert (found["allowed"], found["subset"]) == (False, None)
        assert found["message"] == 'ReplicaSet "web-h1" not found'
        assert MATCHED_WORKLOADSPREAD not in str(found["pod"])

    def test_a_patch_that_cannot_be_merged_refuses(self) -> None:
        broken = {**A, "patch": {"spec": {"containers": [{"image": "x"}]}}}
        found = self.admitted(spread_json(broken, B), clone_set_json())
        assert not found["allowed"]
        assert "declared merge key: name" in found["message"]


class TestSimulation:
    """Zone a has no capacity, zone b has."""

    SPREAD = spread_json(
        {
            "name": "a",
            "maxReplicas": 5,
            "requiredNodeSelector": {
                "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]
            },
        },
        B,
        scheduleStrategy=ADAPTIVE,
    )
    NODES = (
        node_of("node-1", cpu="1", labels={"zone": "a"}),
        node_of("node-2", cpu="8", labels={"zone": "b"}),
    )

    def admitted(self, cpu: str, *, spread: Document = SPREAD, quirks: Quirks = FIXED) -> Any:
        main = {"name": "main", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}
        new = pod_of("web-9", spec={"containers": [main]}, status={"phase": "Pending"})
        trial = SchedulingSimulation(snapshot(*self.NODES), DEFAULT_RULES)
        found = document(spread, clone_set_json(), pod=new, quirks=quirks, trial=trial)
        return found["admitted"]

    def test_a_pod_that_fits_goes_to_the_first_subset(self) -> None:
        found = self.admitted("500m")
        assert (found["subset"], found["passedOver"]) == ("a", {})

    def test_a_pod_that_does_not_fit_skips_the_subset_and_sets_the_condition(self) -> None:
        found = self.admitted("2")
        assert found["subset"] == "b"
        message = found["passedOver"]["a"]
        assert message == (
            "The pod fits no node: 0/2 nodes are available: 1 Insufficient cpu, "
            "1 node(s) didn't match Pod's node affinity/selector."
        )
        first, _ = found["status"]["versionedSubsetStatuses"]["versionIgnored"]
        (condition,) = first["conditions"]
        assert (condition["status"], condition["reason"]) == ("Unknown", "SimulationFailed")
        assert condition["message"] == message

    @pytest.mark.parametrize(
        "strategy",
        [{"type": "Fixed"}, {"type": "Adaptive", "adaptive": {"disableSimulationSchedule": True}}],
    )
    def test_the_simulation_can_be_disabled(self, strategy: Document) -> None:
        spread = {**self.SPREAD, "spec": {**self.SPREAD["spec"], "scheduleStrategy": strategy}}
        assert self.admitted("2", spread=spread)["subset"] == "a"

    def test_upstream_has_no_simulation(self) -> None:
        assert self.admitted("2", quirks=UPSTREAM)["subset"] == "a"

    def test_without_nodes_nothing_is_simulated(self) -> None:
        trial = SchedulingSimulation(snapshot(), DEFAULT_RULES)
        found = document(self.SPREAD, clone_set_json(), pod=pod_of("web-9"), trial=trial)
        assert found["admitted"]["subset"] == "a"

    def test_the_condition_stays_until_the_subset_gets_a_pod(self) -> None:
        seen = {**self.SPREAD, "status": document(self.SPREAD, clone_set_json())["status"]}
        spread = {**self.SPREAD, "status": self.admitted("2", spread=seen)["status"]}
        kept = document(spread, clone_set_json(), pod_of("web-9", "b"))["status"]
        for entries in (kept["subsetStatuses"], kept["versionedSubsetStatuses"]["versionIgnored"]):
            assert entries[0]["conditions"][0]["reason"] == "SimulationFailed"
        later = self.admitted("500m", spread={**spread, "status": kept})["status"]
        assert "SimulationFailed" not in str(later)


class TestTables:
    def test_subsets_versions_costs_and_reasons(self) -> None:
        lines = shown(explained(*CLUSTER))
        assert lines[0] == "default/web spreads CloneSet web: 3 pods, 3 replicas wanted"
        assert "a 1 2, full; cost 1 at -100, 1 at 200 2, full" in lines
        assert "b none 0 0" in lines
        assert "in no subset 1; cost -300 1" in lines
        assert "web-3 versionIgnored -300 it is in no subset" in lines
        excess = "a has more than 1, and is deleted first by unscheduled"
        assert f"web-2 a versionIgnored -100 {excess}" in lines
        assert "web-1 a versionIgnored 200 a is number 1 of 2" in lines

    def test_an_old_version_is_emptied_from_the_first_subset(self) -> None:
        """Upstream takes the pods of a standalone ReplicaSet for an old version."""
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}
        mine = spread_json(A, B, targetRef=reference)
        target = {**clone_set_json(), "apiVersion": "apps/v1", "kind": "ReplicaSet"}
        lines = shown(explained(mine, target, pod_of("web-1", "b"), quirks=UPSTREAM))
        reason = "b is number 2 of 2; pods of an old version are deleted from the first subset on"
        assert f"web-1 b versionIgnored 200 {reason}" in lines

    def test_pods_to_delete_and_the_requeue_are_shown(self) -> None:
        stuck = [
            pod_of(name, "a", metadata={"creationTimestamp": f"2026-01-01T{at}Z"}, status=STUCK)
            for name, at in (("web-1", "11:59:00"), ("web-2", "11:59:50"))
        ]
        mine = spread_json(A, B, scheduleStrategy=ADAPTIVE)
        lines = shown(explained(mine, clone_set_json(), *stuck))
        assert "deleted, because they are unschedulable: web-1 (a)" in lines
        assert "requeued after 10 s" in lines

    def test_the_admission_of_a_pod_is_shown(self) -> None:
        lines = shown(explained(*CLUSTER, pod=pod_of("web-4")))
        assert lines[-1] == "the pod is allowed, in subset a of web, deletion cost 200"
        lines = shown(explained(*CLUSTER, pod=pod_of("x", metadata={"ownerReferences": []})))
        assert lines[-1] == "the pod is allowed: it belongs to no WorkloadSpread"


def test_a_simulation_reads_the_cluster_of_the_files(tmp_path: Any) -> None:
    path = tmp_path / "cluster.json"
    path.write_bytes(b"\n".join(map(encoded, CLUSTER)))
    assert set(load_cluster(read_objects([str(path)]), DEFAULT_RULES.release).snapshot.nodes) == {
        "node-1"
    }
