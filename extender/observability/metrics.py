"""Prometheus metrics of the extender, counted from the answers that are sent."""

from __future__ import annotations

from collections import Counter as Counted
from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest

from extender.observability.decision_log import ReasonCounts
from extender.protocol.verb_context import VerbResult
from policies.preemption.decision import PreemptionDecision
from policies.preemption.filtering.status import Code
from policies.preemption.policy import SchedulerRules

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_COUNTS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

UNKNOWN: Final = "unknown"
"""The verb label of calls to an unknown path."""

OTHER: Final = "other"
"""The label value of all texts beyond the limit of a label."""

_MAX_NAMESPACES: Final = 200
_MAX_PRIORITY_CLASSES: Final = 20

_ATTEMPT: Final = "attempt"
_NODE: Final = "node"
"""The label values of what a guard refuses."""

_ERROR_STATUSES: Final = (400, 408, 413, 500, 503)
"""The error statuses of a call; a call of an unknown verb gets 404 in place of 200."""


class LimitedLabel:
    """A label whose values come from the cluster: the first ``limit`` texts have series.

    All others are counted together as ``OTHER``. So the number of series is limited, whatever
    objects are created.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._texts: set[str] = set()

    def value(self, text: str) -> str:
        """Return the value of the label for a text."""
        if len(self._texts) < self._limit:
            self._texts.add(text)
        return text if text in self._texts else OTHER


class Metrics:
    """Counters, histograms and gauges of one running extender; durations in seconds."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "reprieve_requests",
            "Calls by verb and HTTP status",
            ("verb", "status"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "reprieve_request_seconds",
            "Time from the last byte of the request to the response",
            ("verb",),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.queue_seconds = Histogram(
            "reprieve_queue_seconds",
            "Time from the header of the request until the call is dequeued",
            ("verb",),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.overdue = self._counter(
            "overdue_answers", "Decisions sent after their deadline", "verb"
        )
        self.degraded = self._counter(
            "degraded", "Calls answered with a fallback", "verb", "case", "answer"
        )
        self.cut_short = self._counter(
            "searches_cut_short", "Decisions among the nodes tried before the deadline", "verb"
        )
        self.candidates = Histogram(
            "reprieve_candidates",
            "Candidates of a preemption",
            buckets=_COUNTS,
            registry=self.registry,
        )
        self.by_class = self._counter(
            "victims_by_class", "Pods named as victims", "namespace", "priority_class"
        )
        self._namespaces = LimitedLabel(_MAX_NAMESPACES)
        self._priority_classes = LimitedLabel(_MAX_PRIORITY_CLASSES)
        self.rejected = self._counter(
            "rejected_nodes", "Rejected nodes by reason; a node can have several", "verb", "reason"
        )
        self.victims = self._counter("victims", "Pods named as victims")
        self.spared = self._counter("spared", "Pods reprieved on the chosen nodes")
        self.violations = self._counter(
            "budget_violations", "Disruption budgets violated by victims"
        )
        self.unanswered = self._counter(
            "preempt_without_answer", "Preempt calls that named no node"
        )
        self.notes = self._counter("notes", "Entries left out and decisions deferred")
        self.guards = self._counter(
            "policy_guard",
            "Attempts and nodes that guards of the policy refused",
            "guard",
            "action",
        )
        self.policy_reloads = self._counter(
            "policy_reloads", "Changed policy files that were loaded"
        )
        self.policy_errors = self._counter(
            "policy_reload_errors", "Changed policy files that could not be loaded"
        )
        self.policy = Info("reprieve_policy", "Name of the policy in use", registry=self.registry)
        self.objects = Gauge(
            "reprieve_objects", "Cached objects by kind", ("kind",), registry=self.registry
        )
        self.cache_ages = Gauge(
            "reprieve_cache_age_seconds",
            "Time since data was last received, by kind",
            ("kind",),
            registry=self.registry,
        )
        self.queue = self._gauge("queue_length", "Calls in the queue")
        self.ready = self._gauge("ready", "Whether the extender is ready: 1 or 0")
        self.generation = self._gauge("snapshot_generation", "Generation of the snapshot")
        self.recent_preemptions = self._gauge(
            "recent_preemptions", "Preemptions of the last day that guards read"
        )
        self.assumed_preemptions = self._gauge(
            "promises", "Assumed preemptions that the watch has not confirmed yet"
        )
        self.unreadable_costs = self._gauge(
            "policy_unreadable_costs",
            "Pods that are protected since a cost or an expression has no value",
        )
        self.watch_silence = self._gauge(
            "watch_silence_seconds", "Time since data was last received on any watch"
        )

    def initialize(self, verbs: Iterable[str], fallbacks: Iterable[tuple[str, str, str]]) -> None:
        """Initialize the series of these verbs to 0, as far as their labels are known beforehand.

        Prometheus misses the first increase of a series that begins with its first event.
        ``fallbacks`` are the labels of fallbacks: verb, reason and fallback. Namespaces and
        priority classes of victims are not known beforehand.
        """
        for verb in verbs:
            self._initialize_requests(verb, 200)
            for histogram in (self.seconds, self.queue_seconds):
                histogram.labels(verb)
            self.overdue.labels(verb)
            for code in Code:
                self.rejected.labels(verb, _reason(code))
        self._initialize_requests(UNKNOWN, 404)
        self.cut_short.labels("preempt")
        for labels in fallbacks:
            self.degraded.labels(*labels)

    def observe_policy(self, rules: SchedulerRules) -> None:
        """Record that the policies of these rules are used, and initialize the series of guards."""
        self.policy.info({"name": rules.policy.name})
        for policy in rules.policies:
            for guard in policy.attempt_guards:
                self.guards.labels(guard.name, _ATTEMPT)
            for limit in policy.limit_names:
                self.guards.labels(limit, _NODE)

    def observe_answer(self, verb: str, answer: VerbResult, reasons: ReasonCounts) -> None:
        """Count an answer; ``reasons`` are those of the nodes it rejects."""
        self.notes.inc(len(answer.notes))
        by_code: Counted[Code] = Counted()
        for reason, count in reasons.items():
            by_code[reason.code] += count
        for code, count in by_code.items():
            self.rejected.labels(verb, _reason(code)).inc(count)
        if not isinstance(answer.decision, PreemptionDecision):
            return
        for limit, count in answer.guards.refused_nodes.items():
            self.guards.labels(limit, _NODE).inc(count)
        if answer.guards.refused_attempt:
            self.guards.labels(answer.guards.refused_attempt, _ATTEMPT).inc()
        self.candidates.observe(len(answer.decision.candidates))
        if answer.decision.untried:
            self.cut_short.labels(verb).inc()
        if answer.named_candidate is None:
            self.unanswered.inc()
            return
        self.victims.inc(len(answer.named_candidate.victims.pods))
        classes = Counted(
            (
                self._namespaces.value(pod.namespace),
                self._priority_classes.value(pod.priority_class),
            )
            for pod in answer.named_candidate.victims.pods
        )
        for labels, count in classes.items():
            self.by_class.labels(*labels).inc(count)
        self.violations.inc(answer.named_candidate.victims.violations)
        self.spared.inc(len(answer.named_candidate.spared))

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return generate_latest(self.registry)

    def _initialize_requests(self, verb: str, other: int) -> None:
        for status in (other, *_ERROR_STATUSES):
            self.requests.labels(verb, str(status))

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"reprieve_{name}", meaning, labels, registry=self.registry)

    def _gauge(self, name: str, meaning: str) -> Gauge:
        return Gauge(f"reprieve_{name}", meaning, registry=self.registry)


def _reason(code: Code) -> str:
    return code.name.lower()
