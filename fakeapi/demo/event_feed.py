"""The changes between two observed states, one line each, in the order of the scenario.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fakeapi.demo.decisions import ExplainedDecision
from fakeapi.demo.observed_state import PRESSURE_TAINT, ObservedPod, ObservedState
from fakeapi.demo.scenarios.preemption_story import LoopScenario
from fakeapi.demo.steps import is_unschedulable, nodes_under_memory_pressure


def describe_changes(
    before: ObservedState, after: ObservedState, scenario: LoopScenario
) -> list[str]:
    """Return a line for each change."""
    return [
        *_filled_workloads(before, after, scenario),
        *_extender_decisions(before, after),
        *_preempted_pods(before, after),
        *_running_burst_pods(before, after, scenario),
        *_memory_pressure(before, after),
        *_evicted_pods(before, after),
        *_replacement_pods(before, after),
    ]


def describe_choice(decision: ExplainedDecision) -> str:
    """Return the reason for which a candidate was chosen."""
    if not decision.decided_by:
        return "the only candidate"
    return f"best of {decision.candidates} by {decision.decided_by}"


def short_names(keys: Iterable[str]) -> str:
    """Return names without their namespaces."""
    return ", ".join(key.rpartition("/")[2] for key in keys)


def _filled_workloads(
    before: ObservedState, after: ObservedState, scenario: LoopScenario
) -> Iterator[str]:
    if after.pods_before_burst:
        return
    for workload, replicas in scenario.wanted_replicas.items():
        ready = [pod for pod in after.pods_of(workload) if pod.ready]
        was = sum(pod.ready for pod in before.pods_of(workload))
        if was != replicas == len(ready):
            runs = "1 pod runs" if replicas == 1 else f"{replicas} pods run"
            yield f"{workload}: {runs}{_by_subset(ready)}"


def _by_subset(pods: Iterable[ObservedPod]) -> str:
    counts: dict[str, int] = {}
    for pod in pods:
        counts[pod.subset] = counts.get(pod.subset, 0) + 1
    parts = [f"{count} {subset}" for subset, count in sorted(counts.items()) if subset]
    return f" ({', '.join(parts)})" if parts else ""


def _extender_decisions(before: ObservedState, after: ObservedState) -> Iterator[str]:
    for each in after.decisions[len(before.decisions) :]:
        victims = short_names(victim.pod for victim in each.victims)
        reprieved = short_names(pod.pod for pod in each.reprieved) or "none"
        yield f"the extender picks {each.node} for {each.pod}: {describe_choice(each)}"
        yield f"  victims: {victims}; reprieved: {reprieved}"


def _preempted_pods(before: ObservedState, after: ObservedState) -> Iterator[str]:
    earlier = {each.uid for each in before.preempted()}
    fresh = [each for each in after.preempted() if each.uid not in earlier]
    if fresh:
        yield f"the scheduler preempts: {short_names(each.pod for each in fresh)}"


def _running_burst_pods(
    before: ObservedState, after: ObservedState, scenario: LoopScenario
) -> Iterator[str]:
    for key in scenario.burst_pods:
        was, now = before.pod(key), after.pod(key)
        if now is not None and now.ready and (was is None or not was.ready):
            yield f"{key} runs on {now.node}"


def _replacement_pods(before: ObservedState, after: ObservedState) -> Iterator[str]:
    was = {pod.uid: pod for pod in before.pods}
    by_outcome: dict[str, list[str]] = {}
    for pod in after.replacements():
        old = was.get(pod.uid)
        if is_unschedulable(pod, after) and not (old and is_unschedulable(old, before)):
            outcome = f"FailedScheduling: {after.scheduling_failure(pod)}"
        elif pod.node and not (old and old.node):
            outcome = f"placed on {pod.node}"
        else:
            continue
        subset = f" ({pod.subset})" if pod.subset else ""
        by_outcome.setdefault(f"{subset}, {outcome}", []).append(pod.key)
    for outcome, pods in by_outcome.items():
        yield f"replacement: {short_names(pods)}{outcome}"


def _evicted_pods(before: ObservedState, after: ObservedState) -> Iterator[str]:
    earlier = {pod.uid for pod in before.evicted()}
    for pod in after.evicted():
        if pod.uid not in earlier:
            yield f"{pod.key} is evicted from {pod.node}: {pod.message.strip()}"


def _memory_pressure(before: ObservedState, after: ObservedState) -> Iterator[str]:
    was = {node.name: node for node in before.nodes}
    for node in nodes_under_memory_pressure(after):
        if node.name not in was or not was[node.name].memory_pressure:
            yield f"{node.name} reports MemoryPressure"
    for node in after.nodes:
        before_taints = was[node.name].taints if node.name in was else ()
        for taint in node.taints:
            if taint.startswith(PRESSURE_TAINT) and taint not in before_taints:
                yield f"{node.name} is tainted {taint}"
