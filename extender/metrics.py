"""What Prometheus may ask of the extender; every figure is read off the answer that was sent."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from extender.verdict import Answer
from policies.decision import PreemptionDecision

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


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
            "From the last byte of the request to the answer",
            ("verb",),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.victims = self._counter("victims", "Pods named as victims")
        self.spared = self._counter("spared", "Pods reprieved on the chosen nodes")
        self.violations = self._counter("budget_violations", "Budgets broken by named victims")
        self.unanswered = self._counter(
            "preempt_without_answer", "Preempt calls that named no node"
        )
        self.notes = self._counter("notes", "Entries left out and answers deferred")
        self.objects = Gauge(
            "reprieve_objects", "Objects known, by kind", ("kind",), registry=self.registry
        )
        self.generation = self._gauge("snapshot_generation", "Generation of the snapshot")
        self.promises = self._gauge("promises", "Answers that the watch has not confirmed yet")
        self.silence = self._gauge(
            "watch_silence_seconds", "Time since the server last said anything on any watch"
        )

    def answered(self, answer: Answer) -> None:
        """Count what an answer says."""
        self.notes.inc(len(answer.notes))
        if not isinstance(answer.decision, PreemptionDecision):
            return
        if answer.promised is None:
            self.unanswered.inc()
            return
        self.victims.inc(len(answer.promised.victims.pods))
        self.violations.inc(answer.promised.victims.violations)
        self.spared.inc(len(answer.promised.spared))

    def text(self) -> bytes:
        """Give everything in Prometheus's text format."""
        return generate_latest(self.registry)

    def _counter(self, name: str, meaning: str) -> Counter:
        return Counter(f"reprieve_{name}", meaning, registry=self.registry)

    def _gauge(self, name: str, meaning: str) -> Gauge:
        return Gauge(f"reprieve_{name}", meaning, registry=self.registry)
