"""HTTPExtender: one POST per call, one time limit for all of it, no retry.

Every call is added to the trace with its outcome. A response that cannot be used raises
:class:`ExtenderError`; the caller and the trace decide whether it is ignored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from extender.kube.rest.clock import Clock, within
from fakeapi.controlplane.scheduler import extender_v1
from fakeapi.controlplane.scheduler.cache import CachedPod
from fakeapi.controlplane.scheduler.configuration import ExtenderConfig
from fakeapi.controlplane.scheduler.extender_results import (
    ExtenderVictims,
    FilteredNodes,
    check_filter,
    check_victims,
    find_victims,
)
from fakeapi.controlplane.scheduler.extender_trace import (
    ExtenderCall,
    ExtenderCallTrace,
    ExtenderOutcome,
)
from fakeapi.controlplane.scheduler.extender_v1 import ExtenderResponseError, FatalResponseError
from fakeapi.controlplane.scheduler.options import OK, Call, ExtenderWait, Reply, UnansweredError
from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.decision import VictimSet

_OVERDUE = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"

T = TypeVar("T")
Send = Callable[[ExtenderConfig, Call], Awaitable[Reply]]
"""Makes a call; raises UnansweredError."""
CheckResponse = Callable[[bytes], tuple[T, Sequence[str]]]
"""Decodes and checks a response, and returns its notes; raises ExtenderResponseError."""


class ExtenderError(Exception):
    """A call of an extender failed; the text is kube-scheduler's. If ``ignorable``, continue."""

    def __init__(self, text: str, *, ignorable: bool) -> None:
        super().__init__(text)
        self.ignorable = ignorable


@dataclass(frozen=True, slots=True)
class _StartedCall:
    """A call that was made, its pod, and its start time."""

    pod: str
    call: Call
    at_ns: int
    started_at: float


@dataclass(frozen=True, slots=True)
class ExtenderCallContext:
    """The dependencies of extender calls; time limits are measured by the clock of ``waiting``."""

    send: Send
    clock: Clock
    trace: ExtenderCallTrace
    release: Release
    waiting: ExtenderWait


class Extender:
    """Calls one extender."""

    def __init__(self, config: ExtenderConfig, context: ExtenderCallContext) -> None:
        self.config = config
        self._context = context

    def is_interested(self, pod: Pod) -> bool:
        """Return whether the extender is called for a pod."""
        return pod.requests_any_of(self.config.managed)

    async def filter(self, pod: CachedPod, nodes: Mapping[str, bytes]) -> FilteredNodes:
        """Call the filter verb with nodes as JSON by name. Raises ExtenderError."""
        names, cached = tuple(nodes), self.config.node_cache_capable
        whole = None if cached else tuple(nodes.values())
        args = extender_v1.encode_filter_args(pod.raw, names, whole)

        def check(body: bytes) -> tuple[FilteredNodes, Sequence[str]]:
            answer = extender_v1.decode_filter_result(body)
            filtered = check_filter(answer, names, self.config.url_prefix, cached=cached)
            return filtered, filtered.notes

        verb, ignorable = self.config.filter_verb, self.config.ignorable
        return await self._call(verb, pod.key, args, check, ignorable=ignorable)

    async def preempt(
        self,
        pod: CachedPod,
        preemptor: Pod,
        candidates: Mapping[str, VictimSet],
        snapshot: Snapshot,
        whole: Mapping[str, bytes],
    ) -> Mapping[str, VictimSet]:
        """Call the preempt verb with the candidates. Raises ExtenderError.

        ``whole`` holds the JSON of all pods by UID.
        """
        config = self.config
        victims_by_node = {
            node: ([pod.uid for pod in victims.pods], victims.violations)
            for node, victims in candidates.items()
        }
        args = extender_v1.encode_preemption_args(
            pod.raw, victims_by_node, None if config.node_cache_capable else whole
        )
        empty = frozenset(node for node, victims in candidates.items() if not victims.pods)
        passed_on = empty if self._context.release.victimless_candidates else frozenset[str]()

        def check(body: bytes) -> tuple[ExtenderVictims, Sequence[str]]:
            answer = extender_v1.decode_preemption_result(body)
            found = find_victims(answer, preemptor, snapshot, config.url_prefix)
            checked = check_victims(found, candidates, passed_on, ignorable=config.ignorable)
            return checked, checked.notes

        verb, ignorable = config.preempt_verb, config.ignorable
        return (await self._call(verb, pod.key, args, check, ignorable=ignorable)).by_node

    async def prioritize(self, pod: CachedPod, nodes: Mapping[str, bytes]) -> Mapping[str, int]:
        """Call the prioritize verb, and return weighted scores. Raises ExtenderError."""
        whole = None if self.config.node_cache_capable else tuple(nodes.values())
        args = extender_v1.encode_filter_args(pod.raw, tuple(nodes), whole)

        def check(body: bytes) -> tuple[list[tuple[str, int]], Sequence[str]]:
            scores = extender_v1.decode_host_priorities(body)
            foreign = sorted({name for name, _ in scores} - nodes.keys())
            odd = [
                f"{name} was scored {score}, beyond 0 to 10"
                for name, score in scores
                if not 0 <= score <= 10
            ]
            return scores, [*(f"{name} was not among the nodes sent" for name in foreign), *odd]

        totals: dict[str, int] = {}
        verb = self.config.prioritize_verb
        for name, score in await self._call(verb, pod.key, args, check, ignorable=True):
            totals[name] = totals.get(name, 0) + score * self.config.weight * 10
        return totals

    async def bind(self, pod: CachedPod, node: str) -> None:
        """Call the bind verb for a pod. Raises ExtenderError."""
        args = extender_v1.encode_binding_args(pod.namespace, pod.name, pod.uid, node)

        def check(body: bytes) -> tuple[None, Sequence[str]]:
            error = extender_v1.decode_binding_result(body)
            if error:
                raise ExtenderResponseError(error)
            return None, ()

        verb, ignorable = self.config.bind_verb, self.config.ignorable
        await self._call(verb, pod.key, args, check, ignorable=ignorable)

    async def _call(
        self, verb: str, pod: str, body: bytes, check: CheckResponse[T], *, ignorable: bool
    ) -> T:
        call, clock = Call(self.config.url_prefix, verb, body), self._context.clock
        started = _StartedCall(pod, call, clock.now_ns(), clock.monotonic())
        reply = Reply(0, b"")
        try:
            reply = await self._send(call)
            _check_status(call, reply)
            value, notes = check(reply.body)
        except ExtenderResponseError as problem:
            ignored = ignorable and not isinstance(problem, FatalResponseError)
            outcome = ExtenderOutcome.IGNORED if ignored else ExtenderOutcome.FAILED
            self._record(started, reply, outcome, str(problem))
            raise ExtenderError(str(problem), ignorable=ignored) from None
        self._record(started, reply, ExtenderOutcome.ACCEPTED, notes=notes)
        return value

    def _record(
        self,
        started: _StartedCall,
        reply: Reply,
        outcome: ExtenderOutcome,
        problem: str = "",
        notes: Sequence[str] = (),
    ) -> None:
        seconds = self._context.clock.monotonic() - started.started_at
        call = started.call
        endpoint = started.pod, call.prefix, call.verb, call.url
        bodies = call.body, reply.status, reply.body
        self._context.trace.add(
            ExtenderCall(started.at_ns, seconds, *endpoint, *bodies, outcome, problem, tuple(notes))
        )

    async def _send(self, call: Call) -> Reply:
        """Make the call within its time limit. Raises ExtenderResponseError."""
        try:
            sending = _awaiting(self._context.send(self.config, call))
            with self._context.waiting.during():
                limit = self.config.timeout_seconds
                return await within(self._context.waiting.clock, limit, sending)
        except UnansweredError as error:
            raise ExtenderResponseError(f'Post "{call.url}": {error}') from None
        except TimeoutError:
            raise ExtenderResponseError(f'Post "{call.url}": {_OVERDUE}') from None


def _check_status(call: Call, reply: Reply) -> None:
    if reply.status != OK:
        what = f"failed {call.verb} with extender at URL {call.url}, code {reply.status}"
        raise ExtenderResponseError(what)


async def _awaiting(reply: Awaitable[Reply]) -> Reply:
    return await reply


async def gather_scores(
    extenders: Sequence[Extender], pod: CachedPod, nodes: Mapping[str, bytes]
) -> list[Mapping[str, int]]:
    """Call several extenders concurrently; one that fails gives no scores."""

    async def ask(extender: Extender) -> Mapping[str, int]:
        try:
            return await extender.prioritize(pod, nodes)
        except ExtenderError:
            return {}

    return list(await asyncio.gather(*(ask(extender) for extender in extenders)))
