"""The extender's service without HTTP: the cluster cache, the rules, and the answers to calls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from extender.cluster.readiness import InformerState, Readiness
from extender.cluster.scheduler_cache import SchedulerCache
from extender.config.component_config import Mode
from extender.kube.decoders.object_meta import format_time
from extender.kube.rest.clock import Clock
from extender.observability.decision_history import (
    DecisionHistory,
    DecisionRecord,
    decision_record,
    pod_reference,
)
from extender.observability.decision_log import DecisionLog, count_reasons
from extender.observability.metrics import Metrics
from extender.observability.preemption_events import PreemptionEventRecorder
from extender.observability.request_trace import RequestTrace, Tracer, TraceStep
from extender.observability.unreadable_costs import UnreadableCosts
from extender.protocol.own_choice import own_choice, settled
from extender.protocol.preempt_verb import PreemptArgs
from extender.protocol.request_size import SMALL_BYTES, UNBOUNDED, Steps, at_once, bounds_of_cluster
from extender.protocol.verb_context import (
    AnswerContext,
    CallContext,
    FallbackKind,
    Search,
    VerbResult,
)
from extender.protocol.verbs import VERBS, DecodedCall, ReceivedCall
from extender.server.call_queue import CallQueue, OverloadedError
from extender.server.decision_steps import decide_in_steps, run_in_steps
from extender.server.fallback_policy import DegradedError, FallbackPolicy, FallbackReason
from extender.server.shadow_decisions import ShadowDecisions
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.decision import PreemptionDecision
from policies.preemption.engine import Engine
from policies.preemption.explanation import guard_actions
from policies.preemption.policy import SchedulerRules
from policies.preemption.time_limit import DeadlineExceededError, HasTimeLeft

if TYPE_CHECKING:
    from extender.ledger.decision_recorder import DecisionRecorder  # loaded only with a ledger


class UnknownVerbError(LookupError):
    """A path names no verb; the text lists the known ones."""


class NotReadyError(RuntimeError):
    """The informers have not synced, so no answer would be safe."""


@dataclass(frozen=True, slots=True)
class VerbCall:
    """A call as received; ``arrived`` is the time its header was read, in monotonic seconds.

    ``trace`` records its steps.
    """

    verb: str
    body: bytes
    arrived: float
    request_id: str = ""
    trace: RequestTrace = field(default_factory=RequestTrace)


@dataclass(frozen=True, slots=True)
class VerbReply:
    """The body to send; ``record`` records the answer and is called after it is sent."""

    body: bytes
    record: Callable[[], None]


class OtherProcesses(Protocol):
    """The other processes of a group, as its primary process sees them."""

    async def share(self) -> None:
        """Return when they have all changes of assumed preemptions."""

    async def sum_metrics(self, own: bytes) -> bytes:
        """Return the metrics of all processes."""

    async def merge_decisions(self, own: bytes, query: Mapping[str, str]) -> bytes:
        """Return the decisions of all processes that a query of ``/decisions`` selects."""


@dataclass(slots=True)
class Service:
    """Answers calls. ``informers`` are by kind; a call waits for none if it is empty.

    In the mode ``OBSERVE``, the rules of ``engine`` are kube-scheduler's, and every answer leaves
    the choice to kube-scheduler. ``others`` are the other processes, if this is the primary process
    of several.
    """

    cluster: SchedulerCache
    engine: Engine
    clock: Clock
    search: Search = Search.OFFERED
    assumed_seconds: float = 30.0
    informers: Mapping[str, InformerState] = field(default_factory=dict)
    metrics: Metrics = field(default_factory=Metrics)
    decision_log: DecisionLog = field(default_factory=DecisionLog)
    fallback_policy: FallbackPolicy = field(default_factory=FallbackPolicy)
    call_queue: CallQueue = field(default_factory=CallQueue)
    decision_history: DecisionHistory = field(default_factory=DecisionHistory)
    preemption_events: PreemptionEventRecorder | None = None
    ledger: DecisionRecorder | None = None
    tracer: Tracer | None = None
    others: OtherProcesses | None = None
    mode: Mode = Mode.ENFORCE
    shadows: ShadowDecisions | None = None
    readiness: Readiness = field(init=False)
    unreadable_costs: UnreadableCosts = field(init=False)

    def __post_init__(self) -> None:
        """Build readiness from the informers, and initialize the metrics to 0."""
        self.unreadable_costs = UnreadableCosts(self.engine.rules)
        self.metrics.observe_policy(self.engine.rules)
        self.readiness = Readiness(self.clock, self.informers, self.fallback_policy.stale_seconds)
        self.metrics.initialize(VERBS, self.fallback_policy.fallback_labels(VERBS))

    def follow(self, snapshot: Snapshot, changed: Collection[str]) -> None:
        """Prepare for decisions about a new snapshot of the cluster."""
        self.engine.follow(snapshot, changed)
        self.unreadable_costs.follow(snapshot, changed)

    def replace_engine(self, engine: Engine) -> None:
        """Decide by another engine of the same rules from the next decision on."""
        engine.follow(self.cluster.snapshot())
        self.engine = engine

    def use(self, engine: Engine) -> None:
        """Decide by an engine of other rules from the next decision on."""
        self.replace_engine(engine)
        self.metrics.policy_reloads.inc()
        self.metrics.observe_policy(engine.rules)
        self.unreadable_costs.use(engine.rules, self.cluster.snapshot())
        if self.ledger is not None:
            self.ledger.reload_rules()

    async def call(self, verb_call: VerbCall) -> VerbReply:
        """Answer one call when the queue admits it.

        Raise UnknownVerbError, NotReadyError, and the errors of :meth:`answer`.
        """
        if verb_call.verb not in VERBS:
            known_verbs = ", ".join(VERBS)
            raise UnknownVerbError(f"no verb {verb_call.verb!r}; expected one of {known_verbs}")
        missing = self.readiness.unsynced_kinds()
        if missing and self.mode is Mode.ENFORCE:
            raise NotReadyError(f"not ready: waiting for {', '.join(missing)}")
        try:
            await self.call_queue.acquire(verb_call.verb)
        except OverloadedError as error:
            overloaded = self._fall_back(FallbackReason.OVERLOADED, verb_call, str(error))
            return await run_in_steps(overloaded)
        started = self.clock.monotonic()
        try:
            reply = await run_in_steps(self.answer(verb_call))
        finally:
            self.call_queue.record_duration(self.clock.monotonic() - started)
        if self.others is not None:
            await self.others.share()
        return reply

    def answer(self, verb_call: VerbCall) -> Steps[VerbReply]:
        """Answer one call, in steps while its body is decoded and while it is decided.

        Raise DegradedError, and ExtenderDecodeError or ObjectError for an invalid body.
        """
        trace = verb_call.trace
        started = trace.step_ends[TraceStep.WAITING] = self.clock.monotonic()
        deadline = self._deadline(verb_call)
        if started > deadline:
            waited = f"waited {started - verb_call.arrived:.3f} s"
            return (yield from self._fall_back(FallbackReason.LATE, verb_call, waited))
        silent = [*self.readiness.unsynced_kinds(), *self.readiness.silent_kinds()]
        if silent:
            detail = f"no recent data for {', '.join(silent)}"
            return (yield from self._fall_back(FallbackReason.STALE, verb_call, detail))
        call = yield from self._decode_until(deadline, verb_call)
        if call is None:
            detail = "the body was not decoded before the deadline"
            return (yield from self._fall_back(FallbackReason.LATE, verb_call, detail))
        trace.pod = call.pod.key
        yield from self._pause_after(verb_call)
        if self.mode is Mode.OBSERVE:
            return self._observe(call, verb_call)
        try:
            answer, context, pods_version = yield from self._decide(call, deadline)
        except DeadlineExceededError:
            detail = "the search did not finish before the deadline"
            return (yield from self._fall_back(FallbackReason.LATE, verb_call, detail))
        trace.answer, trace.generation = answer, context.snapshot.generation
        trace.step_ends[TraceStep.DECIDING] = self.clock.monotonic()
        named = answer.named_candidate
        if named is not None:
            now_ns, seconds = self.clock.now_ns(), self.assumed_seconds
            self.cluster.assume_answer(call.pod, named.node, named.victims.pods, now_ns, seconds)
        yield from self._pause_after(verb_call)
        body = answer.encode()
        return self._reply(call, verb_call, body, lambda: answer, context, pods_version)

    def _observe(self, call: DecodedCall, verb_call: VerbCall) -> VerbReply:
        """Pass a call through; find out what kube-scheduler chooses after the answer is sent."""
        context, pods_version = self._context(self.cluster.snapshot(), call.pod), self._pods_version
        if isinstance(call, PreemptArgs):
            context = settled(call, context)
        verb_call.trace.generation = context.snapshot.generation
        body = call.pass_through(context.rules, context.snapshot)
        found = partial(own_choice, call, context)
        return self._reply(call, verb_call, body, found, context, pods_version)

    def _reply(
        self,
        call: DecodedCall,
        verb_call: VerbCall,
        body: bytes,
        find_answer: Callable[[], VerbResult],
        context: CallContext,
        pods_version: str,
    ) -> VerbReply:
        """Return a reply whose recording reads the decision from ``find_answer``."""
        trace, verb, clock = verb_call.trace, verb_call.verb, self.clock
        started, deadline = trace.step_ends[TraceStep.WAITING], self._deadline(verb_call)
        ended = trace.step_ends[TraceStep.ENCODING] = clock.monotonic()
        generation, at_ns, took = context.snapshot.generation, clock.now_ns(), ended - started

        def record() -> None:
            answered = AnswerContext(
                at_ns, verb_call.request_id, verb, generation, pods_version, took
            )
            self._record(ReceivedCall(call, verb_call.body), find_answer(), context, answered)
            self.metrics.queue_seconds.labels(verb).observe(started - verb_call.arrived)
            if ended > deadline:
                self.metrics.overdue.labels(verb).inc()

        return VerbReply(body, record)

    def _deadline(self, verb_call: VerbCall) -> float:
        return verb_call.arrived + self.fallback_policy.deadline(verb_call.verb)

    @property
    def _pods_version(self) -> str:
        pods = self.informers.get("pods")
        return "" if pods is None else pods.resource_version

    def _pause_after(self, verb_call: VerbCall) -> Steps[None]:
        """Let the event loop run between the stages of a large call."""
        if len(verb_call.body) > SMALL_BYTES:
            yield

    def _decoding(self, verb_call: VerbCall) -> Steps[DecodedCall]:
        """Decode a call that the cluster, once it is known, can have; a small one in one step."""
        cluster = self.cluster
        bounds = bounds_of_cluster(len(cluster.nodes.by_key), len(cluster.pods.by_key))
        if self.mode is Mode.OBSERVE and self.readiness.unsynced_kinds():
            bounds = UNBOUNDED
        steps = VERBS[verb_call.verb](verb_call.body, self.engine.rules, bounds)
        return at_once(steps) if len(verb_call.body) <= SMALL_BYTES else (yield from steps)

    def _decode_until(self, deadline: float, verb_call: VerbCall) -> Steps[DecodedCall | None]:
        """Decode a call; return None if the deadline passes before its last step."""
        decoding = self._decoding(verb_call)
        while True:
            try:
                next(decoding)
            except StopIteration as end:
                call: DecodedCall = end.value
                return call
            if self.clock.monotonic() > deadline:
                return None
            yield

    def _decide(
        self, call: DecodedCall, deadline: float
    ) -> Steps[tuple[VerbResult, CallContext, str]]:
        """Decide a call in the current context, after the decision in progress.

        Raise DeadlineExceededError. A call that ends the pod's assumed preemption is decided
        without it. So while nothing changes, a repeated preempt call gets the same node and
        victims.
        """
        cluster = self.cluster
        while cluster.is_locked:
            yield
            if self.clock.monotonic() > deadline:
                raise DeadlineExceededError
        ending = call.ends_assumed_preemption and cluster.known_preemptor(call.pod) is not None
        with (
            cluster.deciding_anew(call.pod.uid) if ending else nullcontext(),
            cluster.locked_snapshot() as snapshot,
        ):
            context = self._context(snapshot, call.pod)
            # Read now: while the call waited for the decision in progress, the watch went on.
            pods_version = self._pods_version

            def decide(has_time_left: HasTimeLeft) -> VerbResult:
                return call.decide(replace(context, has_time_left=has_time_left))

            answer = yield from decide_in_steps(decide, deadline, self.clock)
            if self.shadows is not None and isinstance(call, PreemptArgs):
                context = settled(call, context)
            return answer, context, pods_version

    def _context(self, snapshot: Snapshot, pod: Pod) -> CallContext:
        """Return the context of a decision about a pod now."""
        engine = self.engine
        if self._rules_read.reads_time:
            now_ns = self.clock.now_ns()
            recent = self.cluster.preemptions.recent(now_ns, deciding=pod.uid)
            snapshot = replace(snapshot, now_ns=now_ns, preemptions=recent)
        return CallContext(snapshot, engine, self.search, pending_pods=self.cluster.pods.pending)

    @property
    def _rules_read(self) -> SchedulerRules:
        """The rules, which also read what shadow policies read."""
        rules = self.engine.rules
        return rules if self.shadows is None else self.shadows.combined_with(rules)

    def scrape(self) -> bytes:
        """Return the metrics with current gauges."""
        gauges = self.metrics
        gauges.generation.set(self.cluster.snapshot().generation)
        gauges.assumed_preemptions.set(self.cluster.assumed_count)
        gauges.recent_preemptions.set(len(self.cluster.preemptions))
        gauges.watch_silence.set(self.readiness.silence())
        gauges.unreadable_costs.set(self.unreadable_costs.count)
        gauges.queue.set(self.call_queue.waiting)
        gauges.ready.set(not self.readiness.problem())
        for kind, count in self.cluster.object_counts().items():
            gauges.objects.labels(kind).set(count)
        for kind, age in self.readiness.ages().items():
            gauges.cache_ages.labels(kind).set(age)
        return gauges.exposition()

    def _record(
        self,
        call: ReceivedCall,
        answer: VerbResult,
        context: CallContext,
        answered: AnswerContext,
    ) -> None:
        verb, decision = answered.verb, answer.decision
        reasons = count_reasons(decision.rejected)
        if isinstance(decision, PreemptionDecision):
            guards = guard_actions(decision, reasons, context.snapshot, context.rules)
            answer = replace(answer, guards=guards)
        self.metrics.observe_answer(verb, answer, reasons)
        self.metrics.seconds.labels(verb).observe(answered.seconds)
        self.decision_log.log_answer(answer, answered, self.readiness.silence())
        self.decision_history.add(decision_record(answer, answered, reasons))
        if self.preemption_events is not None:
            self.preemption_events.record(answer)
        entry = None
        if self.ledger is not None:
            entry = self.ledger.record(call, answer, context, answered, reasons)
        if self.shadows is not None and isinstance(call.args, PreemptArgs):
            self.shadows.add(call.body, context, answer, answered, entry)

    def _fall_back(
        self, reason: FallbackReason, verb_call: VerbCall, detail: str
    ) -> Steps[VerbReply]:
        """Return the configured fallback for a decision. Raise the errors of :meth:`answer`."""
        verb, fallback = verb_call.verb, self.fallback_policy.fallback(reason, verb_call.verb)
        self.metrics.degraded.labels(verb, reason.value, fallback.value).inc()
        verb_call.trace.fallback_reason, verb_call.trace.fallback = reason.value, fallback.value
        if fallback is FallbackKind.ERROR:
            raise DegradedError(f"{reason.value}: {detail}")
        call = yield from self._decoding(verb_call)
        verb_call.trace.pod = call.pod.key
        if fallback is FallbackKind.ECHO:
            body = call.pass_through(self.engine.rules, self.cluster.snapshot())
        else:
            body = call.refuse_all(f"the extender cannot decide now ({reason.value}: {detail})")
        degraded = f"{reason.value}: {detail}; {fallback.value}"
        at_ns, request_id = self.clock.now_ns(), verb_call.request_id

        def record() -> None:
            self.decision_log.log_fallback(verb, call.pod, degraded)
            pod, at = pod_reference(call.pod), format_time(at_ns)
            self.decision_history.add(DecisionRecord(at, request_id, verb, pod, degraded=degraded))
            if self.ledger is not None:
                received = ReceivedCall(call, verb_call.body)
                self.ledger.record_fallback(received, verb, request_id, at_ns, degraded)

        return VerbReply(body, record)
