"""Pod groups that preempt and are preempted, in many small clusters at a time."""

from __future__ import annotations

from functools import partial
from typing import Final

from tests.conformance.scheduling import pod_group_cases
from tests.conformance.scheduling.case_table import play
from tests.conformance.scheduling.environment import Environment, SchedulingScenario, Setting
from tests.conformance.scheduling.kube_scheduler import Extender

GATES: Final = ("GenericWorkload",)


async def pod_groups_and_pods(env: Environment) -> None:
    """Each case has its result."""
    await play(env, [(case, case.expected()) for case in pod_group_cases.CASES])


async def pod_groups_and_pods_without_an_extender(env: Environment) -> None:
    """kube-scheduler alone has the same results, but for groups that no extender can name."""
    await play(env, [(case, case.expected_alone()) for case in pod_group_cases.CASES])


SCENARIOS: Final = [
    *(
        SchedulingScenario(pod_groups_and_pods, Setting(gates=GATES, serving={"search": search}))
        for search in ("offered", "cluster")
    ),
    SchedulingScenario(
        pod_groups_and_pods_without_an_extender,
        Setting(extender=partial(Extender, verbs=()), gates=GATES, serving={"search": "offered"}),
    ),
]
