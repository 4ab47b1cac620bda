"""The extender's service without HTTP: the cluster cache, the rules, and the answers to calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from extender.announcing import Announcer
from extender.cluster import LiveCluster
from extender.degrading import Case, Degradation, DegradedError
from extender.journal import Journal
from extender.kube.clock import Clock
from extender.kube.events import rfc3339
from extender.metrics import Metrics
from extender.overlay import Promise
from extender.readiness import Feed, Readiness
from extender.recent import Recent, Record, known, record_of
from extender.tallies import tally
from extender.tracing import Course, Stage, Tracer
from extender.turns import OverloadedError, Turns
from extender.verbs import VERBS
from extender.verdict import Answer, Circumstances, Search, Situation, Substitute
from policies.engine import Engine
from policies.model import Pod
from policies.patience import OutOfTimeError


class UnknownVerbError(LookupError):
    """A path names no verb; the text lists the known ones."""


class NotReadyError(RuntimeError):
    """The informers have not synced, so no answer would be safe."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A call as received; ``arrived`` is the time its header was read, in monotonic seconds.

    ``trace`` records its steps.
    """

    verb: str
    body: bytes
    arrived: float
    request_id: str = ""
    course: Course = field(default_factory=Course)


@dataclass(frozen=True, slots=True)
class Answered:
    """The body to send; ``record`` records the answer and is called after it is sent."""

    body: bytes
    tell: Callable[[], None]


@dataclass(slots=True)
class Service:
    """Answers calls. ``informers`` are by kind; a call waits for none if it is empty."""

    cluster: LiveCluster
    engine: Engine
    clock: Clock
    search: Search = Search.OFFERED
    promise_seconds: float = 30.0
    feeds: Mapping[str, Feed] = field(default_factory=dict)
    metrics: Metrics = field(default_factory=Metrics)
    journal: Journal = field(default_factory=Journal)
    degradation: Degradation = field(default_factory=Degradation)
    turns: Turns = field(default_factory=Turns)
    recent: Recent = field(default_factory=Recent)
    announcer: Announcer | None = None
    tracer: Tracer | None = None
    readiness: Readiness = field(init=False)

    def __post_init__(self) -> None:
        """Build readiness from the informers, and initialize the metrics to 0."""
        self.readiness = Readiness(self.clock, self.feeds, self.degradation.stale_seconds)
        self.metrics.start(VERBS, self.degradation.stand_ins(VERBS))

    def silence(self) -> float:
        """Return the seconds since the server was last heard of on any watch."""
        return min(self.readiness.ages().values(), default=0.0)

    async def call(self, asked: Asked) -> Answered:
        """Answer one call when the queue admits it.

        Raise UnknownVerbError, NotReadyError, and the errors of :meth:`answer`.
        """
        if asked.verb not in VERBS:
            known_verbs = ", ".join(VERBS)
            raise UnknownVerbError(f"no verb {asked.verb!r}; expected one of {known_verbs}")
        missing = self.readiness.waiting_for()
        if missing:
            raise NotReadyError(f"not ready: waiting for {', '.join(missing)}")
        try:
            await self.turns.take()
        except OverloadedError as error:
            return self._stand_in(Case.OVERLOADED, asked, str(error))
        started = self.clock.monotonic()
        try:
            return self.answer(asked)
        finally:
            self.turns.spent(self.clock.monotonic() - started)

    def answer(self, asked: Asked) -> Answered:
        """Answer one call now.

        Raise DegradedError, and ExtenderDecodeError or ObjectError for an invalid body.
        """
        course = asked.course
        started = course.ends[Stage.WAITING] = self.clock.monotonic()
        deadline = asked.arrived + self.degradation.deadline(asked.verb)
        if started > deadline:
            waited = f"waited {started - asked.arrived:.3f} s"
            return self._stand_in(Case.LATE, asked, waited)
        silent = self.readiness.silent()
        if silent:
            return self._stand_in(Case.STALE, asked, f"nothing heard of {', '.join(silent)}")
        call = VERBS[asked.verb](asked.body, self.engine.rules)
        course.pod = call.pod.key
        snapshot = self.cluster.snapshot()
        pods = self.feeds.get("pods")
        pods_version = "" if pods is None else pods.resource_version
        clock = self.clock
        situation = Situation(
            snapshot, self.engine, self.search, lambda: clock.monotonic() <= deadline
        )
        try:
            answer = call.answer(situation)
        except OutOfTimeError:
            return self._stand_in(Case.LATE, asked, "the search was not finished in time")
        course.answer, course.generation = answer, snapshot.generation
        course.ends[Stage.DECIDING] = clock.monotonic()
        body = answer.encode()
        self._remember(call.pod, answer)
        ended = course.ends[Stage.ENCODING] = clock.monotonic()

        def tell() -> None:
            around = Circumstances(
                self._now(),
                asked.request_id,
                asked.verb,
                snapshot.generation,
                pods_version,
                ended - started,
            )
            self._tell(answer, around)
            self.metrics.waited.labels(asked.verb).observe(started - asked.arrived)
            if ended > deadline:
                self.metrics.overdue.labels(asked.verb).inc()

        return Answered(body, tell)

    def scrape(self) -> bytes:
        """Return the metrics with current gauges."""
        gauges = self.metrics
        gauges.generation.set(self.cluster.snapshot().generation)
        gauges.promises.set(self.cluster.promises)
        gauges.silence.set(self.silence())
        gauges.queue.set(self.turns.waiting)
        gauges.ready.set(not self.readiness.problem())
        for kind, count in self.cluster.sizes().items():
            gauges.objects.labels(kind).set(count)
        for kind, age in self.readiness.ages().items():
            gauges.ages.labels(kind).set(age)
        return gauges.text()

    def _tell(self, answer: Answer, around: Circumstances) -> None:
        verb, seconds = around.verb, around.seconds
        reasons = tally(answer.decision.rejected)
        self.metrics.answered(verb, answer, reasons)
        self.metrics.seconds.labels(verb).observe(seconds)
        self.journal.answered(answer, around, self.silence())
        self.recent.add(record_of(answer, around, reasons))
        if self.announcer is not None:
            self.announcer.answered(answer)

    def _stand_in(self, case: Case, asked: Asked, why: str) -> Answered:
        """Return the configured fallback for a decision. Raise the errors of :meth:`answer`."""
        verb, substitute = asked.verb, self.degradation.substitute(case, asked.verb)
        self.metrics.degraded.labels(verb, case.value, substitute.value).inc()
        asked.course.case, asked.course.substitute = case.value, substitute.value
        if substitute is Substitute.ERROR:
            raise DegradedError(f"{case.value}: {why}")
        call = VERBS[verb](asked.body, self.engine.rules)
        asked.course.pod = call.pod.key
        refusal = f"the extender cannot answer now ({case.value}: {why})"
        body = call.echo() if substitute is Substitute.ECHO else call.veto(refusal)
        degraded = f"{case.value}: {why}; {substitute.value}"

        def tell() -> None:
            self.journal.degraded(verb, call.pod, degraded)
            pod = known(call.pod)
            self.recent.add(Record(self._now(), asked.request_id, verb, pod, degraded=degraded))

        return Answered(body, tell)

    def _now(self) -> str:
        return rfc3339(self.clock.now_ns())

    def _remember(self, pod: Pod, answer: Answer) -> None:
        if answer.promised is None or not answer.promised.victims.pods:
            return
        victims = frozenset(victim.uid for victim in answer.promised.victims.pods)
        deadline = self.clock.monotonic() + self.promise_seconds
        self.cluster.promise(Promise(pod, answer.promised.node, victims, deadline))
