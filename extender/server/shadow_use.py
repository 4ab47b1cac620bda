"""The shadow policies of a serving process, as the configuration asks for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import structlog
from prometheus_client import CollectorRegistry

from extender.config.component_config import Config, LedgerVerb
from extender.kube.rest.clock import Clock
from extender.ledger.choice_cost import differs
from extender.ledger.entry import LedgerEntry, LedgerShadow, entry_id
from extender.ledger.entry_builder import EntryBuilder
from extender.ledger.writer import LedgerWriter
from extender.observability.decision_log import ReasonCounts, count_reasons
from extender.protocol.verb_context import AnswerContext, CallContext, VerbResult
from extender.server.cpu_share import CpuShare
from extender.server.shadow_decisions import DecidedCall, ShadowChoice, ShadowDecisions
from extender.server.shadow_metrics import ShadowMetrics
from policies.preemption.decision import PreemptionDecision
from policies.preemption.explanation import guard_actions
from policies.preemption.policy import SchedulerRules


@dataclass(frozen=True, slots=True)
class ChoiceRecorder:
    """Records what shadow policies would have chosen: in metrics, in the log, and in a ledger.

    ``writer`` is that of the ledger that keeps the answers to preempt calls, if there is one.
    """

    builder: EntryBuilder
    metrics: ShadowMetrics
    writer: LedgerWriter | None = None

    def record(self, decided: DecidedCall, choice: ShadowChoice) -> None:
        """Record a choice beside that of the answer."""
        policy, live = choice.context.rules.policy.name, decided.live
        shadow = self._shadow_entry(decided, choice)
        self.metrics.observe(policy, live, shadow, choice.seconds)
        if self.writer is not None:
            self.writer.add_shadow(LedgerShadow(policy, shadow), live)
        if differs(live, shadow):
            structlog.get_logger().info(
                "shadow",
                pod=live.pod.key,
                policy=policy,
                node=shadow.node,
                victims=[pod.key for pod in shadow.victims],
                live_node=live.node,
                live_victims=[pod.key for pod in live.victims],
                request_id=live.request_id,
            )

    def live_entry(
        self, answer: VerbResult, context: CallContext, answered: AnswerContext
    ) -> LedgerEntry:
        """Return the entry of an answer that no ledger keeps."""
        number, no_reasons = entry_id(answered.at_ns, 0), ReasonCounts()
        return self.builder.entry(
            number, "", answer, context.snapshot, context.rules, answered, no_reasons
        )

    def drop(self) -> None:
        """Count a decision that is not made."""
        self.metrics.dropped.inc()

    def _shadow_entry(self, decided: DecidedCall, choice: ShadowChoice) -> LedgerEntry:
        answer, context, decision = choice.answer, choice.context, choice.answer.decision
        reasons = count_reasons(decision.rejected)
        if isinstance(decision, PreemptionDecision):
            guards = guard_actions(decision, reasons, context.snapshot, context.rules)
            answer = replace(answer, guards=guards)
        answered = replace(decided.answered, seconds=choice.seconds)
        live = decided.live
        return self.builder.entry(
            live.id, live.digest, answer, context.snapshot, context.rules, answered, reasons
        )


def build_shadows(
    config: Config,
    policies: Sequence[SchedulerRules],
    clock: Clock,
    idle_seconds: Callable[[], float],
    registry: CollectorRegistry,
    writer: LedgerWriter | None,
) -> ShadowDecisions:
    """Return what decides by the shadow policies of a configuration, and records that.

    ``idle_seconds`` returns how long no call has been in progress.
    """
    metrics = ShadowMetrics(registry)
    for rules in policies:
        metrics.initialize(rules.policy.name)
    if config.ledger is None or LedgerVerb.PREEMPT not in config.ledger.verbs:
        builder, writer = EntryBuilder(most_candidates=1), None
    else:
        builder = EntryBuilder(config.ledger.team_label)
    return ShadowDecisions(
        policies,
        config.search,
        CpuShare(config.shadow_cpu_share, clock, idle_seconds),
        clock,
        ChoiceRecorder(builder, metrics, writer),
    )
