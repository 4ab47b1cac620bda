"""What is found by comparing candidates does not depend on those that cannot be returned."""

from __future__ import annotations

from dataclasses import replace

import pytest

from extender.protocol.preempt_verb import PreemptArgs
from extender.protocol.verb_context import CallContext, Search
from policies.kubernetes.default_selector import PodOwner
from policies.kubernetes.snapshot import Node, Pod
from policies.preemption.consequences.criteria import CONSEQUENCE_CRITERIA
from policies.preemption.costs.catalog import cheapest_criteria, lost_work
from policies.preemption.policy import Policy, SchedulerRules
from policies.preemption.reference_engine import ReferenceEngine
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import SECOND, node, pod, pod_group, snapshot

RUN_TIME = cheapest_criteria(lost_work({"cpu": 1000}))["least run time"]
CHEAPEST = Policy("cheapest", candidates=(RUN_TIME,), cheapest_by=RUN_TIME)
ELSEWHERE = Policy(
    "elsewhere", candidates=(CONSEQUENCE_CRITERIA["most victims that can run elsewhere"],)
)
JOB = PodOwner("Job", "job")
SPANNING = (pod_group("g", "all", priority=1), pod_group("h", "all", priority=1))


def owned(name: str, on: str, cpu: str, group: str = "") -> Pod:
    return pod(name, on=on, cpu=cpu, priority=1, owner=JOB, group=group)


@pytest.mark.parametrize("engine", [ReferenceEngine, VectorizedEngine])
@pytest.mark.parametrize(
    ("policy", "objects", "victims"),
    [
        # The unit on node-1 has run for less than young, and has a pod on node-3.
        (
            CHEAPEST,
            [
                *(node("node-1", cpu="1"), node("node-2", cpu="2"), node("node-3", cpu="0")),
                pod("g-1", on="node-1", cpu="1", priority=1, started=95, group="g"),
                pod("g-2", on="node-3", priority=1, started=95, group="g"),
                pod("long", on="node-2", cpu="1", priority=1, started=0),
                pod("young", on="node-2", cpu="1", priority=2, started=80),
            ],
            ["young"],
        ),
        # The units on node-1 and node-2 can run elsewhere, and so can small; big cannot.
        (
            ELSEWHERE,
            [
                *(node(f"node-{n}", cpu="1") for n in (1, 2, 3, 4)),
                *(node("spare-1", cpu="500m"), node("spare-2", cpu="500m")),
                *(owned("g-1", "node-1", "500m", "g"), owned("g-2", "spare-1", "0", "g")),
                *(owned("h-1", "node-2", "500m", "h"), owned("h-2", "spare-2", "0", "h")),
                owned("big", "node-3", "1"),
                *(owned("small", "node-4", "500m"), pod("other", on="node-4", priority=9)),
            ],
            ["small"],
        ),
    ],
    ids=["cheapest", "elsewhere"],
)
def test_others_are_compared_anew(
    engine: type[ReferenceEngine | VectorizedEngine],
    policy: Policy,
    objects: list[Node | Pod],
    victims: list[str],
) -> None:
    cluster = replace(snapshot(*objects, groups=SPANNING), now_ns=100 * SECOND)
    context = CallContext(cluster, engine(SchedulerRules(policy=policy)), Search.CLUSTER)
    answer = PreemptArgs(pod("vip", cpu="1", priority=9), {}).decide(context)
    assert answer.named_candidate is not None
    assert [each.name for each in answer.named_candidate.victims.pods] == victims
    assert any(note.startswith("left out") for note in answer.notes)
