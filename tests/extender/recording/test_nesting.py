"""A value that is nested too deeply is reported in one line."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import orjson
import pytest

from extender.kube.informers.reflector import ReflectorContext
from extender.kube.rest.client import Client, Selection
from extender.kube.rest.rate_limited_log import quiet_log
from extender.kube.rest.resources import Resource
from extender.recording.event_writer import REDACTED, UNREDACTED, RecordingWriter, RedactionRules
from extender.recording.files import RecordingError, parse_recording
from extender.recording.format import TOO_DEEP, FormatError, encode_event
from extender.recording.recorder import Recorder
from extender.recording.resource_selection import RecordedSource, RecordingPlan
from tests.extender.kube.conftest import ScriptedApi, SteppedClock, a_list, a_watch
from tests.extender.recording.recording_lines import RESOURCES, an_object, header

DEPTHS = (254, 300, 1_000, 2_000, 100_000)


def nested(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


def a_widget(inside: bytes) -> bytes:
    metadata = b'{"name":"deep","namespace":"default","resourceVersion":"7"}'
    return b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":%s,"spec":%s}' % (
        metadata,
        inside,
    )


def a_line(inside: bytes) -> bytes:
    where = b'"t":0,"type":"LISTED","resource":"widgets.example.com"'
    return b'{%s,"object":%s}\n' % (where, a_widget(inside))


class TestReading:
    @pytest.mark.parametrize("depth", DEPTHS)
    def test_a_line_is_refused(self, depth: int) -> None:
        with pytest.raises(RecordingError, match=r"^f: line 2: nested too deeply"):
            parse_recording(header("Widget") + a_line(nested(depth)), "f")

    @pytest.mark.parametrize("depth", [1_000, 2_000, 100_000])
    def test_a_header_is_refused(self, depth: int) -> None:
        first = header()[:-2] + b',"more":%s}\n' % nested(depth)
        with pytest.raises(RecordingError, match=r"^f: line 1: .*$"):
            parse_recording(first, "f")

    def test_nested_values_that_are_read_can_be_written(self) -> None:
        deepest = a_line(nested(252))
        [event] = parse_recording(header("Widget") + deepest, "f").events
        assert encode_event(0, "LISTED", event.resource, event.document()) == deepest
        with pytest.raises(RecordingError, match="nested too deeply"):
            parse_recording(header("Widget") + a_line(nested(253)), "f")

    def test_many_brackets_need_not_be_nested(self) -> None:
        wide = b"[%s]" % b",".join([b"{}"] * 1_000)
        [event] = parse_recording(header("Widget") + a_line(wide), "f").events
        assert len(event.document()["spec"]) == 1_000


@pytest.mark.parametrize("redaction", [REDACTED, UNREDACTED], ids=["discreet", "open"])
@pytest.mark.parametrize("depth", [253, 1_500])
def test_an_encoding_error_names_the_object(redaction: RedactionRules, depth: int) -> None:
    inside: Any = 1
    for _ in range(depth):
        inside = {"a": inside}
    written: list[bytes] = []
    writer = RecordingWriter(written.append, SteppedClock(), redaction)
    writer.begin("v1.37.0", [RESOURCES["Widget"]])
    with pytest.raises(FormatError) as refused:
        writer.write_event("ADDED", "widgets.example.com", an_object("deep", "Widget", spec=inside))
    assert str(refused.value) == f"widgets.example.com default/deep: {TOO_DEEP}"
    assert (len(written), writer.lines) == (1, 0)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("met", ["in a list", "in a watch"])
async def test_a_recorder_reports_the_place(met: str, depth: int) -> None:
    widget, clock = a_widget(nested(depth)), SteppedClock()
    frame = b'{"type":"ADDED","object":%s}' % widget
    script = [a_list(7, widget)] if met == "in a list" else [a_list(6), a_watch(frame)]
    context = ReflectorContext(Client(ScriptedApi(clock, *script)), clock, Random(1), quiet_log())
    followed = RecordedSource(
        Resource("example.com", "v1", "widgets", namespaced=True), Selection(), RESOURCES["Widget"]
    )
    written: list[bytes] = []
    writer = RecordingWriter(written.append, clock, REDACTED)
    recorder = Recorder(context, RecordingPlan("v1.37.0", "", (followed,)), writer)
    with pytest.raises(FormatError) as refused:
        await recorder.run(asyncio.Event())
    assert str(refused.value) in {
        f"widgets.example.com default/deep: {TOO_DEEP}",
        f"widgets.example.com: an object is {TOO_DEEP}",
    }
    assert all(orjson.loads(line) for line in written)
