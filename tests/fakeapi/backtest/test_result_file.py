"""Files of results: what is kept, and what cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakeapi.backtest.result_file import ResultFileError, open_results
from fakeapi.backtest.results import UnitResult
from tests.builders.backtests import disrupted

FIRST = UnitResult("stock", 0, 0, disrupted(2))
SECOND = UnitResult("stock", 1, 0, disrupted(3))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with the two results."""
    path = tmp_path / "results.jsonl"
    with open_results(path) as file:
        file.append("aa", FIRST)
        file.append("bb", SECOND)
    return path


def test_results_are_kept_by_key(path: Path) -> None:
    with open_results(path) as file:
        assert file.results == {"aa": FIRST, "bb": SECOND}


def test_every_result_is_in_the_file_as_soon_as_it_is_added(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with open_results(path) as file:
        file.append("aa", FIRST)
        assert path.read_bytes().endswith(b"\n")


def test_a_torn_last_line_is_cut_off_wherever_it_ends(path: Path) -> None:
    whole = path.read_bytes()
    second = whole.index(b"\n") + 1
    for end in range(second, len(whole)):
        path.write_bytes(whole[:end])
        with open_results(path) as file:
            assert file.results == {"aa": FIRST}
            file.append("bb", SECOND)
        assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"name,submit\n", r"results.jsonl:1: expected a result of a backtest; "),
        (b"kind: PreemptionPolicy", r"results.jsonl:1: expected a result of a backtest; "),
        (b'{"key":"aa"}\n', r"results.jsonl:1: expected .*; Object missing required field"),
        (b"\xff\xfe\n\n", r"results.jsonl:1: expected a result of a backtest; "),
    ],
)
def test_a_file_of_something_else_is_refused_and_not_changed(
    tmp_path: Path, content: bytes, error: str
) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(content)
    with pytest.raises(ResultFileError, match=error), open_results(path):
        pass
    assert path.read_bytes() == content


def test_two_backtests_do_not_write_to_one_file(path: Path) -> None:
    error = r"results.jsonl: another backtest writes to it"
    with open_results(path), pytest.raises(ResultFileError, match=error), open_results(path):
        pass


def test_a_file_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    error = r"cannot be opened: Is a directory"
    with pytest.raises(ResultFileError, match=error), open_results(tmp_path):
        pass
