"""Jobs come in order, as often as they are asked for, in parts, and in bounded memory."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapi.backtest.traces.formats import open_trace
from fakeapi.backtest.traces.merge_sort import sort_externally
from fakeapi.backtest.traces.trace import TraceError, segments
from tests.fakeapi.backtest.traces.trace_files import (
    GENERIC,
    NODES,
    SECOND,
    csv_text,
    generic,
)


def submissions(*seconds: int) -> list[dict[str, str]]:
    return [{"submit": str(second)} for second in seconds]


def test_jobs_are_in_order_of_submission_each_time(tmp_path: Path) -> None:
    trace = generic(tmp_path, *submissions(40, 10, 30, 10))
    expected = [("job-1", 0), ("job-3", 0), ("job-2", 20 * SECOND), ("job-0", 30 * SECOND)]
    for _ in range(2):
        assert [(job.name, job.submitted_ns) for job in trace.jobs()] == expected


def test_two_readers_do_not_affect_each_other(tmp_path: Path) -> None:
    trace = generic(tmp_path, *submissions(3, 2, 1))
    assert all(one == other for one, other in zip(trace.jobs(), trace.jobs(), strict=True))


def test_a_trace_can_be_sent_to_another_process(tmp_path: Path) -> None:
    trace = generic(tmp_path, *submissions(3, 2, 1)).between(0, 2 * SECOND)
    assert [*pickle.loads(pickle.dumps(trace)).jobs()] == [*trace.jobs()]  # noqa: S301


def test_names_that_repeat_are_numbered_by_line(tmp_path: Path) -> None:
    trace = generic(tmp_path, *({"name": name} for name in ("a", "A", "b", "x" * 63)))
    assert [job.name for job in trace.jobs()] == ["a-2", "a-3", "b-4", "x" * 61 + "-5"]
    assert "Names repeat; the number of its line is appended to each." in trace.assumptions


def test_a_part_has_the_jobs_that_were_submitted_in_it(tmp_path: Path) -> None:
    trace = generic(tmp_path, *submissions(5, 10, 15, 20))
    part = trace.between(5 * SECOND, 15 * SECOND)
    assert [(job.name, job.submitted_ns) for job in part.jobs()] == [
        ("job-1", 0),
        ("job-2", 5 * SECOND),
    ]
    later = part.between(5 * SECOND, 99 * SECOND)
    assert [(job.name, job.submitted_ns) for job in later.jobs()] == [("job-2", 0)]


@pytest.mark.parametrize(
    ("seconds", "number", "sizes"),
    [
        ((0, 1, 2, 3), 2, [2, 2]),
        ((0, 100, 101, 102, 103), 2, [3, 2]),
        ((7, 7, 7), 3, [3]),
        ((0, 1), 5, [1, 1]),
    ],
)
def test_segments_have_about_as_many_jobs(
    tmp_path: Path, seconds: tuple[int, ...], number: int, sizes: list[int]
) -> None:
    parts = segments(generic(tmp_path, *submissions(*seconds)), number)
    assert [len([*part.jobs()]) for part in parts] == sizes


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=30),
    st.integers(1, 8),
)
def test_segments_have_every_job_once(
    tmp_path_factory: pytest.TempPathFactory, seconds: list[int], number: int
) -> None:
    trace = generic(tmp_path_factory.mktemp("trace"), *submissions(*seconds))
    parts = segments(trace, number)
    assert len(parts) <= number
    assert [job.name for part in parts for job in part.jobs()] == [j.name for j in trace.jobs()]


def test_jobs_arrive_faster_and_run_as_long(tmp_path: Path) -> None:
    trace = generic(tmp_path, *submissions(0, 100, 200)).at_rate(10)
    assert [job.submitted_ns for job in trace.jobs()] == [0, 10 * SECOND, 20 * SECOND]
    assert {job.run_ns for job in trace.jobs()} == {60 * SECOND}
    assert len([*trace.between(5 * SECOND, 15 * SECOND).jobs()]) == 1


def test_more_than_a_thousand_priorities_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"trace\.csv:1002: expected at most 1000 different pri"):
        generic(tmp_path, *({"priority": str(n)} for n in range(1001)))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers()), max_size=80), st.integers(1, 7))
def test_the_external_sort_is_the_stable_sort(items: list[tuple[int, int]], chunk: int) -> None:
    def first(item: tuple[int, int]) -> int:
        return item[0]

    small = [(key, value % 2**60) for key, value in items]
    assert [*sort_externally(small, tuple[int, int], first, chunk)] == sorted(small, key=first)


def test_more_files_than_may_be_open_are_merged() -> None:
    items = [(n * 7919) % 1009 for n in range(1009)]
    assert [*sort_externally(items, int, int, chunk=3)] == sorted(items)


def unordered(rows: int) -> Iterator[str]:
    yield csv_text(GENERIC).partition("\n")[0] + "\n"
    for number in range(rows):
        yield f"job-{number},team,0,{rows - number},60,1,1Gi,,1,\n"


def peak_bytes(directory: Path, rows: int) -> int:
    path = directory / f"{rows}.csv"
    with path.open("w") as file:
        file.writelines(unordered(rows))
    tracemalloc.start()
    try:
        assert sum(1 for _ in open_trace(str(path), nodes=NODES).jobs()) == rows
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ten_times_the_rows_need_no_more_memory(tmp_path: Path) -> None:
    assert peak_bytes(tmp_path, 200_000) < peak_bytes(tmp_path, 20_000) * 5 // 4
