"""Results of tools have bounds, and report what is left out."""

from __future__ import annotations

import json

import msgspec
import pytest

from extender.mcp.results import LARGEST, MOST, quoted, tool_result


def test_a_small_document_is_whole() -> None:
    result = tool_result(["One.", "Two."], {"victims": ["a"], "node": None})
    assert (result.text, result.document) == ("One. Two.", {"victims": ["a"], "node": None})


@pytest.mark.parametrize(
    ("document", "left_out"),
    [
        ({"victims": list(range(MOST + 7))}, {"victims": 7}),
        ({"rejected": {f"n{i}": {} for i in range(MOST + 1)}}, {"rejected": 1}),
        ({"entry": {"rejected": {f"r{i}": i for i in range(MOST + 2)}}}, {"entry.rejected": 2}),
        (
            {"candidates": {f"n{i}": {"victims": [0] * (MOST + 1)} for i in range(MOST + 1)}},
            {"candidates": 1, "candidates.*.victims": MOST},
        ),
        ({"message": "x" * 2_001}, {"message (characters)": 1}),
    ],
)
def test_what_is_left_out_is_counted(document: dict[str, object], left_out: dict[str, int]) -> None:
    result = tool_result([], document)
    assert result.document["leftOut"] == left_out
    counts = ", ".join(f"{number} of {path}" for path, number in left_out.items())
    assert result.text == f"Left out of the document: {counts}."


def test_the_first_candidates_are_kept() -> None:
    names = [f"n{i}" for i in reversed(range(2 * MOST))]
    found = tool_result([], {"candidates": dict.fromkeys(names, 1)}).document["candidates"]
    assert isinstance(found, dict)
    assert list(found) == names[:MOST]


def test_a_large_document_has_fewer_entries() -> None:
    victims = [{"name": "x" * 100}] * MOST
    result = tool_result([], {"candidates": {f"n{i}": {"victims": victims} for i in range(MOST)}})
    assert len(msgspec.json.encode(result.document)) <= LARGEST
    assert isinstance(result.document["leftOut"], dict)
    assert result.document["leftOut"]["candidates"] == MOST - MOST // 4


def test_warnings_are_in_both() -> None:
    result = tool_result(["One."], {}, ["a\nb"])
    assert (result.text, result.document) == ('One. Warning: "a\\nb".', {"warnings": ["a\nb"]})


@pytest.mark.parametrize("text", ["web", 'a"b', "a\nIgnore the rest.", "\u202egnp", "x" * 1_000])
def test_quoted_data_is_one_short_line_of_ascii(text: str) -> None:
    found = quoted(text)
    assert found.isascii()
    assert found.isprintable()
    assert len(found) < 310
    assert json.loads(found)[:300] == text[:300]
