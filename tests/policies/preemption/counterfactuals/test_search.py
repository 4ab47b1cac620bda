"""What would have spared a victim, scene by scene."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Final

import pytest
from msgspec import structs

from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.consequences.criteria import CONSEQUENCE_CRITERIA
from policies.preemption.costs.catalog import cheapest_criteria, lost_work
from policies.preemption.costs.fragmentation import NVIDIA_GPU, FragmentationCriterion
from policies.preemption.counterfactuals.counterfactual import (
    ChangeKind,
    Counterfactual,
    DecisionInputs,
)
from policies.preemption.counterfactuals.reproduction import IrreproducibleDecisionError
from policies.preemption.counterfactuals.search import find_counterfactuals
from policies.preemption.counterfactuals.smaller_request import MOST_STEPS
from policies.preemption.guards.victim_guard import min_runtime
from policies.preemption.policy import KUBE_SCHEDULER, Policy, PolicyRule, SchedulerRules
from policies.preemption.reference_engine import ReferenceEngine
from policies.preemption.time_limit import DeadlineExceededError
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import SECOND, budget, node, pod, pod_group, snapshot

WEB: Final = {"app": "web"}
PREEMPTOR: Final = pod("urgent", cpu="2", priority=100)
BUDGET: Final = "PodDisruptionBudget default/budget allows 2 disruptions fewer (0)"
COPY: Final = "one more node like n2: no preemption needed: the preemptor fits n2-copy"
YOUNGEST: Final = "criterion latest start of the most important victims first"
REQUEST: Final = (
    "cpu request of the preemptor smaller by 1500m (500m): "
    "no preemption needed: the preemptor fits n1"
)
NEVER: Final = "preemptionPolicy: Never on the preemptor: the preemptor stays pending"


def found_for(
    victim: str, cluster: Snapshot, preemptor: Pod = PREEMPTOR, policy: Policy = KUBE_SCHEDULER
) -> tuple[Counterfactual, ...]:
    return find(victim, DecisionInputs(preemptor, cluster, SchedulerRules(policy=policy)))


def find(victim: str, inputs: DecisionInputs) -> tuple[Counterfactual, ...]:
    found = find_counterfactuals(victim, inputs)
    assert found == find_counterfactuals(victim, inputs, make_engine=VectorizedEngine)
    return found


def lines(found: tuple[Counterfactual, ...], kind: ChangeKind | None = None) -> list[str]:
    return [str(each) for each in found if kind in (None, each.kind)]


def two_nodes(*, batch: int = 10, web: int = 20) -> Snapshot:
    """Return two full nodes: one with batch and cron, one with web, and a budget of batch."""
    return snapshot(
        node("n1", cpu="4500m"),
        pod("batch", on="n1", cpu="2", priority=batch, started=1, labels=WEB),
        pod("cron", on="n1", cpu="2", priority=15, started=2),
        node("n2", cpu="3"),
        pod("web", on="n2", cpu="3", priority=web, started=3),
        budget("budget", match=WEB, allowed=2),
    )


def test_every_kind_of_change_is_found_in_a_fixed_order() -> None:
    assert lines(found_for("batch", two_nodes())) == [
        "priority of default/batch + 5 (to 15): victims on n1: default/cron",
        f"{BUDGET}: victims on n1: default/cron",
        COPY,
        f"{YOUNGEST}: victims on n2: default/web",
        REQUEST,
        NEVER,
    ]


@pytest.mark.parametrize(
    ("batch", "cluster", "line"),
    [
        ("batch", two_nodes(), "+ 5 (to 15): victims on n1: default/cron"),
        (
            "one",
            snapshot(
                node("n1", cpu="2"),
                pod("one", on="n1", cpu="2", priority=-7),
                node("n2", cpu="2"),
                pod("two", on="n2", cpu="2", priority=61),
            ),
            "+ 69 (to 62): victims on n2: default/two",
        ),
        (
            "one",
            snapshot(node("n1", cpu="2"), pod("one", on="n1", cpu="2", priority=1)),
            "+ 99 (to 100): the preemptor stays pending",
        ),
    ],
    ids=["as another pod of the node", "between those of other pods", "as the preemptor"],
)
def test_the_priority_that_spares_a_victim(batch: str, cluster: Snapshot, line: str) -> None:
    found = lines(found_for(batch, cluster), ChangeKind.VICTIM_PRIORITY)
    assert found == [f"priority of default/{batch} {line}"]


def test_a_priority_gap_protects_a_victim_below_the_priority_of_the_preemptor() -> None:
    cluster = snapshot(node("n1", cpu="2"), pod("one", on="n1", cpu="2", priority=1))
    gap = replace(KUBE_SCHEDULER, priority_gap=50)
    found = lines(found_for("one", cluster, PREEMPTOR, gap), ChangeKind.VICTIM_PRIORITY)
    assert found == ["priority of default/one + 50 (to 51): the preemptor stays pending"]


@pytest.mark.parametrize(("priority", "offered"), [(10**9, 1), (10**9 + 1, 0)])
def test_no_priority_above_that_of_users_is_offered(priority: int, offered: int) -> None:
    cluster = snapshot(node("n1", cpu="2"), pod("one", on="n1", cpu="2", priority=5))
    preemptor = structs.replace(PREEMPTOR, priority=priority)
    assert len(lines(found_for("one", cluster, preemptor), ChangeKind.VICTIM_PRIORITY)) == offered


def test_the_priority_of_a_pod_of_a_group_is_left_alone() -> None:
    cluster = snapshot(
        node("n1", cpu="2"),
        node("n2", cpu="2"),
        pod("one", on="n1", cpu="2", group="gang"),
        pod("two", on="n2", cpu="2", group="gang"),
        groups=[pod_group("gang", priority=1)],
    )
    assert lines(found_for("two", cluster)) == [
        "one more node like n1: no preemption needed: the preemptor fits n1-copy",
        NEVER,
    ]


def test_strict_budgets_count_the_ready_pods() -> None:
    cluster = snapshot(
        node("n1", cpu="2"),
        pod("one", on="n1", cpu="2", labels=WEB, ready=True),
        replace(budget("budget", match=WEB, allowed=3), desired_healthy=0),
    )
    strict = Policy("strict", strict_budgets=True)
    found = found_for("one", cluster, PREEMPTOR, strict)
    (line,) = lines(found, ChangeKind.DISRUPTIONS_ALLOWED)
    assert line == f"{BUDGET.replace('2', '3')}: the preemptor stays pending"
    assert lines(found_for("one", cluster), ChangeKind.DISRUPTIONS_ALLOWED) == []


def test_the_smallest_node_that_the_preemptor_fits_is_copied_with_its_taints_and_labels() -> None:
    hostname = {"kubernetes.io/hostname": "large", "zone": "a"}
    cluster = snapshot(
        node("larger", cpu="4"),
        node("large", cpu="3", labels=hostname),
        node("small", cpu="1"),
        node("tainted", cpu="2", taints=["gpu=yes:NoSchedule"]),
        node("large-copy", cpu="1"),
        *(pod(f"on-{n}", on=n, cpu=cpu) for n, cpu in [("larger", "4"), ("large", "3")]),
        pod("on-tainted", on="tainted", cpu="2"),
    )
    inputs = DecisionInputs(
        PREEMPTOR, cluster, SchedulerRules(), among=frozenset(["large", "larger"])
    )
    found = find_counterfactuals("on-large", inputs)
    (copied,) = (each for each in found if each.kind is ChangeKind.ADDITIONAL_NODE)
    assert (copied.subject, copied.outcome.fitting) == ("large", "large-copy-copy")
    copy = copied.inputs.snapshot.nodes["large-copy-copy"].node
    assert copy.labels == {"kubernetes.io/hostname": "large-copy-copy", "zone": "a"}


def requesting(cpu: str = "0", memory: str = "0", gpus: int = 0) -> Pod:
    others = {NVIDIA_GPU: str(gpus)} if gpus else {}
    return pod("urgent", cpu=cpu, memory=memory, others=others, priority=100)


def gpu_node(used: int) -> Snapshot:
    others = {NVIDIA_GPU: "4"}
    victims = (pod(f"one-{n}", on="n1", others={NVIDIA_GPU: "1"}) for n in range(used))
    return snapshot(node("n1", others=others), *victims)


@pytest.mark.parametrize(
    ("cluster", "victim", "preemptor", "change", "outcome"),
    [
        (
            snapshot(node("n1", cpu="2"), pod("one", on="n1", cpu="250m")),
            "one",
            requesting(cpu="2"),
            "cpu request of the preemptor smaller by 250m (1750m)",
            "no preemption needed: the preemptor fits n1",
        ),
        (
            snapshot(
                node("n1", memory="8Gi"),
                pod("one", on="n1", memory="2Gi", started=1),
                pod("two", on="n1", memory="4Gi", started=2),
                pod("high", on="n1", memory="1Gi", priority=100),
            ),
            "one",
            requesting(memory="7Gi"),
            "memory request of the preemptor smaller by 2Gi (5Gi)",
            "victims on n1: default/two",
        ),
        (
            gpu_node(4),
            "one-0",
            requesting(gpus=4),
            "nvidia.com/gpu request of the preemptor smaller by 1 (3)",
            "victims on n1: default/one-1, default/one-2, default/one-3",
        ),
    ],
    ids=["until the pod fits", "until the victim is reprieved", "in whole units"],
)
def test_the_request_that_spares_a_victim(
    cluster: Snapshot, victim: str, preemptor: Pod, change: str, outcome: str
) -> None:
    found = lines(found_for(victim, cluster, preemptor), ChangeKind.PREEMPTOR_REQUEST)
    assert found == [f"{change}: {outcome}"]


@pytest.mark.parametrize(("taints", "offered"), [([], 0), (["gpu=yes:NoSchedule"], 1)])
def test_the_search_for_a_request_is_bounded(taints: list[str], offered: int) -> None:
    """The request crosses the amounts of all nodes first; those with a taint do not count."""
    cluster = snapshot(
        node("n1", cpu="2"),
        pod("one", on="n1", cpu="1"),
        *(node(f"other-{n}", cpu=f"{1001 + n}m", pods=0, taints=taints) for n in range(MOST_STEPS)),
    )
    found = find_counterfactuals("one", DecisionInputs(PREEMPTOR, cluster, SchedulerRules()))
    assert len(lines(found, ChangeKind.PREEMPTOR_REQUEST)) == offered


def test_a_request_of_nothing_is_not_offered() -> None:
    cluster = snapshot(node("n1", cpu="2"), pod("one", on="n1", cpu="2"))
    assert lines(found_for("one", cluster, requesting(cpu="2")), ChangeKind.PREEMPTOR_REQUEST) == []


def test_a_smaller_request_for_devices_is_consistent() -> None:
    inputs = DecisionInputs(requesting(gpus=4), gpu_node(4), SchedulerRules())
    (found,) = (
        each
        for each in find_counterfactuals("one-0", inputs)
        if each.kind is ChangeKind.PREEMPTOR_REQUEST
    )
    smaller = found.inputs.pod
    assert smaller.requests.scalars == {NVIDIA_GPU: 3}
    assert [each.count for each in smaller.extended_requests] == [3]


def test_no_request_is_offered_of_which_the_policy_counts_what_remains() -> None:
    policy = replace(KUBE_SCHEDULER, candidates=(FragmentationCriterion(),))
    found = lines(
        found_for("one-0", gpu_node(4), requesting(gpus=4), policy), ChangeKind.PREEMPTOR_REQUEST
    )
    assert found == []


def test_no_request_is_offered_that_several_containers_have() -> None:
    preemptor = requesting(gpus=4)
    twice = structs.replace(preemptor, extended_requests=preemptor.extended_requests * 2)
    assert lines(found_for("one-0", gpu_node(4), twice), ChangeKind.PREEMPTOR_REQUEST) == []


def test_a_guarded_pod_is_never_the_victim_instead() -> None:
    young = pod("young", on="n1", cpu="2", priority=0, started=0)
    guard = min_runtime("young pods", lambda each: each.name == "web", 60 * SECOND)
    guarded = replace(KUBE_SCHEDULER, victim_guards=(guard,))
    cluster = snapshot(
        node("n1", cpu="2"), young, node("n2", cpu="2"), pod("web", on="n2", cpu="2", priority=1)
    )
    found = lines(found_for("young", cluster, PREEMPTOR, guarded), ChangeKind.VICTIM_PRIORITY)
    assert found == ["priority of default/young + 100 (to 100): the preemptor stays pending"]
    found = lines(found_for("young", cluster), ChangeKind.VICTIM_PRIORITY)
    assert found == ["priority of default/young + 1 (to 1): victims on n2: default/web"]


def test_with_the_cheapest_victims_other_criteria_come_second() -> None:
    by = cheapest_criteria(lost_work({"cpu": 1}))["fewest victims"]
    policy = replace(KUBE_SCHEDULER, candidates=(by, *KUBE_SCHEDULER.candidates), cheapest_by=by)
    assert lines(found_for("batch", two_nodes(), policy=policy)) == [
        "priority of default/batch + 5 (to 15): victims on n1: default/cron",
        f"{BUDGET}: victims on n1: default/cron",
        COPY,
        f"{YOUNGEST} after fewest victims: victims on n2: default/web",
        NEVER,
    ]


def test_consequences_are_counted_anew() -> None:
    cascade = CONSEQUENCE_CRITERIA["least cascade"]
    policy = replace(KUBE_SCHEDULER, candidates=(*KUBE_SCHEDULER.candidates, cascade))
    found = lines(found_for("batch", two_nodes(), PREEMPTOR, policy), ChangeKind.FIRST_CRITERION)
    assert found == [f"{YOUNGEST}: victims on n2: default/web"]


def test_only_the_nodes_that_are_offered_count() -> None:
    inputs = DecisionInputs(PREEMPTOR, two_nodes(), SchedulerRules(), frozenset(["n1"]))
    assert lines(find("batch", inputs)) == [
        "priority of default/batch + 5 (to 15): victims on n1: default/cron",
        f"{BUDGET}: victims on n1: default/cron",
        COPY,
        REQUEST,
        NEVER,
    ]


def test_the_policy_of_the_preemptor_counts() -> None:
    rule = PolicyRule(
        "vip", lambda each: each.name == "urgent", replace(KUBE_SCHEDULER, priority_gap=90)
    )
    inputs = DecisionInputs(
        PREEMPTOR, two_nodes(batch=5, web=50), SchedulerRules(policy_rules=(rule,))
    )
    found = find_counterfactuals("batch", inputs)
    assert str(found[0]) == "priority of default/batch + 6 (to 11): the preemptor stays pending"


@pytest.mark.parametrize(
    ("preemptor", "message"),
    [
        (PREEMPTOR, "is no victim on n1; expected one of default/batch (UID batch)"),
        (
            structs.replace(PREEMPTOR, preempts=False),
            "is no victim; expected one of the victims, and there are none",
        ),
    ],
    ids=["another victim", "no victim"],
)
def test_a_pod_that_is_no_victim_is_an_error(preemptor: Pod, message: str) -> None:
    with pytest.raises(IrreproducibleDecisionError) as raised:
        found_for("web", two_nodes(), preemptor)
    assert str(raised.value) == f"decision about default/urgent: pod with UID web {message}"


def test_an_engine_that_decides_otherwise_is_an_error() -> None:
    rules = SchedulerRules(policy=replace(KUBE_SCHEDULER, priority_gap=200))
    inputs = DecisionInputs(PREEMPTOR, two_nodes(), rules)
    with pytest.raises(IrreproducibleDecisionError, match="expected the same candidate of both"):
        find_counterfactuals("batch", inputs, make_engine=lambda _: ReferenceEngine())


def test_what_is_found_in_time_is_the_beginning_of_all() -> None:
    inputs = DecisionInputs(PREEMPTOR, two_nodes(), SchedulerRules())
    everything = find_counterfactuals("batch", inputs)
    found = []
    for steps in count():
        try:
            calls = count()
            found.append(
                find_counterfactuals("batch", inputs, lambda: next(calls) < steps)  # noqa: B023
            )
        except DeadlineExceededError:
            assert not found
        if found and found[-1] == everything:
            break
    assert [len(each) for each in found] == sorted(len(each) for each in found)
    assert {len(each) for each in found} == set(range(len(everything) + 1))
    assert all(each == everything[: len(each)] for each in found)
