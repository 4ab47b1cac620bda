"""Export of calls as OpenTelemetry traces over OTLP/HTTP; needs the extra ``otel``.

Each call becomes a span of kind *server*, a child of the caller's span if the call has one, with a
child span for each completed step. Spans are built from the call's request trace
(:mod:`extender.observability.request_trace`) after it is answered; a thread sends them in batches.
So neither tracing nor a slow or missing collector delays an answer. Spans that cannot be sent are
dropped; the log has one line when that begins and one when it ends.

Only this module imports OpenTelemetry, and it is loaded only if the configuration has ``tracing``.
The library reads the other settings of OpenTelemetry's specification (headers for the collector,
resource attributes, batch sizes) from the environment.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from threading import Thread
from typing import Final

import structlog
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from extender.config.component_config import TracingConfig
from extender.kube.rest.clock import Clock, within
from extender.observability.metrics import UNKNOWN
from extender.observability.request_trace import RequestResult, RequestTrace
from extender.protocol.verb_context import VerbResult
from policies.preemption.filtering.status import FilterDecision

FLUSH_TIMEOUT_SECONDS: Final = 5.0
_LIBRARY: Final = logging.getLogger("opentelemetry")
_SERVER_ERROR: Final = 500

Value = str | int | float


class TraceExporter:
    """Builds the spans of calls; ``provider`` exports them."""

    def __init__(self, provider: TracerProvider, clock: Clock) -> None:
        self._tracer = provider.get_tracer("reprieve", version("reprieve"))
        self._clock = clock
        self._parents = TraceContextTextMapPropagator()

    def record(self, trace: RequestTrace, result: RequestResult) -> None:
        """Build the spans of one call."""
        epoch = self._epoch()
        known = result.verb != UNKNOWN
        span = self._tracer.start_span(
            f"POST /{result.verb}" if known else "POST",
            self._parents.extract(trace.parent),
            SpanKind.SERVER,
            dict(_span_attributes(trace, result)),
            start_time=epoch(trace.arrived),
        )
        if result.status >= _SERVER_ERROR:
            span.set_status(Status(StatusCode.ERROR, result.problem))
        context, began = set_span_in_context(span), trace.arrived
        for step, ended in trace.step_ends.items():
            child = self._tracer.start_span(step.value, context, start_time=epoch(began))
            child.end(epoch(ended))
            began = ended
        span.end(epoch(result.ended))

    def _epoch(self) -> Callable[[float], int]:
        """Return the conversion of monotonic seconds to nanoseconds since the epoch, as of now."""
        now_ns, now = self._clock.now_ns(), self._clock.monotonic()
        return lambda moment: now_ns - int((now - moment) * 1e9)


class ExportReport(SpanExporter):
    """Passes spans to another exporter, and logs when it begins and ceases to fail."""

    def __init__(self, inner: SpanExporter, endpoint: str) -> None:
        self._inner = inner
        self._endpoint = endpoint
        self._dropped = 0
        self._messages = _FirstLogMessage()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans; those that cannot be sent are dropped."""
        result = self._inner.export(spans)
        problem = self._messages.take()
        log = structlog.get_logger()
        if result is not SpanExportResult.SUCCESS:
            if not self._dropped:
                log.warning("traces_not_sent", endpoint=self._endpoint, problem=problem)
            self._dropped += len(spans)
        elif self._dropped:
            log.info("traces_sent_again", endpoint=self._endpoint, lost_spans=self._dropped)
            self._dropped = 0
        return result

    def shutdown(self) -> None:
        """Stop the export; pending retries are abandoned."""
        self._inner.shutdown()

    def capture_logs(self) -> None:
        """Capture the library's log messages instead of logging them."""
        _LIBRARY.addHandler(self._messages)
        _LIBRARY.propagate = False

    def release_logs(self) -> None:
        """Stop capturing the library's log messages."""
        _LIBRARY.removeHandler(self._messages)
        _LIBRARY.propagate = True


class _FirstLogMessage(logging.Handler):
    """Keeps the first log message of the library."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._first = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message if it is the first."""
        self._first = self._first or record.getMessage()

    def take(self) -> str:
        """Return the first message since the last call."""
        first, self._first = self._first, ""
        return first


@asynccontextmanager
async def export_traces(config: TracingConfig, clock: Clock) -> AsyncIterator[TraceExporter]:
    """Export traces while the block runs; then flush the rest, for five seconds at most."""
    sending = OTLPSpanExporter(config.endpoint, timeout=config.timeout_seconds)
    reporting = ExportReport(sending, config.endpoint)
    provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(config.sample_ratio)),
        resource=Resource.create(_resource_attributes(config)),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(BatchSpanProcessor(reporting))
    reporting.capture_logs()
    try:
        yield TraceExporter(provider, clock)
    finally:
        with suppress(TimeoutError):
            await within(clock, FLUSH_TIMEOUT_SECONDS, _flush(provider))
        reporting.release_logs()


async def _flush(provider: TracerProvider) -> None:
    """Return when all spans have been sent or dropped.

    The library takes up to half a minute, in a daemon thread that may outlive this call.
    """
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def send() -> None:
        provider.shutdown()
        with suppress(RuntimeError):  # the wait timed out, and the loop is closed
            loop.call_soon_threadsafe(over.set)

    Thread(target=send, daemon=True).start()
    await over.wait()


def _resource_attributes(tracing: TracingConfig) -> Mapping[str, Value]:
    return {"service.name": tracing.service_name, "service.version": version("reprieve")}


def _span_attributes(trace: RequestTrace, result: RequestResult) -> Iterator[tuple[str, Value]]:
    yield "http.request.method", "POST"
    yield "http.response.status_code", result.status
    yield "reprieve.verb", result.verb
    yield "reprieve.request_id", result.request_id
    if trace.pod:
        yield "reprieve.pod", trace.pod
    if trace.fallback_reason:
        yield "reprieve.degraded.case", trace.fallback_reason
        yield "reprieve.degraded.answer", trace.fallback
    if result.problem:
        yield "reprieve.problem", result.problem
    if trace.answer is not None:
        yield "reprieve.generation", trace.generation
        yield from _decision_attributes(trace.answer)


def _decision_attributes(answer: VerbResult) -> Iterator[tuple[str, Value]]:
    decision, chosen = answer.decision, answer.named_candidate
    yield "reprieve.notes", len(answer.notes)
    yield "reprieve.rejected", len(decision.rejected)
    if isinstance(decision, FilterDecision):
        yield "reprieve.fits", len(decision.feasible)
        return
    yield "reprieve.candidates", len(decision.candidates)
    yield "reprieve.victims", 0 if chosen is None else len(chosen.victims.pods)
    if chosen is not None:
        yield "reprieve.node", chosen.node
        yield "reprieve.pdb_violations", chosen.victims.violations
    if decision.decided_by is not None:
        yield "reprieve.decided_by", decision.decided_by
