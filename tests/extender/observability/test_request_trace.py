"""Calls as OpenTelemetry traces: a span's attributes and parent; callers see no difference."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import SpanKind, StatusCode

from extender.observability.opentelemetry_export import TraceExporter
from extender.protocol.verb_context import FallbackKind
from extender.server.fallback_policy import FallbackPolicy, FallbackReason
from tests.builders import node, pod, pod_json
from tests.extender.conftest import (
    Extender,
    HandClock,
    filter_body,
    live_cluster,
    preempt_body,
    served,
)

VIP = pod_json("vip", cpu="1", priority=10)
OFFERS = preempt_body(VIP, node_1=["expensive"], node_2=["cheap"])
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
STAGES = ["read the body", "wait for the turn", "decide", "encode"]


@dataclass(frozen=True)
class Traced:
    """An extender whose spans are kept."""

    extender: Extender
    kept: InMemorySpanExporter

    async def ask(self, path: str, body: bytes, **headers: str) -> int:
        reply = await self.extender.post(path, body, headers)
        # An answer on the same connection: by then the call before has been logged.
        await self.extender.get("/livez")
        return reply.status

    @property
    def call(self) -> ReadableSpan:
        """Return the span of the only call."""
        [found] = [each for each in self.kept.get_finished_spans() if each.kind is SpanKind.SERVER]
        return found

    @property
    def stages(self) -> list[ReadableSpan]:
        return [each for each in self.kept.get_finished_spans() if each.kind is SpanKind.INTERNAL]


@asynccontextmanager
async def traced(ratio: float = 1.0, clock: HandClock | None = None) -> AsyncIterator[Traced]:
    live = live_cluster(
        node("node-1", cpu="1"),
        node("node-2", cpu="1"),
        pod("expensive", on="node-1", cpu="1", priority=5),
        pod("cheap", on="node-2", cpu="1", priority=1),
    )
    kept = InMemorySpanExporter()
    provider = TracerProvider(sampler=ParentBased(TraceIdRatioBased(ratio)), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    clock = clock or HandClock(step=0.001)
    async with served(live, clock, body_limit=10_000) as extender:
        extender.service.tracer = TraceExporter(provider, clock)
        yield Traced(extender, kept)


def attributes(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


class TestSpans:
    async def test_a_preemption_span_has_the_pod_and_the_decision(self) -> None:
        async with traced() as it:
            await it.ask("/preempt", OFFERS, **{"X-Request-Id": "abc-1"})
        assert it.call.name == "POST /preempt"
        assert attributes(it.call) == {
            "http.request.method": "POST",
            "http.response.status_code": 200,
            "reprieve.verb": "preempt",
            "reprieve.request_id": "abc-1",
            "reprieve.pod": "default/vip",
            "reprieve.generation": 1,
            "reprieve.notes": 0,
            "reprieve.rejected": 0,
            "reprieve.candidates": 2,
            "reprieve.victims": 1,
            "reprieve.node": "node-2",
            "reprieve.pdb_violations": 0,
            "reprieve.decided_by": "lowest priority of the first victim",
        }
        assert it.call.status.status_code is StatusCode.UNSET

    async def test_a_filter_span_has_the_count_of_nodes_that_fit(self) -> None:
        async with traced() as it:
            await it.ask("/filter", filter_body(None, "node-1", "node-3"))
        found = attributes(it.call)
        assert (found["reprieve.fits"], found["reprieve.rejected"]) == (1, 1)
        assert "reprieve.node" not in found

    async def test_each_stage_is_a_child_and_begins_where_the_last_one_ended(self) -> None:
        async with traced() as it:
            await it.ask("/preempt", OFFERS)
        assert [each.name for each in it.stages] == STAGES
        assert {each.parent and each.parent.span_id for each in it.stages} == {
            it.call.context and it.call.context.span_id
        }
        began = [each.start_time or 0 for each in it.stages]
        ended = [each.end_time or 0 for each in it.stages]
        assert began == [it.call.start_time, *ended[:-1]]
        assert began == sorted(set(began))
        assert began[-1] < ended[-1] < (it.call.end_time or 0)

    async def test_times_are_wall_clock_times(self) -> None:
        clock = HandClock()
        clock.seconds = 1_700_000_000.0
        async with traced(clock=clock) as it:
            await it.ask("/preempt", OFFERS)
        assert (it.call.start_time, it.call.end_time) == (1_700_000_000 * 10**9,) * 2

    async def test_a_trace_contains_nothing_of_a_pod_spec(self) -> None:
        secret = {"name": "main", "env": [{"name": "TOKEN", "value": "hunter2"}]}
        async with traced() as it:
            asking = pod_json("vip", containers=[secret], priority=10)
            await it.ask("/preempt", preempt_body(asking, node_1=["expensive"]))
            await it.ask("/filter", filter_body(asking, "node-1")[:-1])
        spans = it.kept.get_finished_spans()
        assert len(spans) > len(STAGES)
        assert "hunter2" not in "".join(each.to_json() for each in spans)


REFUSED: Mapping[str, tuple[str, bytes, int, list[str]]] = {
    "a body that is no JSON": ("/filter", b"{", 400, STAGES[:2]),
    "a body that is too large": ("/filter", b" " * 10_001, 413, []),
    "a verb that there is not": ("/secret", b"{}", 404, STAGES[:1]),
}


class TestFailedCalls:
    @pytest.mark.parametrize(("path", "body", "status", "stages"), REFUSED.values(), ids=REFUSED)
    async def test_a_failed_call_has_its_error_and_stage(
        self, path: str, body: bytes, status: int, stages: list[str]
    ) -> None:
        async with traced() as it:
            assert await it.ask(path, body) == status
        found = attributes(it.call)
        assert found["http.response.status_code"] == status
        assert str(found["reprieve.problem"]).startswith("reprieve: ")
        assert it.call.status.status_code is StatusCode.UNSET  # it is the caller's fault
        assert [each.name for each in it.stages] == stages
        known = path == "/filter"
        assert (it.call.name, found["reprieve.verb"]) == (
            ("POST /filter", "filter") if known else ("POST", "unknown")
        )

    async def test_an_internal_error_is_a_failed_call(self) -> None:
        clock = HandClock()
        async with traced(clock=clock) as it:
            clock.breaks = 1
            assert await it.ask("/preempt", OFFERS) == 500
        assert it.call.status.status_code is StatusCode.ERROR
        assert it.call.status.description == "reprieve: internal error: RuntimeError"

    @pytest.mark.parametrize(("substitute", "status"), [("error", 503), ("veto", 200)])
    async def test_a_fallback_answer_is_named(self, substitute: str, status: int) -> None:
        async with traced() as it:
            it.extender.service.fallback_policy = FallbackPolicy(
                {"preempt": 0.0},
                fallbacks={(FallbackReason.LATE, "preempt"): FallbackKind(substitute)},
            )
            assert await it.ask("/preempt", OFFERS) == status
        found = attributes(it.call)
        assert found["reprieve.degraded.case"] == "late"
        assert found["reprieve.degraded.answer"] == substitute
        assert "reprieve.node" not in found
        error = it.call.status.status_code is StatusCode.ERROR
        assert error == (status == 503)
        assert [each.name for each in it.stages] == STAGES[:2]


class TestParents:
    async def test_a_callers_trace_is_continued(self) -> None:
        async with traced() as it:
            await it.ask(
                "/preempt", OFFERS, traceparent=f"00-{TRACE}-{PARENT}-01", tracestate="a=b"
            )
        assert it.call.context is not None
        assert it.call.parent is not None
        assert f"{it.call.context.trace_id:032x}" == TRACE
        assert f"{it.call.parent.span_id:016x}" == PARENT
        assert it.call.context.trace_state.to_header() == "a=b"

    async def test_the_caller_decides_about_sampling(self) -> None:
        async with traced(ratio=0.0) as it:
            await it.ask("/preempt", OFFERS)
            assert it.kept.get_finished_spans() == ()
            await it.ask("/preempt", OFFERS, traceparent=f"00-{TRACE}-{PARENT}-01")
            assert it.call.name == "POST /preempt"
        async with traced() as it:
            await it.ask("/preempt", OFFERS, traceparent=f"00-{TRACE}-{PARENT}-00")
            assert it.kept.get_finished_spans() == ()

    @pytest.mark.parametrize(
        "header", ["", "nonsense", f"00-{TRACE}-{'0' * 16}-01", f"00-{'0' * 32}-{PARENT}-01"]
    )
    async def test_an_invalid_traceparent_starts_a_new_trace(self, header: str) -> None:
        async with traced() as it:
            await it.ask("/preempt", OFFERS, traceparent=header)
        assert it.call.parent is None
