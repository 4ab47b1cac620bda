"""The component ``scheduler``: assigns pods of its profiles to nodes, one after another.

:mod:`fakeapi.controlplane.scheduler.schedule_one` decides; this module carries the decisions out.
Binding, and since 1.33 preemption, run concurrently with the next attempts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterator
from typing import Any, Final

from extender.cluster.event_handlers import build_reflectors
from extender.cluster.readiness import InformerState
from extender.cluster.scheduler_cache import SchedulerCache
from extender.controllers.context import ControllerContext
from extender.kube.controller_runtime.controller import Controller
from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.informers.reflector import ReflectorContext
from extender.kube.informers.watch_list import WatchListReflector
from extender.kube.rest.rate_limited_log import quiet_log
from extender.kube.rest.resources import NODES, PODS
from fakeapi.controlplane.scheduler.cache import (
    CachedNode,
    CachedPod,
    NodeCache,
    PodCache,
    pod_reader,
    read_node,
)
from fakeapi.controlplane.scheduler.configuration import Profile, SchedulerConfiguration
from fakeapi.controlplane.scheduler.extender import Extender, ExtenderCallContext
from fakeapi.controlplane.scheduler.extender_http import ExtenderPost
from fakeapi.controlplane.scheduler.feasible_nodes import NodeFinder, PodAttempt, SchedulingInputs
from fakeapi.controlplane.scheduler.options import ExtenderWait, SchedulerOptions
from fakeapi.controlplane.scheduler.pod_group_cycle import (
    PodGroupAttempt,
    PodGroupCycle,
    PodGroupOutcome,
    complete_pod_group,
    preemption_for_group,
)
from fakeapi.controlplane.scheduler.preemption import (
    REQUEST_ERRORS,
    DefaultPreemption,
    Preemption,
    PreemptionExecutor,
    is_asynchronous,
    preemption_for_pod,
)
from fakeapi.controlplane.scheduler.schedule_one import (
    RETRY_AFTER_BACKOFF,
    SCHEDULER_ERROR,
    Binder,
    BindingError,
    ScheduledPod,
    SchedulingCycle,
    UnschedulablePod,
)
from fakeapi.controlplane.scheduler.scheduling_queue import ClusterEvent, SchedulingQueue
from fakeapi.controlplane.scheduler.status_writer import (
    SCHEDULED,
    Nomination,
    SchedulerStatusWriter,
    reference,
    truncate_note,
)
from policies.engine_selection import build_engine
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.decision import Candidate
from policies.preemption.filtering import reads_workloads
from policies.preemption.policy import SchedulerRules

_PREEMPTION: Final = "preemption: "
_POD_GROUP: Final = "podgroup "
"""The prefix of the queue entries of pod groups; the rest is the key of the group."""


class Scheduler:
    """The component ``scheduler``."""

    def __init__(self, context: ControllerContext, options: SchedulerOptions) -> None:
        configuration = options.configuration or SchedulerConfiguration()
        self._context = context
        self._clock = context.clock
        self._release = configuration.release
        self._playing = {
            name: SchedulingInputs(profile, build_engine(profile.rules))
            for name, profile in configuration.profiles.items()
        }
        self._cluster = SchedulerCache(
            context.clock.monotonic, self._follow, lambda: self._wake(ClusterEvent.STORAGE_CHANGED)
        )
        self._pods = PodCache(self._cluster, self._on_pod_change)
        self._nodes = NodeCache(self._cluster, self._on_node_change)
        self._post = ExtenderPost(options.extenders)
        wait = options.waiting or ExtenderWait(context.clock)
        line = ExtenderCallContext(self._post, context.clock, options.trace, self._release, wait)
        extenders = [Extender(each, line) for each in configuration.extenders]
        self._cycle = SchedulingCycle(
            NodeFinder(extenders, self._nodes),
            DefaultPreemption(extenders, self._pods, context.rng),
            extenders,
            context.rng,
            configuration.retries,
        )
        self._pod_groups = PodGroupCycle(self._cycle)
        self._writer = SchedulerStatusWriter(context.client, context.clock)
        self._recorders = {name: context.events.recorder(name) for name in self._playing}
        self._binder = Binder(context.client, extenders)
        self._backlog = SchedulingQueue(
            configuration.initial_backoff_seconds,
            configuration.max_backoff_seconds,
            configuration.unschedulable_seconds,
        )
        self._queue: WorkQueue[str] = WorkQueue(context.clock, rank=self._rank)
        self._beside: asyncio.TaskGroup
        self.controller = Controller("scheduler", self._queue, self._sync)

    async def run(self) -> None:
        """Schedule pods until cancelled or drained. Raises the first error of its tasks."""
        try:
            async with asyncio.TaskGroup() as self._beside:
                feeds = self._reflectors()
                following = [self._beside.create_task(feed.run()) for feed in feeds]
                for feed in feeds:
                    await feed.wait_settled()
                await self.controller.run()
                for task in following:
                    task.cancel()
        except ExceptionGroup as faults:
            raise faults.exceptions[0] from None
        finally:
            await self._post.close()

    def _reflectors(self) -> list[InformerState]:
        controller_context = self._context
        context = ReflectorContext(
            controller_context.client, controller_context.clock, controller_context.rng, quiet_log()
        )
        rules = _rules_that_read_most(self._playing.values())
        feeds = build_reflectors(context, self._cluster, rules)
        read = pod_reader(self._release)
        feeds["pods"] = WatchListReflector(context, PODS, read, self._pods)
        feeds["nodes"] = WatchListReflector(context, NODES, read_node, self._nodes)
        return list(feeds.values())

    def _follow(self, snapshot: Snapshot, changed: Collection[str]) -> None:
        for playing in self._playing.values():
            playing.engine.follow(snapshot, changed)

    def _entry(self, cached_pod: CachedPod) -> str:
        """Return the key of a pod's queue entry: its own, or that of its pod group."""
        model = cached_pod.model
        if isinstance(model, Pod) and model.group and self._release.simulates_pod_groups:
            return f"{_POD_GROUP}{model.namespace}/{model.group}"
        return cached_pod.key

    def _rank(self, key: str) -> int:
        if key.startswith(_POD_GROUP):
            group = self._cluster.pod_groups.groups.by_key.get(key.removeprefix(_POD_GROUP))
            return -group.priority if group else 0
        cached_pod = self._pods.cached.get(key)
        return -cached_pod.model.priority if cached_pod and isinstance(cached_pod.model, Pod) else 0

    async def _sync(self, key: str) -> float | None:
        """Try to schedule an entry; return the seconds until it is retried at the latest."""
        self._queue.cancel(key)
        self._pods.departed.clear()
        if key.startswith(_POD_GROUP):
            return await self._sync_pod_group(key)
        found, snapshot = self._pods.pending(key), self._cluster.snapshot()
        if found is None or not self._backlog.start_attempt(key, snapshot.nodes):
            return None
        cached_pod, pod = found
        if pod.terminating:
            message = f"skip schedule deleting pod: {pod.key}"
            self._recorders[cached_pod.scheduler].warning(
                reference(cached_pod), "FailedScheduling", message
            )
            return None
        case = PodAttempt(cached_pod, pod, self._playing[cached_pod.scheduler], snapshot)
        outcome = await self._cycle.schedule_pod(case)
        if not self._is_pending(cached_pod):
            return None  # deleted or bound elsewhere while extenders were called
        if isinstance(outcome, ScheduledPod):
            self._pods.assume(cached_pod, outcome.node)
            self._run_concurrently(self._bind(case, outcome.node))
            return None
        return await self._handle_failure(case, outcome)

    def _is_pending(self, cached_pod: CachedPod) -> bool:
        found = self._pods.pending(cached_pod.key)
        return found is not None and found[0].uid == cached_pod.uid

    async def _sync_pod_group(self, entry: str) -> float | None:
        """Try to schedule the waiting members of a pod group together."""
        found = self._pods.pending_members(entry.removeprefix(_POD_GROUP))
        if not found:
            self._drop(entry)
            return None
        snapshot = self._cluster.snapshot()
        attempt = complete_pod_group(found, self._playing, snapshot)
        if attempt is None:
            self._backlog.gate(entry)
            return None
        if not self._backlog.start_attempt(entry, snapshot.nodes):
            return None
        outcome = await self._pod_groups.schedule(attempt)
        if outcome.victims:
            self._evict_concurrently(entry, preemption_for_group(attempt, outcome))
        if outcome.reason == SCHEDULED:
            self._backlog.add(entry)
            await self._submit(attempt, outcome)
            return 0.0  # members that are left may preempt now
        left = self._backlog.record_failure(entry, self._clock.monotonic(), outcome.awaited)
        await self._submit(attempt, outcome)
        return left

    async def _submit(self, attempt: PodGroupAttempt, outcome: PodGroupOutcome) -> None:
        """Bind the members that are placed, and record why others are not."""
        refused: list[tuple[PodAttempt, UnschedulablePod]] = []
        for member in attempt.members:
            result = outcome.members[member.pod.uid]
            if isinstance(result, UnschedulablePod):
                refused.append((member, result))
            elif self._is_pending(member.cached):
                self._pods.assume(member.cached, result.node)
                self._run_concurrently(self._bind(member, result.node))
        for member, why in refused:
            await self._record_failure(member, why)
        try:
            await self._writer.set_group_condition(attempt.group, outcome.reason, outcome.message)
        except REQUEST_ERRORS as error:
            quiet_log().debug("pod_group_not_updated", group=attempt.group.key, error=str(error))

    async def _bind(self, case: PodAttempt, node: str) -> None:
        cached_pod = case.cached
        try:
            await self._binder.bind(cached_pod, case.pod, node)
        except BindingError as error:
            self._pods.forget(cached_pod)
            self._wake(ClusterEvent.POD_GONE)
            if self._pods.pending(cached_pod.key) is not None:
                failed = UnschedulablePod(
                    SCHEDULER_ERROR, "", RETRY_AFTER_BACKOFF, Nomination(None), str(error)
                )
                self._enqueue_after(cached_pod.key, await self._record_failure(case, failed))
                if (entry := self._entry(cached_pod)) != cached_pod.key:
                    self._enqueue(entry)
        else:
            message = f"Successfully assigned {cached_pod.key} to {node}"
            self._recorders[cached_pod.scheduler].normal(
                reference(cached_pod), "Scheduled", message
            )

    async def _handle_failure(self, case: PodAttempt, refused: UnschedulablePod) -> float | None:
        """Evict victims, if there are any, and record why the pod is not scheduled."""
        if refused.chosen is not None:
            refused = await self._preempt(case, refused, refused.chosen)
        return await self._record_failure(case, refused)

    async def _preempt(
        self, case: PodAttempt, refused: UnschedulablePod, chosen: Candidate
    ) -> UnschedulablePod:
        preemption = preemption_for_pod(case, chosen)
        if is_asynchronous(self._release):
            self._evict_concurrently(case.cached.key, preemption)
            return refused
        try:
            await self._executor(preemption).evict(preemption)
        except REQUEST_ERRORS as error:
            message = f"{refused.failure} {_PREEMPTION}{error}"
            return UnschedulablePod(refused.reason, refused.failure, refused.awaited, None, message)
        return refused

    def _evict_concurrently(self, entry: str, preemption: Preemption) -> None:
        """Start to evict the victims, and hold the preemptor's queue entry meanwhile."""
        executor = self._executor(preemption)
        victims = executor.victims(preemption)
        if victims:
            self._backlog.hold(entry)
            eviction = executor.evict_asynchronously(preemption, victims)
            self._run_concurrently(self._release_after(entry, eviction))

    async def _release_after(self, entry: str, eviction: Coroutine[Any, Any, None]) -> None:
        """Hold the preemptor back until its victims have been deleted."""
        failed = False
        try:
            await eviction
        except REQUEST_ERRORS:
            failed = True
        now = self._clock.monotonic()
        self._enqueue_after(entry, self._backlog.release(entry, now, failed=failed))

    async def _record_failure(self, case: PodAttempt, refused: UnschedulablePod) -> float | None:
        """Record that a pod was not scheduled; return the seconds until it is retried."""
        cached_pod = self._pods.cached.get(case.cached.key)
        if cached_pod is None or cached_pod.uid != case.cached.uid:
            return None
        recorder = self._recorders[case.cached.scheduler]
        recorder.warning(reference(cached_pod), "FailedScheduling", truncate_note(refused.message))
        if refused.nomination is not None:
            self._pods.nominate(cached_pod, refused.nomination.node)
        now, key = self._clock.monotonic(), cached_pod.key
        left = self._backlog.record_failure(key, now, refused.awaited, refused.hint)
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": refused.reason,
            "message": refused.message,
        }
        try:
            await self._writer.set_condition(cached_pod, condition, refused.nomination)
        except REQUEST_ERRORS as error:  # upstream continues, too; the next attempt writes again
            quiet_log().debug("pod_not_updated", pod=cached_pod.key, error=str(error))
        return left

    def _executor(self, preemption: Preemption) -> PreemptionExecutor:
        recorder = self._recorders[preemption.scheduler]
        client = self._context.client

        def displaced(pod: CachedPod) -> None:
            self._wake(ClusterEvent.OWN_CHANGE, (self._entry(pod),))

        return PreemptionExecutor(client, self._pods, self._writer, recorder, displaced)

    def _run_concurrently(self, work: Coroutine[Any, Any, None]) -> None:
        self._beside.create_task(work)

    def _enqueue_after(self, key: str, seconds: float | None) -> None:
        if seconds is not None:
            self._queue.add_after(key, seconds)

    def _wake(self, event: ClusterEvent, keys: Collection[str] = ()) -> None:
        self._enqueue_all(self._backlog.wake(event, self._clock.monotonic(), keys))

    def _wake_by_pod(self, event: ClusterEvent, node: str) -> None:
        """Wake the pods that a change of a pod on a node may help."""
        now = self._clock.monotonic()
        woken = self._backlog.wake_by_pod(event, now, node, lambda: self._cluster.snapshot().nodes)
        self._enqueue_all(woken)

    def _enqueue_all(self, woken: Iterator[tuple[str, float]]) -> None:
        for key, seconds in tuple(woken):
            self._queue.add_after(key, seconds)

    def _on_node_change(self, old: CachedNode | None, new: CachedNode | None) -> None:
        if new is None:
            self._wake(ClusterEvent.NODE_GONE)
        else:
            self._wake(ClusterEvent.NODE_CHANGED if old else ClusterEvent.NODE_ADDED)

    def _on_pod_change(self, old: CachedPod | None, new: CachedPod | None) -> None:
        if new is not None and new.pending is not None:
            self._on_pending_pod_change(old, new)
        elif (cached_pod := new or old) is not None:
            self._drop(cached_pod.key)
        was, now_is = old.node if old else "", new.node if new else ""
        if was and not now_is:
            self._wake_by_pod(ClusterEvent.POD_GONE, was)
        elif now_is and not was:
            self._wake(ClusterEvent.POD_PLACED)
        elif old and new and now_is and _may_help_others(old, new):
            self._wake_by_pod(ClusterEvent.POD_CHANGED, now_is)

    def _on_pending_pod_change(self, old: CachedPod | None, new: CachedPod) -> None:
        entry = self._entry(new)
        if entry == new.key and (new.scheduler not in self._playing or new.gates):
            self._drop(entry)
        elif old is None or old.scheduling_fields != new.scheduling_fields:
            self._enqueue(entry)

    def _enqueue(self, entry: str) -> None:
        """Add an entry to the queue, or let it be tried again."""
        if entry in self._backlog:
            self._wake(ClusterEvent.OWN_CHANGE, (entry,))
        else:
            self._backlog.add(entry)
            self._queue.add(entry)

    def _drop(self, key: str) -> None:
        self._backlog.forget(key)
        self._queue.discard(key)


def _may_help_others(old: CachedPod, new: CachedPod) -> bool:
    """Return whether a scheduled pod has changed so that other pods may fit now."""
    one, other = old.model, new.model
    if not isinstance(one, Pod) or not isinstance(other, Pod):
        return True
    return one.requests != other.requests or one.labels != other.labels


def _rules_that_read_most(playing: Collection[SchedulingInputs]) -> SchedulerRules:
    """Return the rules of the profile that reads the most kinds of objects."""
    profiles: list[Profile] = [each.profile for each in playing]
    reading = [each.rules for each in profiles if reads_workloads(each.rules.filters)]
    return (reading or [profiles[0].rules])[0]
