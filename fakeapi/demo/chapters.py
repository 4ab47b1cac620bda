"""The steps of the demo and their conditions.

A step is complete when it has no unmet conditions. If it does not complete in time, the unmet
conditions are the error message. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Final

from fakeapi.demo.sights import PRESSURE_TAINT, SeenNode, SeenPod, Sight
from fakeapi.scenarios.loop import Story


class Chapter(Enum):
    """A step of the demo; the value is its headline."""

    START = "nodes register, webhooks are made known"
    FILLING = "the cluster fills"
    BURST = "a burst of important pods comes to the full cluster"
    PRESSURE = "a pod leaks, its node runs short of memory"
    END = "the loop is closed"


def lacks(chapter: Chapter, sight: Sight, story: Story) -> tuple[str, ...]:
    """Return the conditions that are not met yet, as messages."""
    return tuple(_LACKING[chapter](sight, story))


def unplaced(workload: str, sight: Sight, story: Story) -> tuple[str, ...]:
    """Return a message about the pods of a workload without a node; () if all have one."""
    wanted = story.wanted[workload]
    placed = sum(bool(pod.node) for pod in sight.pods_of(workload))
    return () if placed == wanted else (f"{workload}: {placed} of {wanted} pods have a node",)


def waits(pod: SeenPod, sight: Sight) -> bool:
    """Return whether a pod has no node and a FailedScheduling Event."""
    return pod.active and not pod.node and bool(sight.refusal(pod))


def short_nodes(sight: Sight) -> list[SeenNode]:
    """Return the nodes that report MemoryPressure."""
    return [node for node in sight.nodes if node.short_of_memory]


def _start(sight: Sight, story: Story) -> Iterator[str]:
    ready = sum(node.ready for node in sight.nodes)
    if ready < story.nodes:
        yield f"{ready} of {story.nodes} nodes are ready"
    if not sight.spreading:
        yield "the webhooks of WorkloadSpreads are not registered"


def _filling(sight: Sight, story: Story) -> Iterator[str]:
    for workload, wanted in story.wanted.items():
        running = sum(pod.ready for pod in sight.pods_of(workload))
        if running != wanted:
            yield f"{workload}: {running} of {wanted} pods run"


def _burst(sight: Sight, story: Story) -> Iterator[str]:
    for key in story.coming:
        pod = sight.pod(key)
        if pod is None or not pod.node:
            yield f"{key} has no node"
        elif not pod.ready:
            yield f"{key} does not run yet"
    yield from _preemption(sight)
    yield from _replacing(sight, story)


def _preemption(sight: Sight) -> Iterator[str]:
    gone = sight.preempted()
    if not gone:
        yield "nobody was preempted"
    present = {pod.uid for pod in sight.pods}
    for each in gone:
        if each.uid in present:
            yield f"{each.pod} was preempted, and is still there"
        if sight.deliberation(each) is None:
            yield f"{each.pod} was preempted, and no answer of the extender says so"


def _replacing(sight: Sight, story: Story) -> Iterator[str]:
    for workload, wanted in story.wanted.items():
        there = len(sight.pods_of(workload))
        if there != wanted:
            yield f"{workload}: {there} of {wanted} pods are there"
    replacements = [pod for pod in sight.replacements() if pod.active]
    for pod in replacements:
        if pod.nominated and not pod.node:
            yield f"{pod.key} is promised a place on {pod.nominated}"
        elif not pod.ready and not waits(pod, sight):
            yield f"{pod.key} neither runs nor is said to wait"
    if not any(waits(pod, sight) for pod in replacements):
        yield "no replacement waits for a node"


def _pressure(sight: Sight, story: Story) -> Iterator[str]:
    if not [pod for pod in sight.evicted() if pod.workload == story.leaking]:
        yield f"no pod of {story.leaking} was evicted"
    short = short_nodes(sight)
    if not short:
        yield "no node reports MemoryPressure"
    for node in short:
        if f"{PRESSURE_TAINT}:NoSchedule" not in node.taints:
            yield f"{node.name} is short of memory and not tainted"
    yield from _replacing(sight, story)


def _nothing(_sight: Sight, _story: Story) -> Iterator[str]:
    yield from ()


_LACKING: Final[Mapping[Chapter, Callable[[Sight, Story], Iterator[str]]]] = {
    Chapter.START: _start,
    Chapter.FILLING: _filling,
    Chapter.BURST: _burst,
    Chapter.PRESSURE: _pressure,
    Chapter.END: _nothing,
}
