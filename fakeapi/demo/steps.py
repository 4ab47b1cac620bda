"""The steps of the demo and their conditions.

A step is complete when it has no unmet conditions. If it does not complete in time, the unmet
conditions are the error message. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Final

from fakeapi.demo.observed_state import PRESSURE_TAINT, ObservedNode, ObservedPod, ObservedState
from fakeapi.demo.scenarios.preemption_story import LoopScenario


class DemoStep(Enum):
    """A step of the demo; the value is its headline."""

    START = "nodes and webhooks are registered"
    FILLING = "the cluster fills"
    BURST = "a burst of high-priority pods is created in the full cluster"
    PRESSURE = "a pod leaks memory until its node reports MemoryPressure"
    END = "all steps are complete"


def unmet_conditions(step: DemoStep, state: ObservedState, story: LoopScenario) -> tuple[str, ...]:
    """Return the conditions that are not met yet, as messages."""
    return tuple(_STEP_CONDITIONS[step](state, story))


def unplaced_pods(workload: str, state: ObservedState, story: LoopScenario) -> tuple[str, ...]:
    """Return a message about the pods of a workload without a node; () if all have one."""
    wanted = story.wanted_replicas[workload]
    placed = sum(bool(pod.node) for pod in state.pods_of(workload))
    return () if placed == wanted else (f"{workload}: {placed} of {wanted} pods have a node",)


def is_unschedulable(pod: ObservedPod, state: ObservedState) -> bool:
    """Return whether a pod has no node and a FailedScheduling Event."""
    return pod.active and not pod.node and bool(state.scheduling_failure(pod))


def nodes_under_memory_pressure(state: ObservedState) -> list[ObservedNode]:
    """Return the nodes that report MemoryPressure."""
    return [node for node in state.nodes if node.memory_pressure]


def _start(sight: ObservedState, story: LoopScenario) -> Iterator[str]:
    ready = sum(node.ready for node in sight.nodes)
    if ready < story.nodes:
        yield f"{ready} of {story.nodes} nodes are ready"
    if not sight.webhooks_registered:
        yield "the webhooks of WorkloadSpreads are not registered"


def _filling(sight: ObservedState, story: LoopScenario) -> Iterator[str]:
    for workload, wanted in story.wanted_replicas.items():
        running = sum(pod.ready for pod in sight.pods_of(workload))
        if running != wanted:
            yield f"{workload}: {running} of {wanted} pods run"


def _burst(sight: ObservedState, story: LoopScenario) -> Iterator[str]:
    for key in story.burst_pods:
        pod = sight.pod(key)
        if pod is None or not pod.node:
            yield f"{key} has no node"
        elif not pod.ready:
            yield f"{key} does not run yet"
    yield from _preemption(sight)
    yield from _replacing(sight, story)


def _preemption(sight: ObservedState) -> Iterator[str]:
    gone = sight.preempted()
    if not gone:
        yield "no pod was preempted"
    present = {pod.uid for pod in sight.pods}
    for each in gone:
        if each.uid in present:
            yield f"{each.pod} was preempted, but still exists"
        if sight.decision_for(each) is None:
            yield f"{each.pod} was preempted, but is not a victim of any extender response"


def _replacing(sight: ObservedState, story: LoopScenario) -> Iterator[str]:
    for workload, wanted in story.wanted_replicas.items():
        there = len(sight.pods_of(workload))
        if there != wanted:
            yield f"{workload}: {there} of {wanted} pods exist"
    replacements = [pod for pod in sight.replacements() if pod.active]
    for pod in replacements:
        if pod.nominated and not pod.node:
            yield f"{pod.key} is nominated to {pod.nominated} and not bound yet"
        elif not pod.ready and not is_unschedulable(pod, sight):
            yield f"{pod.key} is neither running nor reported as unschedulable"
    if not any(is_unschedulable(pod, sight) for pod in replacements):
        yield "no replacement is unschedulable"


def _pressure(sight: ObservedState, story: LoopScenario) -> Iterator[str]:
    if not [pod for pod in sight.evicted() if pod.workload == story.leaking_workload]:
        yield f"no pod of {story.leaking_workload} was evicted"
    short = nodes_under_memory_pressure(sight)
    if not short:
        yield "no node reports MemoryPressure"
    for node in short:
        if f"{PRESSURE_TAINT}:NoSchedule" not in node.taints:
            yield f"{node.name} reports MemoryPressure and is not tainted"
    yield from _replacing(sight, story)


def _nothing(_sight: ObservedState, _story: LoopScenario) -> Iterator[str]:
    yield from ()


_STEP_CONDITIONS: Final[
    Mapping[DemoStep, Callable[[ObservedState, LoopScenario], Iterator[str]]]
] = {
    DemoStep.START: _start,
    DemoStep.FILLING: _filling,
    DemoStep.BURST: _burst,
    DemoStep.PRESSURE: _pressure,
    DemoStep.END: _nothing,
}
