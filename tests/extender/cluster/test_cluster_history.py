"""The live cluster under random events: a dictionary of the last states is the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec import structs
from structlog.testing import capture_logs

from extender.cluster.assumed_preemptions import AssumedPreemption
from extender.cluster.scheduler_cache import SchedulerCache
from extender.kube.decoders.typed_decoder import Unreadable
from policies.kubernetes.snapshot import (
    AffinityTerm,
    DisruptionBudget,
    Node,
    NodeState,
    Pod,
    Snapshot,
    assemble,
)
from policies.preemption.reference_engine import ReferenceEngine
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import budget, node, pod
from tests.extender.conftest import HandClock, broken

NODES = ("node-1", "node-2", "node-3")
TERM = AffinityTerm(None, frozenset(), None, "zone")

_pods = st.builds(
    lambda name, uid, on, **fields: pod(name, uid=f"{name}-{uid}", on=on, **fields),
    name=st.sampled_from(["a", "b", "c", "d"]),
    uid=st.integers(1, 2),
    on=st.sampled_from([None, *NODES]),
    nominated_node=st.sampled_from([None, *NODES]),
    cpu=st.sampled_from(["0", "1", "2"]),
    terminating=st.booleans(),
    preempted=st.booleans(),
    finished=st.sampled_from([False, False, False, True]),
    ports=st.sampled_from([(), (80,)]),
    anti_affinity=st.sampled_from([(), (TERM,)]),
)
_broken_pods = st.builds(
    broken, st.sampled_from(["a", "b", "c", "d"]), st.sampled_from([None, *NODES])
)
_any_pods = st.one_of(_pods, _pods, _broken_pods)
_nodes = st.builds(node, st.sampled_from(NODES), cpu=st.sampled_from(["1", "2"]))
_broken_nodes = st.builds(broken, st.sampled_from(NODES), kind=st.just("Node"))
_any_nodes = st.one_of(_nodes, _nodes, _broken_nodes)
_budgets = st.builds(budget, st.sampled_from(["x", "y"]), allowed=st.integers(0, 1))
_preemptors = st.sampled_from(["a", "b", "c"]).map(lambda name: pod(name, uid=f"{name}-1"))
_assumptions = st.builds(
    AssumedPreemption,
    _preemptors,
    st.sampled_from(NODES),
    st.frozensets(st.sampled_from(["a-1", "b-1", "c-1", "c-2", "d-1"]), min_size=1, max_size=2),
    deadline=st.just(0.0),
)


def by_key(pods: tuple[Pod, ...]) -> Mapping[str, Pod]:
    return {each.key: each for each in pods}


class ClusterMachine(RuleBasedStateMachine):
    """Send the same random events to a live cluster and to a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.warnings = capture_logs()
        self.warnings.__enter__()
        self.clock = HandClock()
        self.engine = VectorizedEngine()
        self.cluster = SchedulerCache(self.clock.monotonic, self.engine.follow)
        self.pods: dict[str, Pod | Unreadable] = {}
        self.nodes: dict[str, Node] = {}
        self.budgets: dict[str, DisruptionBudget] = {}
        self.assumed: dict[str, AssumedPreemption] = {}
        self.answers = 0
        self.before = self.cluster.snapshot()
        self.before_by_key = self._by_key()

    def teardown(self) -> None:
        self.warnings.__exit__(None, None, None)

    # Events

    @rule(item=_any_pods)
    def upsert_pod(self, item: Pod | Unreadable) -> None:
        self.cluster.pods.upsert(item)
        self._shown(item)

    @rule(item=_any_pods)
    def remove_pod(self, item: Pod | Unreadable) -> None:
        self.cluster.pods.remove(item)
        self._gone(item.key)

    @rule(items=st.lists(_any_pods, max_size=4, unique_by=lambda item: item.key))
    def replace_pods(self, items: list[Pod | Unreadable]) -> None:
        self.cluster.pods.replace(items)
        for key in set(self.pods) - {item.key for item in items}:
            self._gone(key)
        for item in items:
            self._shown(item)

    @rule(item=_any_nodes)
    def upsert_node(self, item: Node | Unreadable) -> None:
        self.cluster.nodes.upsert(item)
        self._node(item)

    @rule(item=_any_nodes)
    def remove_node(self, item: Node | Unreadable) -> None:
        self.cluster.nodes.remove(item)
        self.nodes.pop(item.name, None)

    @rule(items=st.lists(_any_nodes, max_size=3, unique_by=lambda item: item.name))
    def replace_nodes(self, items: list[Node | Unreadable]) -> None:
        self.cluster.nodes.replace(items)
        self.nodes.clear()
        for item in items:
            self._node(item)

    @rule(item=_budgets)
    def upsert_budget(self, item: DisruptionBudget) -> None:
        self.cluster.budgets.upsert(item)
        self.budgets[item.name] = item

    @rule(items=st.lists(_budgets, max_size=2, unique_by=lambda item: item.name))
    def replace_budgets(self, items: list[DisruptionBudget]) -> None:
        self.cluster.budgets.replace(items)
        self.budgets = {item.name: item for item in items}

    @rule(assumption=_assumptions, seconds=st.integers(1, 3))
    def assumption(self, assumption: AssumedPreemption, seconds: int) -> None:
        self.answers += 1  # no two answers are given at the very same time
        dated = replace(assumption, deadline=self.clock.seconds + seconds + self.answers / 1e6)
        self.cluster.assume(dated)
        self.assumed[dated.preemptor.uid] = dated

    @rule(preemptor=_preemptors)
    def repeated_call(self, preemptor: Pod) -> None:
        with self.cluster.deciding_anew(preemptor.uid):
            self.cluster.snapshot()
        self.assumed.pop(preemptor.uid, None)

    @rule()
    def wait(self) -> None:
        self.clock.seconds += 1

    # The model

    def _node(self, item: Node | Unreadable) -> None:
        if isinstance(item, Node):
            self.nodes[item.name] = item
        else:
            self.nodes.pop(item.name, None)

    def _shown(self, item: Pod | Unreadable) -> None:
        old = self.pods.get(item.key)
        if isinstance(old, Pod) and old.uid != item.uid:
            self._gone(item.key)
        self.pods[item.key] = item
        if isinstance(item, Pod):
            is_leaving = (item.terminating and item.preempted) or item.finished
            is_pending = item.node_name is None and not item.may_be_assumed
            placed = item.node_name or item.nominated_node or item.finished
            if is_leaving or is_pending:
                self._end(item.uid, self._without_victim)
            if placed:
                self._end(item.uid, self._without_nomination)

    def _gone(self, key: str) -> None:
        old = self.pods.pop(key, None)
        if isinstance(old, Pod):
            self._end(old.uid, self._without_victim)
            self._end(old.uid, self._without_nomination)

    def _end(self, uid: str, change: Callable[[AssumedPreemption, str], AssumedPreemption]) -> None:
        changed = {key: change(each, uid) for key, each in self.assumed.items()}
        self.assumed = {key: each for key, each in changed.items() if not each.is_confirmed}

    @staticmethod
    def _without_victim(assumption: AssumedPreemption, uid: str) -> AssumedPreemption:
        return replace(assumption, victims=assumption.victims - {uid})

    @staticmethod
    def _without_nomination(assumption: AssumedPreemption, uid: str) -> AssumedPreemption:
        return (
            replace(assumption, nominates=False) if assumption.preemptor.uid == uid else assumption
        )

    def _expected(self) -> Snapshot:
        readable = [each for each in self.pods.values() if isinstance(each, Pod)]
        base = assemble(self.nodes.values(), readable, self.budgets.values())
        states = {name: self._overlaid(state) for name, state in base.nodes.items()}
        return replace(base, nodes=states)

    def _overlaid(self, state: NodeState) -> NodeState:
        here = [each for each in self.assumed.values() if each.node == state.node.name]
        leaving = {uid for each in here for uid in each.victims}
        nominated = {each.uid: each for each in state.nominated if each.uid not in leaving}
        for each in here:
            if each.nominates:
                nominee = structs.replace(each.preemptor, nominated_node=each.node)
                nominated.setdefault(each.preemptor.uid, nominee)
        return structs.replace(
            state,
            pods=tuple(
                structs.replace(each, assumed_victim=True) if each.uid in leaving else each
                for each in state.pods
            ),
            nominated=tuple(nominated.values()),
            unreadable=tuple(
                sorted(
                    each.key
                    for each in self.pods.values()
                    if isinstance(each, Unreadable) and each.node_name == state.node.name
                )
            ),
        )

    # Invariants

    @invariant()
    def an_engine_that_follows_decides_as_the_reference(self) -> None:
        asking, snapshot = pod("asking", cpu="1", priority=1), self.cluster.snapshot()
        assert self.engine.preempt(asking, snapshot) == ReferenceEngine().preempt(asking, snapshot)

    @invariant()
    def the_snapshot_equals_the_model(self) -> None:
        self.assumed = {
            key: each for key, each in self.assumed.items() if each.deadline > self.clock.seconds
        }
        snapshot, expected = self.cluster.snapshot(), self._expected()
        assert _comparable(snapshot) == _comparable(expected)
        assert self.cluster.assumed_count == len(self.assumed)
        for name in (snapshot.nodes.keys() & self.before.nodes.keys()) - self._touched():
            assert snapshot.nodes[name] is self.before.nodes[name]
        assert self.cluster.snapshot() is snapshot
        self.before, self.before_by_key = snapshot, self._by_key()

    def _by_key(self) -> Mapping[tuple[str, str], Any]:
        return {
            **{("pod", key): each for key, each in self.pods.items()},
            **{("node", key): each for key, each in self.nodes.items()},
            **{("assumption", key): each for key, each in self.assumed.items()},
        }

    def _touched(self) -> set[str]:
        """Return the names of the nodes of the last event."""
        now, before = self._by_key(), self.before_by_key
        changed = {key for key in now.keys() | before.keys() if now.get(key) != before.get(key)}
        things = [side.get(key) for key in changed for side in (now, before)]
        return {name for thing in things for name in _nodes_of(thing)}


def _nodes_of(thing: object) -> list[str]:
    match thing:
        case Node(name=name) | AssumedPreemption(node=name):
            return [name]
        case Pod(node_name=on, nominated_node=nominee):
            return [name for name in (on, nominee) if name is not None]
        case Unreadable(node_name=str(name)):
            return [name]
        case _:
            return []


def _comparable(snapshot: Snapshot) -> Any:
    """Return the snapshot with unordered fields as sets."""
    return (
        {name: _state(state) for name, state in snapshot.nodes.items()},
        {each.name: each for each in snapshot.budgets},
        by_key(snapshot.pods_with_anti_affinity),
    )


def _state(state: NodeState) -> Any:
    return (
        structs.replace(state, pods=(), nominated=()),
        by_key(state.pods),
        by_key(state.nominated),
    )


TestClusterMachine = ClusterMachine.TestCase
TestClusterMachine.settings = settings(stateful_step_count=25)
