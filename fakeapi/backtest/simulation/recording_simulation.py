"""A recording as a workload: what clients did is played, and a policy decides who is preempted.

The scheduler, the ReplicaSet and disruption controllers and the kubelets of a fake cluster are
attached, as in ``reprieve replay``: what theirs did in the recording is left to them. A pod that
ended by itself in the recording runs as long again. Every other pod runs until it is deleted, since
it is not known how long it would have run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final

from extender.kube.decoders.cluster_objects import decode_priority_class
from extender.kube.decoders.pods import decode_pod
from extender.recording.files import Recording
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from fakeapi.backtest.simulation.observation import RunObserver
from fakeapi.backtest.simulation.observed_pod import ObservedPod, decode_observed_pod
from fakeapi.backtest.simulation.pod_work import PodWork
from fakeapi.backtest.simulation.resource_use import ResourceUse, amounts_of
from fakeapi.backtest.simulation.simulated_scheduler import (
    HISTORY,
    LatestDecisions,
    SimulatedPolicy,
    in_process_reprieve,
    scheduler_options,
)
from fakeapi.backtest.statistics import RunStatistics
from fakeapi.backtest.traces.trace import TraceJob
from fakeapi.controlplane.kubelet.scripts import (
    DEFAULT_POD_SCRIPT,
    ContainerScript,
    Exit,
    Labels,
    PodScript,
    Run,
    SimulationScript,
)
from fakeapi.replay.player import Player, replay
from fakeapi.simulation.world import ComponentOptions, Upkeep, create_world
from fakeapi.testing.virtual_cluster import SocketlessCluster
from policies.kubernetes.releases import NEWEST, Release, release

ATTACHED: Final = ("scheduler", "replicaset", "disruption", "kubelet")

_ENDED: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class RecordedPlan:
    """One simulation of a recording under a policy; the seed decides what is left to chance."""

    recording: Recording
    policy: SimulatedPolicy
    seed: int = 0
    upstream: str = NEWEST.name


def simulate_recording(plan: RecordedPlan) -> RunStatistics:
    """Play a recording under a policy and return its statistics. Raise ReplayError, ConfigError."""
    return asyncio.run(_simulate(plan))


async def _simulate(plan: RecordedPlan) -> RunStatistics:
    recording = plan.recording
    clock = VirtualClock(recording.header.start_ns)
    use = ResourceUse(clock.now_ns(), recording.duration_ns)
    work, history = RecordedWork(release(plan.upstream)), LatestDecisions()
    observer = RunObserver(clock, work, use, _class_names(recording), history.explain)
    reprieve = in_process_reprieve(plan.policy, plan.upstream, history)
    options = ComponentOptions(
        RecordedScript(ends=dict(_own_ends(recording))),
        scheduler_options(plan.upstream, reprieve),
        upkeep=Upkeep.NONE,
        on_event=observer.observe_event,
    )
    world = create_world(clock, plan.seed, HISTORY, component_options=options)
    async with AsyncExitStack() as stack:
        stack.callback(world.api.store.tap(observer.observe_write))
        cluster = SocketlessCluster(world, ATTACHED, clock)
        await stack.enter_async_context(cluster)
        if reprieve is not None:
            await stack.enter_async_context(reprieve.following(cluster))
        await replay(Player(world, recording, ATTACHED), clock)
        return observer.finish()


class RecordedWork:
    """The work of recorded pods, and of those that replace them: of each by itself."""

    def __init__(self, followed: Release) -> None:
        self._release = followed
        self._pods: list[PodWork] = []

    def begin(self, pod: ObservedPod, raw: bytes) -> PodWork:
        """Return the work of a new pod."""
        decoded, meta = decode_pod(raw, self._release), pod.metadata
        requests = amounts_of(decoded.requests)
        job = TraceJob(meta.name, meta.namespace, decoded.priority, 0, 0, requests)
        work = PodWork(job, 0, run_ns=None, checkpoint_ns=None)
        self._pods.append(work)
        return work

    def unfinished(self) -> Iterator[PodWork]:
        """Yield the pods that have not ended by themselves."""
        return (pod for pod in self._pods if not pod.finished)


@dataclass(frozen=True, slots=True)
class RecordedScript(SimulationScript):
    """The script of kubelets: pods in ``ends`` exit by themselves, after a time and with a code."""

    ends: dict[tuple[str, str], Exit] = field(default_factory=dict)
    events: bool = False

    def for_pod(
        self,
        name: str,
        namespace: str,
        node: str,  # noqa: ARG002
        labels: Labels | None,  # noqa: ARG002
    ) -> PodScript:
        """Return the script of a pod."""
        end = self.ends.get((namespace, name))
        if end is None:
            return DEFAULT_POD_SCRIPT
        return PodScript(default=ContainerScript((Run(exit=end),)))


def _own_ends(recording: Recording) -> Iterator[tuple[tuple[str, str], Exit]]:
    """Yield the pods that ended by themselves, and how."""
    for event in recording.events:
        if event.resource != "pods" or not event.is_object_event:
            continue
        pod = decode_observed_pod(event.raw)
        phase = pod.status.phase
        if phase in _ENDED and not pod.is_disrupted and pod.started_ns:
            ran_ns = pod.ran_ns(recording.header.start_ns + event.at_ns)
            code = 0 if phase == "Succeeded" else 1
            yield (pod.metadata.namespace, pod.metadata.name), Exit(ran_ns, code)


def _class_names(recording: Recording) -> dict[int, str]:
    classes = (
        decode_priority_class(event.raw)
        for event in recording.events
        if event.is_object_event and event.kind == "PriorityClass"
    )
    return {each.value: each.name for each in classes}
