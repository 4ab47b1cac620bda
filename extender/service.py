"""A running extender without its HTTP: the live cluster, the rules, and how to answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from extender.cluster import LiveCluster
from extender.journal import Journal
from extender.kube.clock import Clock
from extender.metrics import Metrics
from extender.overlay import Promise
from extender.verbs import VERBS
from extender.verdict import Answer, Search, Situation
from policies.engine import Engine
from policies.model import Pod


class Feed(Protocol):
    """What keeps one kind of object current: an informer, whatever it decodes."""

    async def run(self) -> None:
        """Follow the server until cancelled."""
        ...

    async def wait_settled(self) -> None:
        """Return once the first list has arrived, or need not be waited for."""
        ...

    @property
    def settled(self) -> bool:
        """Whether the first list has arrived, or need not be waited for."""
        ...

    @property
    def synced(self) -> bool:
        """Whether the first list has arrived."""
        ...

    @property
    def last_event_ns(self) -> int:
        """When the server last said anything, in nanoseconds since the epoch; 0 for never."""
        ...


class UnknownVerbError(LookupError):
    """A path names no verb; the text lists those there are."""


class NotReadyError(RuntimeError):
    """The caches have not synced, so no answer would be safe."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What to send; ``tell`` writes the answer down, for when it has been sent."""

    body: bytes
    tell: Callable[[], None]


@dataclass(slots=True)
class Service:
    """Answers calls. ``feeds`` are the informers by kind; without them nothing is awaited."""

    cluster: LiveCluster
    engine: Engine
    clock: Clock
    search: Search = Search.OFFERED
    promise_seconds: float = 30.0
    feeds: Mapping[str, Feed] = field(default_factory=dict)
    metrics: Metrics = field(default_factory=Metrics)
    journal: Journal = field(default_factory=Journal)

    def waiting_for(self) -> list[str]:
        """Name the kinds of objects whose first list has not arrived."""
        return [kind for kind, feed in self.feeds.items() if not feed.settled]

    def silence(self) -> float:
        """Give the seconds since the server last said anything on any watch."""
        newest = max((feed.last_event_ns for feed in self.feeds.values()), default=0)
        return (self.clock.now_ns() - newest) / 1e9 if newest else 0.0

    def answer(self, verb: str, body: bytes) -> Answered:
        """Answer one call.

        Raises UnknownVerbError, NotReadyError, and WireError or ObjectError for a body that cannot
        be understood.
        """
        read = VERBS.get(verb)
        if read is None:
            raise UnknownVerbError(f"no verb {verb!r}; expected one of {', '.join(VERBS)}")
        missing = self.waiting_for()
        if missing:
            raise NotReadyError(f"not ready: waiting for {', '.join(missing)}")
        started = self.clock.monotonic()
        call = read(body, self.engine.rules)
        snapshot = self.cluster.snapshot()
        answer = call.answer(Situation(snapshot, self.engine, self.search))
        self._remember(call.pod, answer)
        seconds = self.clock.monotonic() - started

        def tell() -> None:
            self.metrics.answered(answer)
            self.metrics.seconds.labels(verb).observe(seconds)
            self.journal.answered(verb, answer, snapshot.generation, self.silence(), seconds)

        return Answered(answer.body, tell)

    def scrape(self) -> bytes:
        """Give the metrics with the gauges brought up to date."""
        gauges = self.metrics
        gauges.generation.set(self.cluster.snapshot().generation)
        gauges.promises.set(self.cluster.promises)
        gauges.silence.set(self.silence())
        for kind, count in self.cluster.sizes().items():
            gauges.objects.labels(kind).set(count)
        return gauges.text()

    def _remember(self, pod: Pod, answer: Answer) -> None:
        if answer.promised is None or not answer.promised.victims.pods:
            return
        victims = frozenset(victim.uid for victim in answer.promised.victims.pods)
        deadline = self.clock.monotonic() + self.promise_seconds
        self.cluster.promise(Promise(pod, answer.promised.node, victims, deadline))
