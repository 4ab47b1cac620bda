"""The live cluster: the snapshot is the result of all events, in any order."""

from __future__ import annotations

from contextlib import suppress

from structlog.testing import capture_logs

from extender.cluster.assumed_preemptions import AssumedPreemption
from extender.kube.decoders.cluster_objects import Namespace
from policies.kubernetes.default_selector import REPLICA_SET, SERVICE
from policies.kubernetes.snapshot import AffinityTerm, NodeState
from policies.preemption.time_limit import DeadlineExceededError
from tests.builders import budget, node, pod, workload
from tests.extender.conftest import HandClock, broken, live_cluster

TERM = AffinityTerm(None, frozenset(), None, "zone")


def names(state: NodeState) -> list[str]:
    return sorted(each.name for each in state.pods)


class TestSnapshot:
    def test_is_the_same_object_without_changes(self) -> None:
        cluster = live_cluster(node("node-1"), pod("web", on="node-1"))
        assert cluster.snapshot() is cluster.snapshot()

    def test_is_the_same_object_after_an_equal_event(self) -> None:
        things = node("node-1"), pod("web", on="node-1"), budget()
        cluster = live_cluster(*things, broken("broken", "node-1"))
        before = cluster.snapshot()
        cluster.nodes.replace([node("node-1")])
        cluster.pods.replace([pod("web", on="node-1"), broken("broken", "node-1")])
        cluster.budgets.upsert(budget())
        assert cluster.snapshot() is before

    def test_has_a_new_generation_after_every_change(self) -> None:
        cluster = live_cluster(node("node-1"))
        before = cluster.snapshot()
        cluster.pods.upsert(pod("web", on="node-1"))
        assert cluster.snapshot().generation == before.generation + 1

    def test_does_not_change_afterwards(self) -> None:
        cluster = live_cluster(node("node-1"), pod("web", on="node-1"))
        before = cluster.snapshot()
        cluster.pods.remove(pod("web", on="node-1"))
        assert names(before.nodes["node-1"]) == ["web"]
        assert names(cluster.snapshot().nodes["node-1"]) == []

    def test_shares_all_unchanged_parts(self) -> None:
        cluster = live_cluster(node("node-1"), node("node-2"), budget())
        cluster.namespaces.upsert(Namespace("default", {}))
        before = cluster.snapshot()
        cluster.pods.upsert(pod("web", on="node-1"))
        after = cluster.snapshot()
        assert after.nodes["node-2"] is before.nodes["node-2"]
        assert after.nodes["node-1"] is not before.nodes["node-1"]
        assert after.budgets is before.budgets
        assert after.namespaces is before.namespaces

    def test_is_the_same_after_any_number_of_changes(self) -> None:
        nodes = [f"node-{number}" for number in range(200)]
        cluster = live_cluster(*map(node, nodes))
        snapshots = [cluster.snapshot()]
        for name in nodes:
            cluster.pods.upsert(pod(f"on-{name}", on=name))
            snapshots.append(cluster.snapshot())
        assert [sum(map(len, map(names, each.nodes.values()))) for each in snapshots] == list(
            range(201)
        )
        assert list(snapshots[-1].nodes) == list(snapshots[0].nodes)


class TestPods:
    def test_wait_for_their_node_to_become_known(self) -> None:
        cluster = live_cluster(pod("web", on="node-1"))
        assert cluster.snapshot().nodes == {}
        cluster.nodes.upsert(node("node-1"))
        assert names(cluster.snapshot().nodes["node-1"]) == ["web"]

    def test_without_a_node_are_pending_by_uid(self) -> None:
        early, late = pod("early", nominated_node="node-1"), pod("late")
        cluster = live_cluster(early, late, pod("web", on="node-1"), pod("done", finished=True))
        assert cluster.pods.pending == {"early": early, "late": late}
        cluster.pods.upsert(pod("early", on="node-1"))
        cluster.pods.remove(late)
        assert cluster.pods.pending == {}

    def test_move_from_nominated_to_bound(self) -> None:
        cluster = live_cluster(node("node-1"), node("node-2"), pod("web", nominated_node="node-1"))
        assert [p.name for p in cluster.snapshot().nodes["node-1"].nominated] == ["web"]
        cluster.pods.upsert(pod("web", on="node-2", nominated_node="node-1"))
        after = cluster.snapshot().nodes
        assert after["node-1"].nominated == ()
        assert names(after["node-2"]) == ["web"]

    def test_that_change_keep_their_position(self) -> None:
        cluster = live_cluster(pod("first"), pod("second"))
        cluster.pods.upsert(pod("first", on="node-1"))
        cluster.pods.upsert(broken("first", "node-1"))
        cluster.pods.upsert(pod("first"))
        assert list(cluster.pods.by_key) == ["default/first", "default/second"]
        cluster.pods.remove(pod("first"))
        assert list(cluster.pods.by_key) == ["default/second"]

    def test_finished_pods_use_no_resources(self) -> None:
        cluster = live_cluster(node("node-1"), pod("web", on="node-1"))
        cluster.pods.upsert(pod("web", on="node-1", finished=True))
        assert names(cluster.snapshot().nodes["node-1"]) == []

    def test_that_repel_others_count_only_on_known_nodes(self) -> None:
        cluster = live_cluster(pod("shy", on="node-1", anti_affinity=(TERM,)))
        assert cluster.snapshot().pods_with_anti_affinity == ()
        cluster.nodes.upsert(node("node-1"))
        assert [p.name for p in cluster.snapshot().pods_with_anti_affinity] == ["shy"]


class TestUnreadableObjects:
    def test_an_unreadable_pod_marks_its_node_until_it_is_readable_or_deleted(self) -> None:
        cluster = live_cluster(node("node-1"), broken("web", "node-1"), broken("api", "node-1"))
        assert cluster.snapshot().nodes["node-1"].unreadable == ("default/api", "default/web")
        cluster.pods.upsert(pod("web", on="node-1"))
        cluster.pods.remove(broken("api", "node-1"))
        state = cluster.snapshot().nodes["node-1"]
        assert (state.unreadable, names(state)) == ((), ["web"])

    def test_an_unreadable_pod_is_no_victim(self) -> None:
        cluster = live_cluster(node("node-1"), pod("web", on="node-1"))
        cluster.pods.upsert(broken("web", "node-1"))
        state = cluster.snapshot().nodes["node-1"]
        assert (state.unreadable, names(state)) == (("default/web",), [])

    def test_a_pod_without_a_node_uses_no_resources(self) -> None:
        cluster = live_cluster(node("node-1"), broken("web"))
        assert cluster.snapshot().nodes["node-1"].unreadable == ()

    def test_an_unreadable_node_is_left_out(self) -> None:
        cluster = live_cluster(node("node-1"), node("node-2"))
        cluster.nodes.upsert(broken("node-1", kind="Node"))
        assert set(cluster.snapshot().nodes) == {"node-2"}

    def test_each_is_logged_once(self) -> None:
        with capture_logs() as logs:
            cluster = live_cluster(broken("web", "node-1"), broken("node-1", kind="Node"))
            cluster.pods.upsert(broken("web", "node-1"))
            cluster.pods.replace([broken("web", "node-1")])
            cluster.nodes.replace([broken("node-1", kind="Node")])
        assert [(log["kind"], log["key"], log["problem"]) for log in logs] == [
            ("Pod", "default/web", "why"),
            ("Node", "node-1", "why"),
        ]

    def test_a_new_error_is_logged_again_and_so_is_a_new_object(self) -> None:
        with capture_logs() as logs:
            cluster = live_cluster(broken("web", problem="first"))
            cluster.pods.upsert(broken("web", problem="second"))
            cluster.pods.remove(broken("web"))
            cluster.pods.upsert(broken("web", problem="second"))
            cluster.nodes.upsert(broken("node-1", kind="Node"))
            cluster.nodes.replace([])
            cluster.nodes.upsert(broken("node-1", kind="Node"))
        assert [log["problem"] for log in logs] == ["first", "second", "second", "why", "why"]


class TestAssumedPreemptions:
    def test_hold_until_their_deadline(self) -> None:
        clock = HandClock()
        cluster = live_cluster(node("node-1"), pod("web", on="node-1"), clock=clock)
        before = cluster.snapshot()
        cluster.assume(AssumedPreemption(pod("vip"), "node-1", frozenset({"web"}), deadline=30.0))
        [web] = cluster.snapshot().nodes["node-1"].pods
        assert web.assumed_victim
        assert cluster.assumed_count == 1
        clock.seconds = 30.0
        assert cluster.snapshot().nodes == before.nodes
        assert cluster.assumed_count == 0

    def test_end_before_a_new_decision_about_their_pod(self) -> None:
        cluster = live_cluster(node("node-1"), pod("web", on="node-1"))
        before = cluster.snapshot()
        cluster.assume(AssumedPreemption(pod("vip"), "node-1", frozenset({"web"}), deadline=30.0))
        with cluster.deciding_anew("vip"):
            assert cluster.snapshot().nodes == before.nodes
        assert cluster.assumed_count == 0

    def test_hold_again_if_the_new_decision_fails(self) -> None:
        cluster = live_cluster(node("node-1"), pod("web", on="node-1"))
        cluster.assume(AssumedPreemption(pod("vip"), "node-1", frozenset({"web"}), deadline=30.0))
        assumed = cluster.snapshot()
        with suppress(DeadlineExceededError), cluster.deciding_anew("vip"):
            cluster.snapshot()
            raise DeadlineExceededError
        assert cluster.snapshot().nodes == assumed.nodes

    def test_end_when_another_pod_has_taken_the_victims_name(self) -> None:
        cluster = live_cluster(node("node-1"), pod("web", on="node-1", uid="old"))
        cluster.assume(
            AssumedPreemption(pod("vip"), "node-1", frozenset({"old"}), 30.0, nominates=False)
        )
        cluster.pods.replace([pod("web", on="node-1", uid="new")])
        assert cluster.assumed_count == 0


class TestWorkloads:
    def test_are_held_by_namespace(self) -> None:
        cluster = live_cluster()
        web = workload(SERVICE, "web", {"app": "web"})
        set_of_it = workload(REPLICA_SET, "web", {"app": "web"})
        blue = workload(SERVICE, "web", {"app": "web"}, namespace="blue")
        for each in (web, set_of_it, blue):
            cluster.workloads[each.kind].upsert(each)
        assert cluster.snapshot().workloads == {"default": (web, set_of_it), "blue": (blue,)}

    def test_change_and_go(self) -> None:
        cluster = live_cluster()
        services = cluster.workloads[SERVICE]
        other = workload(SERVICE, "web", {"app": "db"})
        services.upsert(workload(SERVICE, "web", {"app": "web"}))
        services.upsert(other)
        assert cluster.snapshot().workloads == {"default": (other,)}
        services.remove(other)
        assert cluster.snapshot().workloads == {}

    def test_are_shared_with_the_last_snapshot_while_they_stay(self) -> None:
        cluster = live_cluster(node("node-1"))
        cluster.workloads[SERVICE].upsert(workload(SERVICE, "web", {"app": "web"}))
        before = cluster.snapshot()
        cluster.pods.upsert(pod("web", on="node-1"))
        assert cluster.snapshot().workloads is before.workloads
        cluster.workloads[SERVICE].upsert(workload(SERVICE, "db", {}, namespace="blue"))
        after = cluster.snapshot()
        assert after.workloads["default"] is before.workloads["default"]
