"""An extender on a fake cluster without sockets, a wire between them that breaks, and a chronicle.

Time is the cluster's virtual clock, so that minutes of faults pass in milliseconds. While the
cluster changes, a :class:`Chronicle` writes down each state that there ever was, and every answer
is held against it:

- the extender's copy of each kind is a state that there was, at the version that it says;
- a decision is the reference engine's on that state, and is made only on states that were
  surpassed less than ``STALE_SECONDS`` ago (and what the plan says that news lag);
- an extender that is not ready answers 503, and one that is ready never does.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, TypeVar

from structlog.testing import capture_logs

from extender.cluster.event_handlers import build_reflectors
from extender.cluster.scheduler_cache import SchedulerCache
from extender.kube.decoders.cluster_objects import decode_budget, decode_node
from extender.kube.decoders.pods import decode_pod
from extender.kube.informers.reflector import Reflector, ReflectorContext
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import Client, PatchType
from extender.kube.rest.clock import Clock, within
from extender.kube.rest.rate_limited_log import quiet_log
from extender.kube.rest.resources import NODES, POD_DISRUPTION_BUDGETS, PODS
from extender.kube.rest.transport import IdleTimeoutError, Request, Response, Stream, Transport
from extender.kube.rest.transport import TransportError as Lost
from extender.protocol.verb_context import CallContext, Search
from extender.protocol.verbs import VERBS
from extender.server.fallback_policy import FallbackPolicy
from extender.server.http_handlers import handle_verb
from extender.server.service import Service, VerbCall
from fakeapi import VirtualCluster
from policies.kubernetes.snapshot import Pod
from policies.preemption.policy import SchedulerRules
from policies.preemption.reference_engine import ReferenceEngine
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import encoded, node_json, pdb_json, pod_json
from tests.extender.conftest import filter_body, preempt_body

AGENT: Final = "reprieve"
STALE_SECONDS: Final = 180.0
SILENCE_SECONDS: Final = 90.0
NODE_NAMES: Final = tuple(f"node-{number}" for number in range(5))

RULES: Final = SchedulerRules()

T = TypeVar("T")


class Wire:
    """The connection to the server, which may be ``down``; streams may break, or send nothing."""

    def __init__(self, inner: Transport, clock: Clock) -> None:
        self._inner = inner
        self._clock = clock
        self._open: dict[_Line, None] = {}
        self.down = False
        self.requests = 0

    def cut(self) -> None:
        """Reset every stream."""
        for line in tuple(self._open):
            line.breaks(Lost("the connection was reset"))

    def fall_silent(self) -> None:
        """Have every open stream lead nowhere from now on."""
        for line in tuple(self._open):
            line.dead = True

    async def request(self, request: Request) -> Response:
        self._send(request)
        return await self._in_time(request, self._inner.request(request))

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        self._send(request)
        async with AsyncExitStack() as stack:
            opening = stack.enter_async_context(self._inner.stream(request))
            line = _Line(await self._in_time(request, opening), request, self._clock)
            self._open[line] = None
            try:
                yield line
            finally:
                self._open.pop(line, None)
                await line.end()

    async def close(self) -> None:
        await self._inner.close()

    def _send(self, request: Request) -> None:
        self.requests += 1
        if self.down:
            raise Lost(f"{request}: connection refused")

    async def _in_time(self, request: Request, work: Coroutine[Any, Any, T]) -> T:
        try:
            return await within(self._clock, request.idle_timeout, work)
        except TimeoutError:
            raise IdleTimeoutError(f"{request}: nothing came") from None


class _Line:
    """One stream over the wire; its lines are pumped, so that a reader that gives up loses none."""

    def __init__(self, stream: Stream, request: Request, clock: Clock) -> None:
        self.status = stream.status
        self.headers = stream.headers
        self.dead = False
        self._stream = stream
        self._request = request
        self._clock = clock
        self._come: asyncio.Queue[bytes | Lost | None] = asyncio.Queue()
        self._pump = asyncio.create_task(self._pumped()) if stream.status == 200 else None

    def breaks(self, why: Lost) -> None:
        self._come.put_nowait(why)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            come = await within(self._clock, self._request.idle_timeout, self._come.get())
        except TimeoutError:
            raise IdleTimeoutError(f"{self._request}: nothing came") from None
        if isinstance(come, Lost):
            raise come
        if come is None:
            raise StopAsyncIteration
        return come

    async def read(self) -> bytes:
        return await self._stream.read()

    async def end(self) -> None:
        if self._pump is not None:
            self._pump.cancel()
            with suppress(asyncio.CancelledError):
                await self._pump

    async def _pumped(self) -> None:
        try:
            async for line in self._stream:
                if not self.dead:
                    self._come.put_nowait(line)
        except Lost as lost:
            self._come.put_nowait(lost)
            return
        if not self.dead:
            self._come.put_nowait(None)


class Skewed:
    """The cluster's clock, with a host's wall clock that ``jumps`` ahead or back, in seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.jumps: Callable[[], float] = lambda: 0.0

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def now_ns(self) -> int:
        return self._clock.now_ns() + int(self.jumps() * 1e9)

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


@dataclass(frozen=True)
class Moment:
    """All objects of a kind by key, from a version and a time on."""

    version: int
    at: float
    objects: Mapping[str, object]


KINDS: Final[Mapping[str, tuple[Callable[[bytes], Any], Callable[[Any], str]]]] = {
    "nodes": (decode_node, lambda node: node.name),
    "pods": (lambda raw: decode_pod(raw, RULES.release), lambda pod: pod.key),
    "poddisruptionbudgets": (decode_budget, lambda each: f"{each.namespace}/{each.name}"),
}


class Chronicle:
    """Every state that there was, kind by kind; each change is written down when it is made."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self._cluster = cluster
        self.moments = {kind: [Moment(0, 0.0, {})] for kind in KINDS}

    def note(self) -> None:
        """Write down what has happened since."""
        now = self._cluster.clock.monotonic()
        for kind, (decode, key) in KINDS.items():
            moments = self.moments[kind]
            for change in self._cluster.history(kind):
                if change.version > moments[-1].version:
                    changed = decode(encoded(change.object))
                    objects = {**moments[-1].objects, key(changed): changed}
                    if change.type == "DELETED":
                        del objects[key(changed)]
                    moments.append(Moment(change.version, now, objects))

    def at(self, kind: str, version: int) -> tuple[Moment, float | None]:
        """Return the state at a version, and when it was superseded, if it was."""
        moments = self.moments[kind]
        place = bisect_right(moments, version, key=lambda moment: moment.version)
        surpassed = moments[place].at if place < len(moments) else None
        return moments[place - 1], surpassed


@dataclass
class Reply:
    """An answer and when it came, in seconds since the beginning."""

    at: float
    verb: str
    status: int
    body: bytes


@dataclass
class Stage:
    """An extender, its cluster, and what lies between them.

    ``struck`` says, once the trouble is over, how often each fault of the plan did.
    """

    cluster: VirtualCluster
    wire: Wire
    clock: Skewed
    service: Service
    chronicle: Chronicle
    rng: Random
    lag_seconds: float = 0.0
    struck: tuple[int, ...] = ()
    replies: list[Reply] = field(default_factory=list)

    async def change(self) -> None:
        """Do something to the cluster, and have it written down."""
        doing = (self._create, self._create, self._delete, self._turn, self._allow)
        await self.rng.choice(doing)(self.rng)
        self.chronicle.note()

    async def ask(self) -> Reply:
        """Ask for a place, and hold the answer against what there is and was."""
        verb = self.rng.choice(tuple(VERBS))
        body = self._question(verb)
        problem = self.service.readiness.problem()
        expected = b"" if problem else self._decided(verb, body)
        asked = VerbCall(verb, body, self.clock.monotonic())
        response = await handle_verb(self.service, asked)
        assert isinstance(response.body, bytes)
        reply = Reply(self.clock.monotonic(), verb, response.status, response.body)
        self.replies.append(reply)
        if problem:
            assert (reply.status, reply.body.count(b"\n")) == (503, 1), reply
            assert reply.body.startswith((b"reprieve: stale: ", b"reprieve: not ready: ")), reply
        else:
            assert (reply.status, reply.body) == (200, expected), reply
        return reply

    def is_current(self) -> bool:
        """Return whether the extender is ready and knows all that there is."""
        tables = self._tables()
        return not self.service.readiness.problem() and all(
            tables[kind] == moments[-1].objects for kind, moments in self.chronicle.moments.items()
        )

    def _decided(self, verb: str, body: bytes) -> bytes:
        """Return the right answer on the extender's state, which must be a recent one."""
        for kind, known in self._tables().items():
            feed = self.service.informers[kind]
            assert isinstance(feed, Reflector)
            moment, surpassed = self.chronicle.at(kind, int(feed.resource_version))
            assert known == moment.objects, f"{kind} that there never were"
            age = 0.0 if surpassed is None else self.clock.monotonic() - surpassed
            assert age <= STALE_SECONDS + self.lag_seconds, f"{kind} of {age:.0f} s ago"
        situation = CallContext(
            self.service.cluster.snapshot(), ReferenceEngine(RULES), Search.OFFERED
        )
        return VERBS[verb](body, RULES).decide(situation).body

    def _tables(self) -> Mapping[str, Mapping[str, object]]:
        live = self.service.cluster
        return {
            "nodes": live.nodes.by_key,
            "pods": live.pods.by_key,
            "poddisruptionbudgets": live.budgets.by_key,
        }

    def _question(self, verb: str) -> bytes:
        pod = pod_json(f"vip-{self.rng.randrange(3)}", cpu="2", priority=10)
        names = self.rng.sample(NODE_NAMES, 3)
        if verb == "filter":
            return filter_body(pod, *names)
        pods = self.service.cluster.pods.by_key.values()
        offers = {
            name.replace("-", "_"): [
                each.uid for each in pods if each.node_name == name and isinstance(each, Pod)
            ][:2]
            for name in names
        }
        return preempt_body(pod, **{name: uids or ["gone"] for name, uids in offers.items()})

    async def _create(self, rng: Random) -> None:
        name = f"web-{rng.randrange(20)}"
        if f"default/{name}" not in self.chronicle.moments["pods"][-1].objects:
            uid = f"{name}-{len(self.chronicle.moments['pods'])}"
            self.cluster.load([_web(name, uid, rng)])

    async def _delete(self, rng: Random) -> None:
        path = PODS.object(f"web-{rng.randrange(20)}", "default")
        with suppress(ApiError):  # there may be none
            await self.cluster.client.delete(path, grace_period_seconds=0)

    async def _turn(self, rng: Random) -> None:
        body = encoded({"spec": {"unschedulable": rng.random() < 0.3}})
        node = NODES.object(rng.choice(NODE_NAMES))
        await self.cluster.client.patch(node, PatchType.MERGE, body, bytes)

    async def _allow(self, rng: Random) -> None:
        budget = pdb_json("ones", match={"app": "1"}, allowed=rng.randrange(3))
        path = POD_DISRUPTION_BUDGETS.object("ones", "default").subresource("status")
        await self.cluster.client.patch(path, PatchType.MERGE, encoded(budget), bytes)


@asynccontextmanager
async def stage(seed: int) -> AsyncIterator[Stage]:
    """Set a stage with five nodes, some pods and budgets, and an extender that begins to follow."""
    with capture_logs():
        async with VirtualCluster(run="none", seed=seed) as cluster:
            rng = Random(seed)
            cluster.load(_objects(rng))
            clock = Skewed(cluster.clock)
            wire = Wire(cluster.local_transport(AGENT), clock)
            engine = VectorizedEngine(RULES)
            live = SchedulerCache(clock.monotonic, engine.follow)
            context = ReflectorContext(
                Client(wire), clock, Random(seed), quiet_log(), SILENCE_SECONDS
            )
            feeds = build_reflectors(context, live, RULES)
            degradation = FallbackPolicy(stale_seconds=STALE_SECONDS)
            service = Service(live, engine, clock, informers=feeds, fallback_policy=degradation)
            chronicle = Chronicle(cluster)
            chronicle.note()
            following = [asyncio.create_task(feed.run()) for feed in feeds.values()]
            try:
                yield Stage(cluster, wire, clock, service, chronicle, rng)
            finally:
                await ended(following)


async def ended(tasks: list[asyncio.Task[None]]) -> None:
    """End tasks, and raise what any of them has ended by."""
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, BaseException) and not isinstance(outcome, asyncio.CancelledError):
            raise outcome


def _web(name: str, uid: str, rng: Random) -> dict[str, Any]:
    on, labels = rng.choice(NODE_NAMES), {"app": name[-1]}
    return pod_json(name, on=on, uid=uid, cpu="1", priority=rng.randrange(8), labels=labels)


def _objects(rng: Random) -> list[dict[str, Any]]:
    pods = [_web(f"web-{number}", f"web-{number}", rng) for number in range(12)]
    budgets = [pdb_json("ones", match={"app": "1"}, allowed=1)]
    return [*(node_json(name, cpu="3") for name in NODE_NAMES), *pods, *budgets]
