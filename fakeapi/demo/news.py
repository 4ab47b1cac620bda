"""The changes between two observed states, one line each, in the order of the scenario.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fakeapi.demo.chapters import short_nodes, waits
from fakeapi.demo.deliberations import Deliberation
from fakeapi.demo.sights import PRESSURE_TAINT, SeenPod, Sight
from fakeapi.scenarios.loop import Story


def news(before: Sight, after: Sight, story: Story) -> list[str]:
    """Return a line for each change."""
    return [
        *_filled(before, after, story),
        *_answered(before, after),
        *_told_to_go(before, after),
        *_arrived(before, after, story),
        *_strained(before, after),
        *_evicted(before, after),
        *_replaced(before, after),
    ]


def why(deliberation: Deliberation) -> str:
    """Return the reason for which a candidate was chosen."""
    if not deliberation.decided_by:
        return "the only candidate"
    return f"best of {deliberation.candidates} by {deliberation.decided_by}"


def named(keys: Iterable[str]) -> str:
    """Return names without their namespaces."""
    return ", ".join(key.rpartition("/")[2] for key in keys)


def _filled(before: Sight, after: Sight, story: Story) -> Iterator[str]:
    if after.before:
        return
    for workload, wanted in story.wanted.items():
        there = [pod for pod in after.pods_of(workload) if pod.ready]
        was = sum(pod.ready for pod in before.pods_of(workload))
        if was != wanted == len(there):
            runs = "1 pod runs" if wanted == 1 else f"{wanted} pods run"
            yield f"{workload}: {runs}{_by_subset(there)}"


def _by_subset(pods: Iterable[SeenPod]) -> str:
    counts: dict[str, int] = {}
    for pod in pods:
        counts[pod.subset] = counts.get(pod.subset, 0) + 1
    parts = [f"{count} {subset}" for subset, count in sorted(counts.items()) if subset]
    return f" ({', '.join(parts)})" if parts else ""


def _answered(before: Sight, after: Sight) -> Iterator[str]:
    for each in after.deliberations[len(before.deliberations) :]:
        goes = named(victim.pod for victim in each.victims)
        stays = named(pod.pod for pod in each.spared) or "nobody"
        yield f"the extender gives {each.pod} node {each.node}: {why(each)}"
        yield f"  goes: {goes}; spared: {stays}"


def _told_to_go(before: Sight, after: Sight) -> Iterator[str]:
    known = {each.uid for each in before.preempted()}
    fresh = [each for each in after.preempted() if each.uid not in known]
    if fresh:
        yield f"the scheduler tells to go: {named(each.pod for each in fresh)}"


def _arrived(before: Sight, after: Sight, story: Story) -> Iterator[str]:
    for key in story.coming:
        was, now = before.pod(key), after.pod(key)
        if now is not None and now.ready and (was is None or not was.ready):
            yield f"{key} runs on {now.node}"


def _replaced(before: Sight, after: Sight) -> Iterator[str]:
    was = {pod.uid: pod for pod in before.pods}
    told: dict[str, list[str]] = {}
    for pod in after.replacements():
        old = was.get(pod.uid)
        if waits(pod, after) and not (old and waits(old, before)):
            fate = f"FailedScheduling: {after.refusal(pod)}"
        elif pod.node and not (old and old.node):
            fate = f"placed on {pod.node}"
        else:
            continue
        subset = f" ({pod.subset})" if pod.subset else ""
        told.setdefault(f"{subset}, {fate}", []).append(pod.key)
    for fate, pods in told.items():
        yield f"made instead: {named(pods)}{fate}"


def _evicted(before: Sight, after: Sight) -> Iterator[str]:
    known = {pod.uid for pod in before.evicted()}
    for pod in after.evicted():
        if pod.uid not in known:
            yield f"{pod.key} is evicted from {pod.node}: {pod.message.strip()}"


def _strained(before: Sight, after: Sight) -> Iterator[str]:
    was = {node.name: node for node in before.nodes}
    for node in short_nodes(after):
        if node.name not in was or not was[node.name].short_of_memory:
            yield f"{node.name} reports MemoryPressure"
    for node in after.nodes:
        before_taints = was[node.name].taints if node.name in was else ()
        for taint in node.taints:
            if taint.startswith(PRESSURE_TAINT) and taint not in before_taints:
                yield f"{node.name} is tainted {taint}"
