"""Results of tools: a paragraph and a document, both of bounded size.

A list or map has at most ``MOST`` entries, and fewer if the document is larger than ``LARGEST``
bytes. What is left out is counted in ``leftOut`` of the document, by its path, and the paragraph
reports it. Names and messages of a cluster are data: the paragraph has them in quotes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from policies.kubernetes.input_error import InputError

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

MOST: Final = 50
LARGEST: Final = 65_536
_LONGEST_TEXT: Final = 2_000
_LONGEST_QUOTED: Final = 300
_MAPS: Final = frozenset(("candidates", "protected", "refusedNodes", "rejected"))
"""Fields whose objects have a key for each node or reason; other objects have fixed fields."""


class ToolError(InputError):
    """A tool has no result; the text is one line for the client."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A paragraph, and the document that it summarizes."""

    text: str
    document: dict[str, Json]


def tool_result(
    sentences: Iterable[str], document: Mapping[str, object], warnings: Sequence[str] = ()
) -> ToolResult:
    """Return the result with a document and sentences about it; both are cut to their bounds.

    ``warnings`` are added to both if there are any.
    """
    warned = {**document, "warnings": list(warnings)} if warnings else document
    whole: dict[str, Json] = msgspec.to_builtins(warned, str_keys=True)
    bounded, left_out = _bounded(whole)
    sentences = [*sentences, *(f"Warning: {quoted(each)}." for each in warnings[:3])]
    if left_out:
        counts = ", ".join(f"{number} of {path}" for path, number in left_out.items())
        sentences.append(f"Left out of the document: {counts}.")
        bounded["leftOut"] = {**left_out}
    return ToolResult(" ".join(sentences), bounded)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in the singular or plural."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def quoted(text: str) -> str:
    """Return a text of the cluster as a JSON string of ASCII characters in one line."""
    if len(text) > _LONGEST_QUOTED:
        text = f"{text[:_LONGEST_QUOTED]}..."
    return json.dumps(text)


def _bounded(document: dict[str, Json]) -> tuple[dict[str, Json], Counter[str]]:
    """Return a document within the bounds, and how many entries of each path are left out."""
    most = MOST
    while True:
        left_out: Counter[str] = Counter()
        found = {key: _cut(value, most, key, left_out) for key, value in document.items()}
        if most == 1 or len(msgspec.json.encode(found)) <= LARGEST:
            return found, left_out
        most //= 2


def _cut(value: Json, most: int, path: str, left_out: Counter[str]) -> Json:
    match value:
        case str() if len(value) > _LONGEST_TEXT:
            left_out[f"{path} (characters)"] += len(value) - _LONGEST_TEXT
            return value[:_LONGEST_TEXT]
        case list():
            _count_rest(len(value), most, path, left_out)
            return [_cut(each, most, path, left_out) for each in value[:most]]
        case dict() if path.rpartition(".")[2] in _MAPS:
            _count_rest(len(value), most, path, left_out)
            items = list(value.items())[:most]
            return {key: _cut(each, most, f"{path}.*", left_out) for key, each in items}
        case dict():
            return {key: _cut(each, most, f"{path}.{key}", left_out) for key, each in value.items()}
    return value


def _count_rest(length: int, most: int, path: str, left_out: Counter[str]) -> None:
    if length > most:
        left_out[path] += length - most
