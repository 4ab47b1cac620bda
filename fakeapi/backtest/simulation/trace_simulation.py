"""The simulation of a trace under a policy: a whole cluster on a virtual clock.

    trace ──submits──> API server <──> job controller, scheduler, kubelets
                           │                 │
                           └──> observer     └──> Reprieve with the policy

Each job of the trace is a Job of the API server. Its pods run for as long as they have work left.
The Job controller replaces pods that are preempted, and the replacements queue again, so that
cascades count. Nodes exist from the start and stay. Nothing but time is virtual: the components
are those of every fake cluster, and Reprieve's answers are those of its HTTP server.

A finished Job is deleted at once with its pods, as if it had ``ttlSecondsAfterFinished: 0``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from fakeapi.backtest.simulation.checkpoints import CheckpointWriter, checkpoint_annotations
from fakeapi.backtest.simulation.observation import RunObserver
from fakeapi.backtest.simulation.pod_work import SECOND_NS, WorkByPod, WorkScript
from fakeapi.backtest.simulation.resource_use import ResourceUse
from fakeapi.backtest.simulation.simulated_scheduler import (
    HISTORY,
    LatestDecisions,
    SimulatedPolicy,
    in_process_reprieve,
    scheduler_options,
)
from fakeapi.backtest.simulation.submission import Submission
from fakeapi.backtest.simulation.trace_objects import node_document, priority_class_document
from fakeapi.backtest.statistics import RunStatistics
from fakeapi.backtest.traces.trace import Trace, TraceJob
from fakeapi.simulation.world import ComponentOptions, Upkeep, create_world
from fakeapi.testing.virtual_cluster import SocketlessCluster
from policies.kubernetes.releases import NEWEST

COMPONENTS: Final = ("job", "kubelet", "scheduler")
JITTER_NS: Final = 60 * SECOND_NS
DRAIN_NS: Final = 24 * 3600 * SECOND_NS

_START_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class SimulationPlan:
    """One simulation: a trace or a part of it, a policy, and a seed.

    The seed decides what kube-scheduler leaves to chance, and delays each job by up to
    ``jitter_ns``, so that several seeds show how much of a result is chance.
    ``drain_ns`` after the last job was submitted, the simulation ends at the latest.
    """

    trace: Trace
    policy: SimulatedPolicy
    seed: int = 0
    upstream: str = NEWEST.name
    jitter_ns: int = JITTER_NS
    drain_ns: int = DRAIN_NS


def simulate(plan: SimulationPlan) -> RunStatistics:
    """Run a simulation and return its statistics. Raise TraceError and ConfigError."""
    return asyncio.run(_simulate(plan))


def simulated_ns(trace: Trace) -> int:
    """Return the time from the first to the last submission of a trace, in nanoseconds."""
    whole = (trace.summary.last_ns - trace.summary.first_ns) // trace.rate
    end = whole if trace.end_ns is None else min(whole, trace.end_ns)
    return max(0, end - trace.start_ns)


async def _simulate(plan: SimulationPlan) -> RunStatistics:
    clock, work, trace = VirtualClock(), WorkByPod(), plan.trace
    use = ResourceUse(clock.now_ns(), simulated_ns(trace) + plan.drain_ns)
    history = LatestDecisions()
    class_names = {each.value: each.name for each in trace.priority_classes}
    observer = RunObserver(clock, work, use, class_names, history.explain)
    reprieve = in_process_reprieve(plan.policy, plan.upstream, history)
    options = ComponentOptions(
        WorkScript(work=work),
        scheduler_options(plan.upstream, reprieve),
        upkeep=Upkeep.NONE,
        on_event=observer.observe_event,
    )
    world = create_world(clock, plan.seed, HISTORY, component_options=options)
    async with AsyncExitStack() as stack:
        cluster = SocketlessCluster(world, COMPONENTS, clock)
        stack.callback(world.api.store.tap(observer.observe_write))
        await stack.enter_async_context(cluster)
        cluster.load([node_document(node) for node in trace.nodes])
        cluster.load([priority_class_document(each) for each in trace.priority_classes])
        await clock.advance(_START_SECONDS)
        if reprieve is not None:
            await stack.enter_async_context(reprieve.following(cluster))
        await stack.enter_async_context(_writing_checkpoints(plan, cluster, work))
        submission = Submission(cluster, work, observer, class_names)
        await stack.enter_async_context(submission.deleting_finished_jobs())
        await submission.submit_all(_delayed(plan))
        await submission.drain(plan.drain_ns)
        return observer.finish()


@asynccontextmanager
async def _writing_checkpoints(
    plan: SimulationPlan, cluster: SocketlessCluster, work: WorkByPod
) -> AsyncIterator[None]:
    annotations = checkpoint_annotations(plan.policy.source)
    writer = CheckpointWriter(cluster.client, cluster.clock, work, annotations)
    stop = cluster.world.api.store.tap(writer.observe_write)
    try:
        async with writer.writing():
            yield
    finally:
        stop()


def _delayed(plan: SimulationPlan) -> Iterator[TraceJob]:
    """Delay each job by a random time; keep the order."""
    rng, latest = Random(plan.seed), 0  # noqa: S311 - repeatable
    for job in plan.trace.jobs():
        latest = max(latest, job.submitted_ns + rng.randint(0, plan.jitter_ns))
        yield replace(job, submitted_ns=latest)
