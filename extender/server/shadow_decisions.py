"""Decisions that are only recorded: what shadow policies would have chosen.

A preempt call is answered first. Then each shadow policy decides it again, on the snapshot of the
answer, however much later that is: so the same policy always makes the same choice, unless the
answer was cut short at its deadline. Filter calls have no policy, and are not decided again.

Each shadow policy has an engine of its own, with its own columns. Their decisions wait in a queue,
and are made and recorded within a share of one core (:mod:`extender.server.cpu_share`). If too many
wait, the newest are dropped and counted: memory is limited, since each keeps its snapshot.
"""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from extender.kube.rest.clock import Clock
from extender.protocol.preempt_verb import decode
from extender.protocol.request_size import Steps
from extender.protocol.verb_context import AnswerContext, CallContext, Search, VerbResult
from extender.server.cpu_share import CpuShare
from extender.server.decision_steps import decide_in_steps
from policies.engine_selection import build_engine
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.engine import Engine
from policies.preemption.policy import PolicyRule, SchedulerRules
from policies.preemption.reference_engine import ReferenceEngine
from policies.preemption.time_limit import HasTimeLeft

if TYPE_CHECKING:
    from extender.ledger.entry import LedgerEntry

MOST_WAITING: Final = 256
_MOST_BYTES: Final = 32 * 2**20
"""Of the bodies of the calls that wait."""
_FOLLOW_SECONDS: Final = 1.0
_POLL_SECONDS: Final = 0.05
_NO_DEADLINE: Final = float("inf")


@dataclass(frozen=True, slots=True)
class DecidedCall:
    """A preempt call that was answered: the context of its decision, and the entry of its answer.

    The context holds later, too (:func:`extender.protocol.own_choice.settled`). Until it is decided
    again, a call consists of few objects: the garbage collector would visit all that wait.
    """

    body: bytes
    context: CallContext
    answered: AnswerContext
    live: LedgerEntry


@dataclass(frozen=True, slots=True)
class ShadowChoice:
    """What a shadow policy would have chosen; ``seconds`` is the duration of its decision."""

    context: CallContext
    answer: VerbResult
    seconds: float


class ShadowRecorder(Protocol):
    """Records what shadow policies would have chosen."""

    def live_entry(
        self, answer: VerbResult, context: CallContext, answered: AnswerContext
    ) -> LedgerEntry:
        """Return the entry of an answer that no ledger keeps."""

    def record(self, decided: DecidedCall, choice: ShadowChoice) -> None:
        """Record a choice beside that of the answer."""

    def drop(self) -> None:
        """Count a decision that is not made."""


class ShadowDecisions:
    """The shadow policies of an extender, and the calls that they are to decide."""

    def __init__(
        self,
        policies: Sequence[SchedulerRules],
        search: Search,
        share: CpuShare,
        clock: Clock,
        recorder: ShadowRecorder,
    ) -> None:
        self._engines: list[Engine] = [ReferenceEngine(each) for each in policies]
        self._search = search
        self._share = share
        self._clock = clock
        self._recorder = recorder
        self._waiting: deque[DecidedCall] = deque()
        self._bytes = 0
        self._combined: tuple[SchedulerRules, SchedulerRules] | None = None

    @property
    def waiting(self) -> int:
        """The number of calls that wait or are being decided."""
        return len(self._waiting)

    @property
    def rules(self) -> Sequence[SchedulerRules]:
        """The rules of the shadow policies, in the order of the configuration."""
        return [engine.rules for engine in self._engines]

    def use(self, index: int, engine: Engine) -> None:
        """Decide by another engine of a shadow policy from the next decision on."""
        self._engines[index] = engine
        self._combined = None

    def combined_with(self, rules: SchedulerRules) -> SchedulerRules:
        """Return rules that decide as ``rules``, and read what the shadow policies read as well."""
        if self._combined is None or self._combined[0] is not rules:
            self._combined = rules, combined_rules(rules, self.rules)
        return self._combined[1]

    def add(
        self,
        body: bytes,
        context: CallContext,
        answer: VerbResult,
        answered: AnswerContext,
        kept: LedgerEntry | None,
    ) -> None:
        """Decide a preempt call later, unless too many wait.

        ``kept`` is the entry of the answer in the ledger, if there is one.
        """
        if len(self._waiting) >= MOST_WAITING or self._bytes + len(body) > _MOST_BYTES:
            for _ in self._engines:
                self._recorder.drop()
            return
        live = kept or self._recorder.live_entry(answer, context, answered)
        self._waiting.append(DecidedCall(body, context, answered, live))
        self._bytes += len(body)

    async def run(self, synced: Awaitable[None], snapshot: Callable[[], Snapshot]) -> None:
        """Decide the calls that wait, from ``synced`` on, until cancelled.

        In between, the engines follow ``snapshot``, so that no decision has many changes to apply.
        """
        await synced
        for index, rules in enumerate(self.rules):
            engine = await asyncio.to_thread(build_engine, rules)
            await asyncio.to_thread(engine.follow, snapshot())
            if self._engines[index].rules is rules:  # not reloaded meanwhile
                self.use(index, engine)
        follow_at = 0.0
        while True:
            await self._clock.sleep(_POLL_SECONDS)
            await self.decide_waiting()
            if self._clock.monotonic() >= follow_at:
                await self._share.run(self._follow(snapshot))
                follow_at = self._clock.monotonic() + _FOLLOW_SECONDS

    async def decide_waiting(self) -> None:
        """Decide the calls that wait."""
        while self._waiting:
            decided = self._waiting[0]
            for engine in tuple(self._engines):
                await self._decide(decided, engine)
            self._waiting.popleft()
            self._bytes -= len(decided.body)

    async def _decide(self, decided: DecidedCall, engine: Engine) -> None:
        context = replace(decided.context, engine=engine, search=self._search)
        try:
            answer, seconds = await self._share.run(self._steps(decided.body, context))
            choice = ShadowChoice(context, answer, seconds)
            await self._share.run(self._recording(decided, choice))
        except Exception as error:  # noqa: BLE001 - outermost: a defect must not end the extender
            name = engine.rules.policy.name
            structlog.get_logger().error("shadow_failed", policy=name, exc_info=error)
            self._recorder.drop()

    def _steps(self, body: bytes, context: CallContext) -> Steps[VerbResult]:
        """Decode a call, and decide it in a context."""
        args = yield from decode(body, context.rules)

        def decide(has_time_left: HasTimeLeft) -> VerbResult:
            return args.decide(replace(context, has_time_left=has_time_left))

        return (yield from decide_in_steps(decide, _NO_DEADLINE, self._clock))

    def _recording(self, decided: DecidedCall, choice: ShadowChoice) -> Steps[None]:
        """Record a choice, in a single step."""
        yield from ()
        self._recorder.record(decided, choice)
        # A decision adds objects and frees as many older ones, so the garbage collector does not
        # run here. It would visit thousands of these objects during one of the next calls.
        gc.collect(0)

    def _follow(self, snapshot: Callable[[], Snapshot]) -> Steps[None]:
        for engine in self._engines:
            engine.follow(snapshot())
            yield


def combined_rules(rules: SchedulerRules, others: Sequence[SchedulerRules]) -> SchedulerRules:
    """Return rules that decide as ``rules``, and read what the ``others`` read as well."""
    return replace(rules, policy_rules=(*rules.policy_rules, *_read_only(others)))


def _read_only(others: Sequence[SchedulerRules]) -> Iterator[PolicyRule]:
    """Yield the policies of others, each of which applies to no preemptor."""
    for each in others:
        for rule in each.policy_rules:
            yield PolicyRule(rule.name, _applies_never, rule.policy, rule.annotations)
        yield PolicyRule("", _applies_never, each.policy)


def _applies_never(_: Pod) -> bool:
    return False
