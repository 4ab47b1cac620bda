"""The export of traces: collectors, their errors, and the optional extra."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from structlog.testing import capture_logs

from extender.config.component_config import Config, TracingConfig
from extender.observability.opentelemetry_export import ExportReport
from extender.observability.request_trace import TraceStep
from tests.builders import node_json, pod_json
from tests.commands import ROOT, Done
from tests.extender.conftest import following, preempt_body

STAGES = [stage.value for stage in TraceStep]
VIP = pod_json("vip", cpu="1", priority=10)


@dataclass
class Collector:
    """An OTLP/HTTP collector; it answers ``status``."""

    status: int = 200
    url: str = ""
    asked: int = 0
    received: list[ExportTraceServiceRequest] = field(default_factory=list)

    async def take(self, request: web.Request) -> web.Response:
        assert request.headers["Content-Type"] == "application/x-protobuf"
        self.asked += 1
        if self.status == 200:
            self.received.append(ExportTraceServiceRequest.FromString(await request.read()))
        return web.Response(status=self.status)

    def names(self) -> list[str]:
        return [
            span.name
            for each in self.received
            for resource in each.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@asynccontextmanager
async def collecting(status: int = 200) -> AsyncIterator[Collector]:
    collector = Collector(status)
    app = web.Application()
    app.router.add_post("/v1/traces", collector.take)
    async with TestServer(app) as server:
        collector.url = str(server.make_url("/v1/traces"))
        yield collector


async def preempting(endpoint: str) -> int:
    """Serve an extender that traces to an endpoint, and have it decide once."""
    objects = [node_json("node-1", cpu="1"), pod_json("web", on="node-1", cpu="1", priority=1)]
    config = Config(
        port=0, tracing=TracingConfig(endpoint, service_name="reprieve-test", timeout_seconds=0.2)
    )
    async with following(objects, config) as it:
        await it.let_it_sync()
        return (await it.extender.post("/preempt", preempt_body(VIP, node_1=["web"]))).status


class TestCollectors:
    async def test_spans_are_sent_at_the_latest_when_the_process_ends(self) -> None:
        async with collecting() as collector:
            with capture_logs() as lines:
                assert await preempting(collector.url) == 200
        assert sorted(collector.names()) == sorted(["POST /preempt", *STAGES])
        resource = collector.received[0].resource_spans[0].resource
        resource_attributes = {each.key: each.value.string_value for each in resource.attributes}
        assert resource_attributes["service.name"] == "reprieve-test"
        assert resource_attributes["service.version"]
        assert not any("traces" in line["event"] for line in lines)

    async def test_without_a_collector_calls_are_answered_and_the_log_has_a_line(self) -> None:
        async with collecting() as collector:
            gone = collector.url
        with capture_logs() as lines:
            assert await preempting(gone) == 200
        [line] = [each for each in lines if each["event"] == "traces_not_sent"]
        assert line["endpoint"] == gone
        assert line["problem"]

    async def test_a_refusing_collector_is_reported_too(self) -> None:
        async with collecting(400) as collector:
            with capture_logs() as lines:
                assert await preempting(collector.url) == 200
        assert collector.asked == 1
        [line] = [each for each in lines if each["event"] == "traces_not_sent"]
        assert "400" in line["problem"]

    def test_the_log_has_the_beginning_and_the_end_of_a_failure(self) -> None:
        outcomes = iter(
            [
                SpanExportResult.SUCCESS,
                SpanExportResult.FAILURE,
                SpanExportResult.FAILURE,
                SpanExportResult.SUCCESS,
                SpanExportResult.SUCCESS,
                SpanExportResult.FAILURE,
            ]
        )
        reporting = ExportReport(ScriptedExporter(outcomes), "http://collector")
        span = ReadableSpan("POST /filter")
        with capture_logs() as lines:
            for _ in range(6):
                reporting.export([span, span])
        assert [(line["event"], line.get("lost_spans")) for line in lines] == [
            ("traces_not_sent", None),
            ("traces_sent_again", 4),
            ("traces_not_sent", None),
        ]


@dataclass
class ScriptedExporter(SpanExporter):
    """An exporter that succeeds or fails as the test sets it."""

    outcomes: Iterator[SpanExportResult]

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002
        return next(self.outcomes)


WITHOUT = "import sys; sys.modules['opentelemetry'] = None; from fakeapi.cli import main; main()"
IMPORTED = """
import sys
import extender.server.process, fakeapi.cli.embedded_cluster
print([name for name in sys.modules if name.startswith(("opentelemetry", "requests"))])
"""


async def python(program: str, *arguments: str) -> Done:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, *arguments, cwd=ROOT, stdout=PIPE, stderr=PIPE
    )
    out, err = await process.communicate()
    return Done(process.returncode, out.decode(), err.decode())


@pytest.mark.slow
class TestExtra:
    async def test_opentelemetry_is_not_loaded_without_tracing(self) -> None:
        assert await python(IMPORTED) == Done(0, "[]\n", "")

    @pytest.mark.parametrize(
        ("command", "code"),
        [(["check-config"], 1), (["serve", "--embedded", "demo", "--config"], 2)],
    )
    async def test_tracing_without_opentelemetry_is_reported(
        self, tmp_path: Path, command: list[str], code: int
    ) -> None:
        path = tmp_path / "reprieve.yaml"
        path.write_text("tracing: {endpoint: http://127.0.0.1:4318/v1/traces}")
        done = await python(WITHOUT, *command, str(path))
        problem = (
            "needs OpenTelemetry, which is not installed; expected pip install 'reprieve[otel]', "
            "or no tracing"
        )
        assert done == Done(code, "", f"reprieve: {path}:1: tracing: {problem}\n")

    async def test_without_tracing_opentelemetry_is_not_needed(self, tmp_path: Path) -> None:
        path = tmp_path / "reprieve.yaml"
        path.write_text("port: 0")
        assert await python(WITHOUT, "check-config", str(path)) == Done(0, f"{path}: valid\n", "")
