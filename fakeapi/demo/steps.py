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


def unmet_conditions(
    step: DemoStep, state: ObservedState, scenario: LoopScenario
) -> tuple[str, ...]:
    """Return the conditions that are not met yet, as messages."""
    return tuple(_STEP_CONDITIONS[step](state, scenario))


def unplaced_pods(workload: str, state: ObservedState, scenario: LoopScenario) -> tuple[str, ...]:
    """Return a message about the pods of a workload without a node; () if all have one."""
    replicas = scenario.wanted_replicas[workload]
    placed = sum(bool(pod.node) for pod in state.pods_of(workload))
    return () if placed == replicas else (f"{workload}: {placed} of {replicas} pods have a node",)


def is_unschedulable(pod: ObservedPod, state: ObservedState) -> bool:
    """Return whether a pod has no node and a FailedScheduling Event."""
    return pod.active and not pod.node and bool(state.scheduling_failure(pod))


def nodes_under_memory_pressure(state: ObservedState) -> list[ObservedNode]:
    """Return the nodes that report MemoryPressure."""
    return [node for node in state.nodes if node.memory_pressure]


def _start(state: ObservedState, scenario: LoopScenario) -> Iterator[str]:
    ready = sum(node.ready for node in state.nodes)
    if ready < scenario.nodes:
        yield f"{ready} of {scenario.nodes} nodes are ready"
    if not state.webhooks_registered:
        yield "the webhooks of WorkloadSpreads are not registered"


def _filling(state: ObservedState, scenario: LoopScenario) -> Iterator[str]:
    for workload, replicas in scenario.wanted_replicas.items():
        running = sum(pod.ready for pod in state.pods_of(workload))
        if running != replicas:
            yield f"{workload}: {running} of {replicas} pods run"


def _burst(state: ObservedState, scenario: LoopScenario) -> Iterator[str]:
    for key in scenario.burst_pods:
        pod = state.pod(key)
        if pod is None or not pod.node:
            yield f"{key} has no node"
        elif not pod.ready:
            yield f"{key} does not run yet"
    yield from _preemption(state)
    yield from _replacing(state, scenario)


def _preemption(state: ObservedState) -> Iterator[str]:
    preempted = state.preempted()
    if not preempted:
        yield "no pod was preempted"
    present = {pod.uid for pod in state.pods}
    for each in preempted:
        if each.uid in present:
            yield f"{each.pod} was preempted, but still exists"
        if state.decision_for(each) is None:
            yield f"{each.pod} was preempted, but is not a victim of any extender response"


def _replacing(state: ObservedState, scenario: LoopScenario) -> Iterator[str]:
    for workload, replicas in scenario.wanted_replicas.items():
        count = len(state.pods_of(workload))
        if count != replicas:
            yield f"{workload}: {count} of {replicas} pods exist"
    replacements = [pod for pod in state.replacements() if pod.active]
    for pod in replacements:
        if pod.nominated and not pod.node:
            yield f"{pod.key} is nominated to {pod.nominated} and not bound yet"
        elif not pod.ready and not is_unschedulable(pod, state):
            yield f"{pod.key} is neither running nor reported as unschedulable"
    if not any(is_unschedulable(pod, state) for pod in replacements):
        yield "no replacement is unschedulable"


def _pressure(state: ObservedState, scenario: LoopScenario) -> Iterator[str]:
    if not [pod for pod in state.evicted() if pod.workload == scenario.leaking_workload]:
        yield f"no pod of {scenario.leaking_workload} was evicted"
    short = nodes_under_memory_pressure(state)
    if not short:
        yield "no node reports MemoryPressure"
    for node in short:
        if f"{PRESSURE_TAINT}:NoSchedule" not in node.taints:
            yield f"{node.name} reports MemoryPressure and is not tainted"
    yield from _replacing(state, scenario)


_STEP_CONDITIONS: Final[
    Mapping[DemoStep, Callable[[ObservedState, LoopScenario], Iterator[str]]]
] = {
    DemoStep.START: _start,
    DemoStep.FILLING: _filling,
    DemoStep.BURST: _burst,
    DemoStep.PRESSURE: _pressure,
    DemoStep.END: lambda _state, _scenario: iter(()),
}
