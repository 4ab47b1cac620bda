"""A row with anything wrong is left out, counted and named; its neighbours are not affected."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapi.backtest.traces.formats import CSV_FORMATS, open_trace
from fakeapi.backtest.traces.node_lists import read_nodes
from fakeapi.backtest.traces.trace import TraceError
from tests.fakeapi.backtest.traces.trace_files import (
    GENERIC,
    NODES,
    csv_text,
    generic,
    reasons,
    write,
)

DIGITS = "9" * 5000


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("submit", "", "submit: empty"),
        ("submit", "-1", "submit: negative"),
        ("submit", "nan", "submit: empty"),
        ("submit", "inf", "submit: not a number"),
        ("submit", "0x10", "submit: not a number"),
        ("submit", "१", "submit: not a number"),
        ("submit", "1_0", "submit: not a number"),
        ("submit", DIGITS, "submit: not a number"),
        ("submit", "1e99", "submit: too large"),
        ("duration", "0", "duration: zero"),
        ("duration", "-60", "duration: negative"),
        ("duration", "4e9", "duration: too large"),
        ("cpu", "-1", "cpu: negative"),
        ("cpu", "four", "cpu: not a quantity"),
        ("cpu", DIGITS, "cpu: not a quantity"),
        ("memory", "9E9E", "memory: not a quantity"),
        ("memory", "1e30", "memory: too large"),
        ("memory", "1Ti", "fits no node"),
        ("gpu", "9", "fits no node"),
        ("priority", "high", "priority: expected an integer up to 1000000000"),
        ("priority", "1000000001", "priority: expected an integer up to 1000000000"),
        ("priority", DIGITS, "priority: expected an integer up to 1000000000"),
        ("pods", "0", "pods: zero"),
        ("pods", "1000000000000", "pods: too large"),
        ("checkpoint", "-1", "checkpoint: negative"),
        ("name", "", "name: no letter or digit"),
        ("name", "名前", "name: no letter or digit"),
        ("tenant", "---", "tenant: no letter or digit"),
        ("name", "a\x00b", "control characters"),
        ("name", "a\x1b[31mb", "control characters"),
        ("name", "x" * 70_000, "longer than 65536 bytes"),
        ("name", 'a"b', ""),
        ("name", '"a', "malformed CSV"),
        ("name", "a,b", "wrong number of columns"),
        ("name", '"=cmd|\'/c calc\'!A0, ""x"""', ""),
    ],
)
def test_a_row_with_an_invalid_value_is_left_out(
    tmp_path: Path, column: str, value: str, reason: str
) -> None:
    trace = generic(tmp_path, {}, {column: value}, {})
    assert reasons(trace) == ({reason: 1} if reason else {})
    assert [job.name for job in trace.jobs()][:: 1 if reason else 2] == ["job-0", "job-2"]
    for each in trace.left_out.values():
        assert each.first == f"{tmp_path}/trace.csv:3"


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("Train_7.b", "train-7-b"),
        ("=HYPERLINK(1)", "hyperlink-1"),
        ("-a-", "a"),
        ("x" * 100, "x" * 63),
        ("../../etc", "etc"),
    ],
)
def test_a_name_becomes_a_dns_label(tmp_path: Path, name: str, label: str) -> None:
    assert [job.name for job in generic(tmp_path, {"name": name}).jobs()] == [label]


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        (b"job-9,team,0,0,60,1", "torn: no line break at its end"),
        (b"job-9,team,0,0,60,1,1Gi,,1,", "torn: no line break at its end"),
        (b"job-\xff,team,0,0,60,1,1Gi,,1,\n", "not UTF-8"),
        (b"job-9,team\n", "wrong number of columns"),
        (b"\n\r\n\n", ""),
    ],
)
def test_the_rows_before_a_damaged_one_are_kept(tmp_path: Path, last: bytes, reason: str) -> None:
    path = write(tmp_path, csv_text(GENERIC).encode() + last)
    trace = open_trace(path, nodes=NODES)
    assert reasons(trace) == ({reason: 1} if reason else {})
    assert [job.name for job in trace.jobs()] == ["a"]


def test_a_gzipped_file_that_breaks_off_is_torn(tmp_path: Path) -> None:
    rows = [GENERIC | {"name": f"job-{i}-{i * i % 977}"} for i in range(20_000)]
    data = gzip.compress(csv_text(*rows).encode())
    trace = open_trace(write(tmp_path, data[: len(data) // 2], "jobs.csv.gz"), nodes=NODES)
    assert reasons(trace) == {"torn: no line break at its end": 1}
    assert 0 < trace.summary.job_count < 20_000


def test_a_byte_order_mark_and_windows_line_breaks_are_read(tmp_path: Path) -> None:
    text = "\ufeff" + csv_text(GENERIC).replace("\n", "\r\n")
    assert [job.name for job in open_trace(write(tmp_path, text), nodes=NODES).jobs()] == ["a"]


HEADERS = [",".join(form.columns) + "\n" for form in CSV_FORMATS.values()]
CELLS = st.sampled_from(
    ["", "0", "1", "-1", "1e9", "nan", "LS", "HN", "app", '"', ",", "\n", "\r", "\x00", "|", "2017"]
)


@given(
    header=st.sampled_from(["", *HEADERS]),
    body=st.binary(max_size=300) | st.lists(CELLS, max_size=60).map(lambda c: ",".join(c).encode()),
    suffix=st.sampled_from([".csv", ".sktrace", ".json", ".csv.gz"]),
)
def test_no_file_raises_another_error(
    tmp_path_factory: pytest.TempPathFactory, header: str, body: bytes, suffix: str
) -> None:
    directory = tmp_path_factory.mktemp("hostile")
    path = write(directory, header.encode() + body, f"trace{suffix}")
    error = ""
    try:
        trace = open_trace(path, nodes=NODES)
        assert len([*trace.jobs()]) == trace.summary.job_count
    except TraceError as raised:
        error = str(raised)
    assert "\n" not in error
    assert len(error) < 2000


@given(
    data=st.binary(max_size=200)
    | st.lists(CELLS, max_size=40).map(lambda c: f"name,cpu,memory,count\n{','.join(c)}".encode()),
    suffix=st.sampled_from([".csv", ".yaml", ".json"]),
)
def test_no_list_of_nodes_raises_another_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, suffix: str
) -> None:
    path = tmp_path_factory.mktemp("hostile") / f"nodes{suffix}"
    path.write_bytes(data)
    error = ""
    try:
        assert read_nodes(path)
    except TraceError as raised:
        error = str(raised)
    assert len(error) < 2000
