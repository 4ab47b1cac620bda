"""Units of a resource that a preemption leaves on a node: the example of the module."""

from __future__ import annotations

from msgspec.structs import replace

from policies.kubernetes.snapshot import Snapshot
from policies.preemption.costs.fragmentation import NVIDIA_GPU, FragmentationCriterion
from policies.preemption.policy import Policy, SchedulerRules
from tests.builders import node, pod, snapshot
from tests.properties.engines import assert_agreement

RULES = SchedulerRules(policy=Policy("packed", candidates=(FragmentationCriterion(),)))


def gpus(count: int) -> dict[str, str]:
    """Return a number of GPUs as a node has them, or as a pod requests them."""
    return {NVIDIA_GPU: f"{count}"}


NODES: Snapshot = snapshot(
    *(node(name, cpu="9", others=gpus(8)) for name in "abc"),
    pod("whole", on="a", others=gpus(8)),
    pod("half", on="b", others=gpus(4)),
    pod("other", on="b", priority=9, others=gpus(3)),
    pod("packed", on="c", others=gpus(4)),
    pod("beside", on="c", priority=9, others=gpus(4)),
)
FOUR = pod("new", priority=5, others=gpus(4))


def test_the_node_on_which_the_fewest_units_remain_is_preferred() -> None:
    decision = assert_agreement(FOUR, NODES, RULES)
    key = FragmentationCriterion().bind(FOUR, NODES).key
    assert {name: key(each) for name, each in decision.candidates.items()} == {
        "a": 4,
        "b": 1,
        "c": 0,
    }
    assert decision.chosen is not None
    assert (decision.chosen.node, decision.decided_by) == ("c", "least fragmentation")


def test_a_resource_that_no_pod_requests() -> None:
    of_nodes = snapshot(
        *(node(name, cpu="1", others=gpus(count)) for name, count in (("a", 2), ("b", 1))),
        *(pod(f"on-{name}", on=name, cpu="1") for name in "ab"),
    )
    decision = assert_agreement(replace(pod("new", cpu="1"), priority=5), of_nodes, RULES)
    assert decision.chosen is not None
    assert decision.chosen.node == "b"
