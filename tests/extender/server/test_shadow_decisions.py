"""Shadow policies: each call that was answered is decided again by them, and only recorded."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import pytest

from extender.cluster.scheduler_cache import SchedulerCache
from extender.ledger.entry import LedgerEntry
from extender.ledger.entry_builder import EntryBuilder
from extender.observability.decision_log import ReasonCounts
from extender.protocol.verb_context import AnswerContext, CallContext, Search, VerbResult
from extender.server.cpu_share import PAUSE_SECONDS, CpuShare
from extender.server.service import Service, VerbCall
from extender.server.shadow_decisions import (
    MOST_WAITING,
    DecidedCall,
    ShadowChoice,
    ShadowDecisions,
    combined_rules,
)
from policies.engine_selection import build_engine
from policies.kubernetes.criteria import Criterion
from policies.kubernetes.snapshot import DisruptionBudget, Node, Pod
from policies.preemption.costs.catalog import DELETION_COST, cost_criteria, deletion_cost
from policies.preemption.decision import Candidate
from policies.preemption.guards.victim_guard import min_runtime, protected_pods
from policies.preemption.policy import CANDIDATE_CRITERIA, KUBE_SCHEDULER, Policy, SchedulerRules
from tests.builders import SECOND, Document, budget, node, pod, pod_json
from tests.extender.conftest import HandClock, filter_body, live_cluster, preempt_body

FEWEST: Final = Policy("fewest", candidates=(CANDIDATE_CRITERIA["fewest victims"],))
SPARING: Final = Policy("sparing", victim_guards=(protected_pods("all", lambda _: True),))
APPS: Final = ("web", "db", "job")


def _fail(_: Candidate) -> int:
    raise ZeroDivisionError


BROKEN: Final = Policy("broken", candidates=(Criterion("broken", _fail),))


@dataclass
class ShadowedExtender:
    """An extender with shadow policies, and what these would have chosen.

    These have a ``share`` of a core, and to record a choice takes ``record_seconds``.
    """

    cluster: SchedulerCache
    policies: Sequence[Policy]
    live: Policy = KUBE_SCHEDULER
    search: Search = Search.CLUSTER
    share: float = 1.0
    record_seconds: float = 0.0
    clock: HandClock = field(default_factory=HandClock)
    answers: list[VerbResult] = field(default_factory=list)
    found: list[tuple[DecidedCall, ShadowChoice]] = field(default_factory=list)
    dropped: int = 0

    def __post_init__(self) -> None:
        share = CpuShare(self.share, self.clock, lambda: PAUSE_SECONDS)
        rules = [SchedulerRules(policy=each) for each in self.policies]
        self.shadows = ShadowDecisions(rules, self.search, share, self.clock, self)
        for place, each in enumerate(rules):
            self.shadows.use(place, build_engine(each))
        engine = build_engine(SchedulerRules(policy=self.live))
        self.service = Service(self.cluster, engine, self.clock, self.search, shadows=self.shadows)

    def live_entry(
        self, answer: VerbResult, context: CallContext, answered: AnswerContext
    ) -> LedgerEntry:
        self.answers.append(answer)
        snapshot, rules, reasons = context.snapshot, context.rules, ReasonCounts()
        return EntryBuilder().entry(1, "", answer, snapshot, rules, answered, reasons)

    def record(self, decided: DecidedCall, choice: ShadowChoice) -> None:
        self.clock.seconds += self.record_seconds
        self.found.append((decided, choice))

    def drop(self) -> None:
        self.dropped += 1

    async def ask(self, body: bytes, verb: str = "preempt") -> None:
        """Answer a call, and record the answer."""
        reply = await self.service.call(VerbCall(verb, body, self.clock.monotonic()))
        reply.record()

    async def choices(self) -> list[tuple[str, str | None, list[str]]]:
        """Return policy, node and victims of what was decided by now."""
        await self.shadows.decide_waiting()
        return [(each.context.rules.policy.name, *_named(each)) for _, each in self.found]


def _named(choice: ShadowChoice) -> tuple[str | None, list[str]]:
    named = choice.answer.named_candidate
    return (None, []) if named is None else (named.node, [p.name for p in named.victims.pods])


def full_nodes(*more: Node | Pod | DisruptionBudget) -> SchedulerCache:
    """Build two full nodes: the pods on the first have lower priorities."""
    return live_cluster(
        node("node-1", cpu="2"),
        node("node-2", cpu="2"),
        pod("web", on="node-1", cpu="1"),
        pod("api", on="node-1", cpu="1"),
        pod("db", on="node-2", cpu="2", priority=5),
        pod("vip", cpu="2", priority=10),
        *more,
    )


def vip_call() -> bytes:
    """Build a call for the pod vip."""
    vip = pod_json("vip", cpu="2", priority=10)
    return preempt_body(vip, node_1=["web", "api"], node_2=["db"])


async def test_each_policy_decides_each_call_once() -> None:
    it = ShadowedExtender(full_nodes(), [KUBE_SCHEDULER, FEWEST, SPARING])
    await it.ask(vip_call())
    assert it.found == []
    expected = [
        ("kube-scheduler", "node-1", ["api", "web"]),
        ("fewest", "node-2", ["db"]),
        ("sparing", None, []),
    ]
    assert await it.choices() == expected
    assert await it.choices() == expected
    assert it.dropped == 0


async def test_filter_calls_are_not_decided_again() -> None:
    it = ShadowedExtender(full_nodes(), [FEWEST])
    await it.ask(filter_body(pod_json(), "node-1"), "filter")
    assert await it.choices() == []


async def test_the_snapshot_is_that_of_the_answer() -> None:
    it = ShadowedExtender(full_nodes(), [KUBE_SCHEDULER, FEWEST])
    await it.ask(vip_call())
    it.cluster.pods.remove(pod("db", on="node-2", cpu="2", priority=5))
    it.cluster.pods.upsert(pod("new", on="node-1", cpu="1", priority=20))
    it.cluster.snapshot()
    assert [victims for _, _, victims in await it.choices()] == [["api", "web"], ["db"]]


async def test_pods_that_were_pending_count_as_they_did() -> None:
    """An offered victim that kube-scheduler has assumed on the node, and that is bound later."""
    it = ShadowedExtender(
        live_cluster(
            node("node-1", cpu="2"),
            pod("assumed", cpu="2", priority=1),
            pod("vip", cpu="2", priority=10),
        ),
        [KUBE_SCHEDULER],
    )
    body = preempt_body(pod_json("vip", cpu="2", priority=10), node_1=["assumed"])
    await it.ask(body)
    it.cluster.pods.remove(pod("assumed", cpu="2", priority=1))
    assert await it.choices() == [("kube-scheduler", "node-1", ["assumed"])]


async def test_a_guard_reads_the_time_of_the_answer() -> None:
    young = min_runtime("young", lambda _: True, 60 * SECOND)
    cluster = live_cluster(
        node("node-1", cpu="2"),
        pod("web", on="node-1", cpu="2", started=0),
        pod("vip", cpu="2", priority=10),
    )
    it = ShadowedExtender(cluster, [Policy("patient", victim_guards=(young,))])
    body = preempt_body(pod_json("vip", cpu="2", priority=10), node_1=["web"])
    for seconds in (59.0, 61.0):
        it.clock.seconds = seconds
        await it.ask(body)
    it.clock.seconds = 1000.0
    assert [victims for _, _, victims in await it.choices()] == [[], ["web"]]


async def test_the_newest_are_dropped_and_counted_if_too_many_wait() -> None:
    it = ShadowedExtender(full_nodes(), [KUBE_SCHEDULER, FEWEST])
    for _ in range(MOST_WAITING + 3):
        await it.ask(vip_call())
    assert it.dropped == 2 * 3
    assert len(await it.choices()) == 2 * MOST_WAITING


async def test_recording_counts_in_the_share() -> None:
    it = ShadowedExtender(full_nodes(), [KUBE_SCHEDULER, FEWEST], share=0.01, record_seconds=1.0)
    await it.ask(vip_call())
    await it.choices()
    assert 101.0 <= it.clock.seconds < 102.5


async def test_large_calls_wait_up_to_a_number_of_bytes() -> None:
    it = ShadowedExtender(full_nodes(), [KUBE_SCHEDULER])
    padded = vip_call() + b" " * 12 * 2**20
    for _ in range(3):
        await it.ask(padded)
    assert it.dropped == 1
    assert len(await it.choices()) == 2
    await it.ask(padded)
    assert it.dropped == 1


async def test_a_defect_of_a_policy_ends_nothing() -> None:
    it = ShadowedExtender(full_nodes(), [BROKEN, FEWEST])
    await it.ask(vip_call())
    assert await it.choices() == [("fewest", "node-2", ["db"])]
    assert it.dropped == 1


async def test_a_policy_that_is_replaced_decides_what_waits() -> None:
    it = ShadowedExtender(full_nodes(), [KUBE_SCHEDULER])
    await it.ask(vip_call())
    it.shadows.use(0, build_engine(SchedulerRules(policy=FEWEST)))
    assert await it.choices() == [("fewest", "node-2", ["db"])]


def test_rules_read_what_shadow_policies_read_and_decide_as_before() -> None:
    cost = cost_criteria(deletion_cost())["least lost work"]
    other = SchedulerRules(policy=Policy("cheap", candidates=(cost,)))
    combined = combined_rules(SchedulerRules(), [other])
    assert combined.annotations == {DELETION_COST}
    assert combined.reads_time
    assert combined.for_preemptor(pod()) == SchedulerRules()


@dataclass
class ChangingCluster:
    """A random cluster, in which pods come and go."""

    rng: random.Random
    number: int = 0
    pods: dict[str, Pod] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nodes = [
            node(f"n{number}", cpu=str(self.rng.randint(3, 8)))
            for number in range(self.rng.randint(3, 9))
        ]
        self.nodes = [each.name for each in nodes]
        budgets = [budget(app, match={"app": app}, allowed=self.rng.randint(0, 2)) for app in APPS]
        self.cache = live_cluster(*nodes, *budgets)
        for _ in range(6 * len(nodes)):
            self.add()

    def add(self) -> None:
        """Add a pod to a node."""
        self.number += 1
        rng, name = self.rng, f"p{self.number}"
        made = pod(
            name,
            on=rng.choice(self.nodes),
            cpu=f"{rng.randint(1, 4) * 500}m",
            priority=rng.randint(0, 5) * 10,
            labels={"app": rng.choice(APPS)},
            started=rng.randint(0, 5),
        )
        self.pods[name] = made
        self.cache.pods.upsert(made)

    def change(self) -> None:
        """Let some pods go, and others come."""
        for _ in range(self.rng.randint(0, 3)):
            self.cache.pods.remove(self.pods.pop(self.rng.choice([*self.pods])))
            self.add()

    def call(self) -> bytes:
        """Return a call for a new pod, with a random offer of victims on some nodes."""
        self.number += 1
        priority, cpu = self.rng.randint(1, 60), self.rng.randint(1, 6)
        preemptor: Document = pod_json(f"vip{self.number}", cpu=str(cpu), priority=priority)
        offers = {}
        for name in self.rng.sample(self.nodes, self.rng.randint(0, len(self.nodes))):
            there = [each for each in self.pods.values() if each.node_name == name]
            lower = [each.uid for each in there if each.priority < priority]
            if lower:
                offers[name] = self.rng.sample(lower, self.rng.randint(1, len(lower)))
        return preempt_body(preemptor, **offers)


@pytest.mark.parametrize("search", Search)
@pytest.mark.parametrize("decisions", [500, pytest.param(5_000, marks=pytest.mark.slow)])
async def test_a_shadow_that_is_the_live_policy_never_differs(
    decisions: int, search: Search
) -> None:
    """Over 10,000 decisions with both searches, while the cluster changes before they are made."""
    rng, made, named = random.Random(f"{decisions}-{search}"), 0, 0
    while made < decisions:
        changing = ChangingCluster(rng)
        it = ShadowedExtender(changing.cache, [KUBE_SCHEDULER], search=search)
        for _ in range(50):
            for _ in range(rng.randint(1, 5)):
                await it.ask(changing.call())
                changing.change()
            await it.shadows.decide_waiting()
        for answer, (_, choice) in zip(it.answers, it.found, strict=True):
            assert choice.answer.body == answer.body
            assert choice.answer.decision == answer.decision
            made += 1
            named += answer.named_candidate is not None
    assert it.dropped == 0
    assert named > made / 4
