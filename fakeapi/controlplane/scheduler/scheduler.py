"""The component ``scheduler``: assigns pods of its profiles to nodes, one after another.

:mod:`fakeapi.controlplane.scheduler.schedule_one` decides; this module carries the decisions out.
Binding, and since 1.33 preemption, run concurrently with the next attempts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine
from typing import Any, Final

from extender.cluster import LiveCluster
from extender.feeds import informers
from extender.kube.controller import Controller
from extender.kube.logs import quiet_log
from extender.kube.resources import NODES, PODS
from extender.kube.streaming import StreamingInformer
from extender.kube.workqueue import WorkQueue
from extender.readiness import Feed
from fakeapi.controlplane.part import Setting
from fakeapi.controlplane.scheduler.backlog import Backlog, Event
from fakeapi.controlplane.scheduler.binding import Binder, BindingError
from fakeapi.controlplane.scheduler.calling import Extender, Line
from fakeapi.controlplane.scheduler.configuration import Configuration, Profile
from fakeapi.controlplane.scheduler.cycle import (
    RETRIED,
    SCHEDULER_ERROR,
    Cycle,
    Placed,
    Refused,
)
from fakeapi.controlplane.scheduler.evicting import TROUBLE, Evictor, is_asynchronous
from fakeapi.controlplane.scheduler.outfits import SchedulerOutfit, Waiting
from fakeapi.controlplane.scheduler.posting import Post
from fakeapi.controlplane.scheduler.preempting import Preempting
from fakeapi.controlplane.scheduler.searching import Case, Playing, Searcher
from fakeapi.controlplane.scheduler.sightings import (
    NodeSightings,
    PodSightings,
    SeenNode,
    SeenPod,
    pod_reader,
    read_node,
)
from fakeapi.controlplane.scheduler.statuses import Nomination, StatusWriter, note, reference
from policies.decision import Candidate
from policies.filtering import reads_workloads
from policies.model import Pod, Snapshot
from policies.rules import Rules
from policies.vectorized import Vectorized

_PREEMPTION: Final = "preemption: "


class Scheduler:
    """The component ``scheduler``."""

    def __init__(self, setting: Setting, outfit: SchedulerOutfit) -> None:
        configuration = outfit.configuration or Configuration()
        self._setting = setting
        self._clock = setting.clock
        self._release = configuration.release
        self._playing = {
            name: Playing(profile, Vectorized(profile.rules))
            for name, profile in configuration.profiles.items()
        }
        self._cluster = LiveCluster(
            setting.clock.monotonic, self._follow, lambda: self._wake(Event.STORAGE_CHANGED)
        )
        self._pods = PodSightings(self._cluster, self._heed_pod)
        self._nodes = NodeSightings(self._cluster, self._heed_node)
        self._post = Post(outfit.extenders)
        waiting = outfit.waiting or Waiting(setting.clock)
        line = Line(self._post, setting.clock, outfit.trace, self._release, waiting)
        extenders = [Extender(each, line) for each in configuration.extenders]
        self._cycle = Cycle(
            Searcher(extenders, self._nodes),
            Preempting(extenders, self._pods, setting.rng),
            extenders,
            setting.rng,
        )
        self._writer = StatusWriter(setting.client, setting.clock)
        self._recorders = {name: setting.events.recorder(name) for name in self._playing}
        self._binder = Binder(setting.client, extenders)
        self._backlog = Backlog(
            configuration.initial_backoff_seconds, configuration.longest_backoff_seconds
        )
        self._queue: WorkQueue[str] = WorkQueue(setting.clock, rank=self._rank)
        self._beside: asyncio.TaskGroup
        self.controller = Controller("scheduler", self._queue, self._sync)

    async def run(self) -> None:
        """Schedule pods until cancelled or drained. Raises the first error of its tasks."""
        try:
            async with asyncio.TaskGroup() as self._beside:
                feeds = self._feeds()
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

    def _feeds(self) -> list[Feed]:
        given, log = self._setting, quiet_log()
        common = given.client, _widest(self._playing.values()), given.clock, given.rng
        feeds = informers(self._cluster, *common, log=log)
        read = pod_reader(self._release)
        about = given.clock, given.rng
        feeds["pods"] = StreamingInformer(given.client, PODS, read, self._pods, *about, log=log)
        feeds["nodes"] = StreamingInformer(
            given.client, NODES, read_node, self._nodes, *about, log=log
        )
        return list(feeds.values())

    def _follow(self, snapshot: Snapshot, changed: Collection[str]) -> None:
        for playing in self._playing.values():
            playing.engine.follow(snapshot, changed)

    def _rank(self, key: str) -> int:
        seen = self._pods.seen.get(key)
        return -seen.model.priority if seen and isinstance(seen.model, Pod) else 0

    async def _sync(self, key: str) -> float | None:
        """Try to schedule a pod; return the seconds until it is retried at the latest."""
        self._queue.cancel(key)
        self._pods.departed.clear()
        found = self._pods.pending(key)
        if found is None or not self._backlog.begin(key):
            return None
        seen, pod = found
        if pod.terminating:
            told = f"skip schedule deleting pod: {pod.key}"
            self._recorders[seen.scheduler].warning(reference(seen), "FailedScheduling", told)
            return None
        case = Case(seen, pod, self._playing[seen.scheduler], self._cluster.snapshot())
        outcome = await self._cycle.attempt(case)
        if self._pods.pending(key) is None or self._pods.seen[key].uid != seen.uid:
            return None  # deleted or bound elsewhere while extenders were called
        if isinstance(outcome, Placed):
            self._pods.assume(seen, outcome.node)
            self._go_beside(self._bind(case, outcome.node))
            return None
        return await self._refuse(case, outcome)

    async def _bind(self, case: Case, node: str) -> None:
        seen = case.seen
        try:
            await self._binder.bind(seen, case.pod, node)
        except BindingError as error:
            self._pods.forget(seen)
            self._wake(Event.POD_GONE)
            if self._pods.pending(seen.key) is not None:
                failed = Refused(SCHEDULER_ERROR, "", RETRIED, Nomination(None), str(error))
                self._try_later(seen.key, await self._fail(case, failed))
        else:
            told = f"Successfully assigned {seen.key} to {node}"
            self._recorders[seen.scheduler].normal(reference(seen), "Scheduled", told)

    async def _refuse(self, case: Case, refused: Refused) -> float | None:
        """Evict victims, if there are any, and record why the pod is not scheduled."""
        if refused.chosen is not None:
            refused = await self._preempt(case, refused, refused.chosen)
        return await self._fail(case, refused)

    async def _preempt(self, case: Case, refused: Refused, chosen: Candidate) -> Refused:
        evictor = self._evictor(case)
        if is_asynchronous(self._release):
            victims = evictor.victims(chosen)
            if victims:
                self._backlog.hold(case.seen.key)
                self._go_beside(self._await(case, evictor.evict_beside(case, chosen, victims)))
            return refused
        try:
            await evictor.evict(case, chosen)
        except TROUBLE as error:
            message = f"{refused.failure} {_PREEMPTION}{error}"
            return Refused(refused.reason, refused.failure, refused.awaited, None, message)
        return refused

    async def _await(self, case: Case, eviction: Coroutine[Any, Any, None]) -> None:
        """Hold the preemptor back until its victims have been deleted."""
        failed = False
        try:
            await eviction
        except TROUBLE:
            failed = True
        now = self._clock.monotonic()
        self._try_later(case.seen.key, self._backlog.release(case.seen.key, now, failed=failed))

    async def _fail(self, case: Case, refused: Refused) -> float | None:
        """Record that a pod was not scheduled; return the seconds until it is retried."""
        seen = self._pods.seen.get(case.seen.key)
        if seen is None or seen.uid != case.seen.uid:
            return None
        recorder = self._recorders[case.seen.scheduler]
        recorder.warning(reference(seen), "FailedScheduling", note(refused.message))
        if refused.nomination is not None:
            self._pods.nominate(seen, refused.nomination.node)
        left = self._backlog.fail(seen.key, self._clock.monotonic(), refused.awaited)
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": refused.reason,
            "message": refused.message,
        }
        try:
            await self._writer.set_condition(seen, condition, refused.nomination)
        except TROUBLE as error:
            self._log_trouble(seen, error)
        return left

    def _log_trouble(self, seen: SeenPod, error: Exception) -> None:
        """Log a failed status update and continue, as upstream; the next attempt writes again."""
        quiet_log().debug("pod_not_updated", pod=seen.key, error=str(error))

    def _evictor(self, case: Case) -> Evictor:
        recorder = self._recorders[case.seen.scheduler]
        client = self._setting.client

        def displaced(key: str) -> None:
            self._wake(Event.OWN_CHANGE, (key,))

        return Evictor(client, self._pods, self._writer, recorder, displaced)

    def _go_beside(self, work: Coroutine[Any, Any, None]) -> None:
        self._beside.create_task(work)

    def _try_later(self, key: str, seconds: float | None) -> None:
        if seconds is not None:
            self._queue.add_after(key, seconds)

    def _wake(self, event: Event, keys: Collection[str] = ()) -> None:
        now = self._clock.monotonic()
        for key, seconds in tuple(self._backlog.wake(event, now, keys)):
            self._queue.add_after(key, seconds)

    def _heed_node(self, old: SeenNode | None, new: SeenNode | None) -> None:
        if new is None:
            self._wake(Event.NODE_GONE)
        else:
            self._wake(Event.NODE_CHANGED if old else Event.NODE_ADDED)

    def _heed_pod(self, old: SeenPod | None, new: SeenPod | None) -> None:
        if new is not None and new.pending is not None:
            self._heed_pending(old, new)
        elif (seen := new or old) is not None:
            self._drop(seen.key)
        was, now_is = old.node if old else "", new.node if new else ""
        if was and not now_is:
            self._wake(Event.POD_GONE)
        elif now_is and not was:
            self._wake(Event.POD_PLACED)
        elif old and new and now_is and _differ(old, new):
            self._wake(Event.POD_CHANGED)

    def _heed_pending(self, old: SeenPod | None, new: SeenPod) -> None:
        if new.scheduler not in self._playing or new.gates:
            self._drop(new.key)
        elif new.key not in self._backlog:
            self._backlog.enter(new.key)
            self._queue.add(new.key)
        elif old is not None and old.essence != new.essence:
            self._wake(Event.OWN_CHANGE, (new.key,))

    def _drop(self, key: str) -> None:
        self._backlog.forget(key)
        self._queue.discard(key)


def _differ(old: SeenPod, new: SeenPod) -> bool:
    """Return whether a scheduled pod has changed so that other pods may fit now."""
    one, other = old.model, new.model
    if not isinstance(one, Pod) or not isinstance(other, Pod):
        return True
    return one.requests != other.requests or one.labels != other.labels


def _widest(playing: Collection[Playing]) -> Rules:
    """Return the rules of the profile that reads the most kinds of objects."""
    profiles: list[Profile] = [each.profile for each in playing]
    reading = [each.rules for each in profiles if reads_workloads(each.rules.filters)]
    return (reading or [profiles[0].rules])[0]
