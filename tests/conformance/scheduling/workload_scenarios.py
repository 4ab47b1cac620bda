"""Pod groups that preempt and are preempted, in many small clusters at a time."""

from __future__ import annotations

from functools import partial
from typing import Final

from tests.conformance.scheduling import composite_group_cases, pod_group_cases
from tests.conformance.scheduling.case_table import play
from tests.conformance.scheduling.environment import Environment, SchedulingScenario, Setting
from tests.conformance.scheduling.kube_scheduler import Extender

GATES: Final = ("GenericWorkload",)
ALL_GATES: Final = (
    *GATES,
    "TopologyAwareWorkloadScheduling",
    "CompositePodGroup",
    "PodGroupPreemptionPolicy",
)


async def pod_groups(env: Environment) -> None:
    """Each case has its result."""
    await play(env, [(case, case.expected()) for case in pod_group_cases.CASES])


async def composite_pod_groups(env: Environment) -> None:
    """Each case has its result."""
    await play(env, [(case, case.expected()) for case in composite_group_cases.CASES])


async def pod_groups_without_an_extender(env: Environment) -> None:
    """kube-scheduler alone has the same results, but for groups that no extender can name."""
    await play(env, [(case, case.expected_alone()) for case in pod_group_cases.CASES])


async def composite_pod_groups_without_an_extender(env: Environment) -> None:
    """kube-scheduler alone has the same results, but for groups that no extender can name."""
    await play(env, [(case, case.expected_alone()) for case in composite_group_cases.CASES])


_ALONE: Final = partial(
    Setting, extender=partial(Extender, verbs=()), serving={"search": "offered"}
)
"""The options of an extender that is configured, and never called."""
SCENARIOS: Final = [
    *(
        SchedulingScenario(scene, Setting(gates=gates, serving={"search": search}))
        for scene, gates in ((pod_groups, GATES), (composite_pod_groups, ALL_GATES))
        for search in ("offered", "cluster")
    ),
    SchedulingScenario(pod_groups_without_an_extender, _ALONE(gates=GATES)),
    SchedulingScenario(composite_pod_groups_without_an_extender, _ALONE(gates=ALL_GATES)),
]
