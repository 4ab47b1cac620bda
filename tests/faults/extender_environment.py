"""An extender and a fake cluster without sockets, with a transport between them that can fail.

Time is the cluster's virtual clock, so that minutes of faults take milliseconds. While the cluster
changes, :class:`StateHistory` records each of its states, and every answer is compared with it:

- the extender's cache of each kind equals the state at the cache's version;
- a decision is the reference engine's on that state, which was superseded less than
  ``STALE_SECONDS`` ago (plus the lag of watch events that the plan injects);
- an extender that is not ready answers 503, and one that is ready never does.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from structlog.testing import capture_logs

from extender.cluster.event_handlers import build_reflectors
from extender.cluster.scheduler_cache import SchedulerCache
from extender.kube.decoders.cluster_objects import decode_budget, decode_node
from extender.kube.decoders.pods import decode_pod
from extender.kube.informers.reflector import Reflector, ReflectorContext
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import Client
from extender.kube.rest.clock import Clock
from extender.kube.rest.rate_limited_log import quiet_log
from extender.kube.rest.resources import NODES, POD_DISRUPTION_BUDGETS
from extender.protocol.request_size import at_once
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
from tests.faults.flaky_transport import FlakyTransport
from tests.stage import Stage

AGENT: Final = "reprieve"
STALE_SECONDS: Final = 180.0
SILENCE_SECONDS: Final = 90.0
NODE_NAMES: Final = tuple(f"node-{number}" for number in range(5))

RULES: Final = SchedulerRules()


class SkewedClock:
    """The cluster's clock with a wall clock that is off by ``skew()`` seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.skew: Callable[[], float] = lambda: 0.0

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def now_ns(self) -> int:
        return self._clock.now_ns() + int(self.skew() * 1e9)

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


@dataclass(frozen=True)
class KindState:
    """All objects of a kind by key, since a version and a time."""

    version: int
    at: float
    objects: Mapping[str, object]


KINDS: Final[Mapping[str, tuple[Callable[[bytes], Any], Callable[[Any], str]]]] = {
    "nodes": (decode_node, lambda node: node.name),
    "pods": (lambda raw: decode_pod(raw, RULES.release), lambda pod: pod.key),
    "poddisruptionbudgets": (decode_budget, lambda each: f"{each.namespace}/{each.name}"),
}


class StateHistory:
    """All states of each kind; :meth:`record` adds the latest changes."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self._cluster = cluster
        self.states = {kind: [KindState(0, 0.0, {})] for kind in KINDS}

    def record(self) -> None:
        """Add the states since the last call."""
        now = self._cluster.clock.monotonic()
        for kind, (decode, key) in KINDS.items():
            states = self.states[kind]
            for change in self._cluster.history(kind):
                if change.version > states[-1].version:
                    changed = decode(encoded(change.object))
                    objects = {**states[-1].objects, key(changed): changed}
                    if change.type == "DELETED":
                        del objects[key(changed)]
                    states.append(KindState(change.version, now, objects))

    def at(self, kind: str, version: int) -> tuple[KindState, float | None]:
        """Return the state at a version, and when it was superseded, if it was."""
        states = self.states[kind]
        place = bisect_right(states, version, key=lambda state: state.version)
        superseded = states[place].at if place < len(states) else None
        return states[place - 1], superseded


@dataclass
class Reply:
    """An answer and its time, in seconds since the start."""

    at: float
    verb: str
    status: int
    body: bytes


class ExtenderEnvironment(Stage):
    """An extender, its cluster, and the transport between them.

    ``injected`` counts the faults by rule of the plan, once the plan has ended.
    """

    def __init__(
        self,
        cluster: VirtualCluster,
        transport: FlakyTransport,
        clock: SkewedClock,
        service: Service,
        rng: Random,
    ) -> None:
        super().__init__(cluster)
        self.transport = transport
        self.clock = clock
        self.service = service
        self.rng = rng
        self.history = StateHistory(cluster)
        self.history.record()
        self.lag_seconds = 0.0
        self.injected: tuple[int, ...] = ()
        self.replies: list[Reply] = []

    async def change(self) -> None:
        """Change the cluster at random, and record its state."""
        changes = (self._create, self._create, self._delete, self._cordon, self._allow)
        await self.rng.choice(changes)(self.rng)
        self.history.record()

    async def call(self) -> Reply:
        """Call the extender, and compare the answer with the recorded states."""
        verb = self.rng.choice(tuple(VERBS))
        body = self._request_body(verb)
        problem = self.service.readiness.problem()
        expected = b"" if problem else self._decided(verb, body)
        call = VerbCall(verb, body, self.clock.monotonic())
        response = await handle_verb(self.service, call)
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
        """Return whether the extender is ready and its caches are up to date."""
        caches = self._caches()
        return not self.service.readiness.problem() and all(
            caches[kind] == states[-1].objects for kind, states in self.history.states.items()
        )

    def _decided(self, verb: str, body: bytes) -> bytes:
        """Return the right answer on the extender's state, which must be a recent one."""
        for kind, cached in self._caches().items():
            informer = self.service.informers[kind]
            assert isinstance(informer, Reflector)
            state, superseded = self.history.at(kind, int(informer.resource_version))
            assert cached == state.objects, f"a state of {kind} that never existed"
            age = 0.0 if superseded is None else self.clock.monotonic() - superseded
            assert age <= STALE_SECONDS + self.lag_seconds, f"{kind} of {age:.0f} s ago"
        snapshot = self.service.cluster.snapshot()
        context = CallContext(snapshot, ReferenceEngine(RULES), Search.OFFERED)
        return at_once(VERBS[verb](body, RULES)).decide(context).body

    def _caches(self) -> Mapping[str, Mapping[str, object]]:
        live = self.service.cluster
        return {
            "nodes": live.nodes.by_key,
            "pods": live.pods.by_key,
            "poddisruptionbudgets": live.budgets.by_key,
        }

    def _request_body(self, verb: str) -> bytes:
        pod = pod_json(f"vip-{self.rng.randrange(3)}", cpu="2", priority=10)
        names = self.rng.sample(NODE_NAMES, 3)
        if verb == "filter":
            return filter_body(pod, *names)
        pods = [p for p in self.service.cluster.pods.by_key.values() if isinstance(p, Pod)]
        offers = {name: [p.uid for p in pods if p.node_name == name][:2] for name in names}
        return preempt_body(
            pod, **{name.replace("-", "_"): uids or ["gone"] for name, uids in offers.items()}
        )

    async def _create(self, rng: Random) -> None:
        name = f"web-{rng.randrange(20)}"
        states = self.history.states["pods"]
        if f"default/{name}" not in states[-1].objects:
            self.load(_web(name, f"{name}-{len(states)}", rng))

    async def _delete(self, rng: Random) -> None:
        with suppress(ApiError):  # there may be none
            await self.end(f"web-{rng.randrange(20)}")

    async def _cordon(self, rng: Random) -> None:
        unschedulable = rng.random() < 0.3
        change = {"spec": {"unschedulable": unschedulable}}
        await self.patch(NODES, rng.choice(NODE_NAMES), change)

    async def _allow(self, rng: Random) -> None:
        status = {"disruptionsAllowed": rng.randrange(3)}
        await self.patch(POD_DISRUPTION_BUDGETS, "ones", {"status": status})


@asynccontextmanager
async def environment(seed: int) -> AsyncIterator[ExtenderEnvironment]:
    """Run an extender on a cluster with five nodes, some pods and a budget."""
    with capture_logs():
        async with VirtualCluster(run="none", seed=seed) as cluster:
            rng = Random(seed)
            cluster.load(_objects(rng))
            clock = SkewedClock(cluster.clock)
            transport = FlakyTransport(cluster.local_transport(AGENT), clock)
            client = Client(transport)
            engine = VectorizedEngine(RULES)
            live = SchedulerCache(clock.monotonic, engine.follow)
            context = ReflectorContext(client, clock, Random(seed), quiet_log(), SILENCE_SECONDS)
            informers = build_reflectors(context, live, RULES)
            fallbacks = FallbackPolicy(stale_seconds=STALE_SECONDS)
            service = Service(live, engine, clock, informers=informers, fallback_policy=fallbacks)
            running = [asyncio.create_task(informer.run()) for informer in informers.values()]
            try:
                yield ExtenderEnvironment(cluster, transport, clock, service, rng)
            finally:
                await cancel(running)


async def cancel(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel tasks, and raise the error of any of them that failed."""
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
