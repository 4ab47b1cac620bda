"""The verbs for pods of pod groups: answers that neither stop a gang nor evict half of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest

from extender.protocol import filter_verb
from extender.protocol.verb_context import CallContext
from policies import SchedulerRules
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.engine import Engine
from policies.preemption.reference_engine import ReferenceEngine
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import encoded, node, pod, pod_group, snapshot
from tests.vectors.podgroups import of, release_of, snapshot_of

Case = Mapping[str, Any]
engines = pytest.mark.parametrize("engine_of", [ReferenceEngine, VectorizedEngine])

ON_1_36 = {"GenericWorkload": True, "GangScheduling": True, "WorkloadAwarePreemption": True}
ON_1_37 = {"GenericWorkload": True}
GATES = {"1.36": ON_1_36, "1.37": ON_1_37, "1.38": {}}


def refused(body: Mapping[str, Any], moment: Snapshot, engine: Engine) -> set[str]:
    args = filter_verb.decode(encoded(body), engine.rules)
    answer = msgspec.json.decode(args.decide(CallContext(moment, engine)).body)
    return {*answer["FailedNodes"], *answer["FailedAndUnresolvableNodes"]}


@engines
@pytest.mark.parametrize("version", GATES)
@pytest.mark.parametrize("case", of("filter-in-group-cycle"))
def test_a_member_is_not_refused_for_what_lower_pods_cause(
    case: Case, version: str, engine_of: Callable[[SchedulerRules], Engine]
) -> None:
    engine = engine_of(SchedulerRules(release_of({"gates": GATES[version]}, version)))
    moment = snapshot_of(case)
    assert refused(case["request"], moment, engine).isdisjoint(case["expect"]["mustNotRefuse"])
    sent = {**case["request"], "NodeNames": None, "Nodes": {"items": case["nodes"]}}
    assert refused(sent, moment, engine).isdisjoint(case["expect"]["mustNotRefuse"])


MEMBER = pod("member", cpu="2", priority=100, group="g")
GROUP = pod_group("g", "single", priority=100)


@engines
@pytest.mark.parametrize(
    ("occupant", "fits"),
    [
        (pod("x", on="n", cpu="4", priority=99), True),
        (pod("x", on="n", cpu="4", priority=100), False),
        (pod("x", on="n", cpu="4", priority=99, group="high"), False),
        (pod("x", on="n", cpu="4", priority=200, group="low"), True),
        (pod("x", on="n", cpu="4", priority=200, group="missing"), True),
    ],
    ids=["lower", "equal", "lower in a higher group", "higher in a lower group", "group missing"],
)
def test_the_priority_of_a_group_decides_which_pods_may_be_removed(
    occupant: Pod, *, fits: bool, engine_of: Callable[[SchedulerRules], Engine]
) -> None:
    groups = [GROUP, pod_group("high", priority=200), pod_group("low", priority=1)]
    moment = snapshot(node("n", cpu="4"), occupant, groups=groups)
    engine = engine_of(SchedulerRules(release_of({"gates": ON_1_37})))
    assert bool(engine.filter_with_terminating_pods(MEMBER, moment, ["n"]).feasible) is fits


@engines
def test_a_pod_without_a_group_is_judged_by_all_pods(
    engine_of: Callable[[SchedulerRules], Engine],
) -> None:
    moment = snapshot(node("n", cpu="4"), pod("x", on="n", cpu="4", priority=1))
    plain = pod("plain", cpu="2", priority=100)
    assert (
        not engine_of(SchedulerRules()).filter_with_terminating_pods(plain, moment, ["n"]).feasible
    )


@engines
def test_without_the_gate_a_member_is_judged_by_all_pods(
    engine_of: Callable[[SchedulerRules], Engine],
) -> None:
    moment = snapshot(node("n", cpu="4"), pod("x", on="n", cpu="4", priority=1), groups=[GROUP])
    engine = engine_of(SchedulerRules(release_of({"gates": {}}, "1.37")))
    assert not engine.filter_with_terminating_pods(MEMBER, moment, ["n"]).feasible
