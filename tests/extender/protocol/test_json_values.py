"""Values are counted as a decoder finds them, however the text is cut."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.protocol import request_size
from extender.protocol.json_values import LEVELS, ValueCounter
from extender.protocol.request_size import object_excess
from extender.protocol.vectorized_json_values import VectorizedValueCounter

_TEXTS = st.text(st.sampled_from('ab"\\{}[],:ö'), max_size=6)
_VALUES = st.recursive(
    st.none() | st.integers() | _TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4),
)

_WRITERS = (json.dumps, partial(json.dumps, ensure_ascii=False))


def levels_of(value: Any, level: int = 0) -> Iterator[int]:
    """Return the level of each value below a value; an empty object or array counts as one."""
    if isinstance(value, dict | list):
        yield from [level] * max(1, len(value))
        for each in value.values() if isinstance(value, dict) else value:
            yield from levels_of(each, level + 1)


@pytest.mark.parametrize("counter_of", [ValueCounter, VectorizedValueCounter])
@given(_VALUES, st.lists(st.integers(0, 200)), st.sampled_from(_WRITERS))
def test_values_are_counted_by_level_in_slices_of_any_size(
    counter_of: type[ValueCounter],
    value: Any,
    cuts: list[int],
    write: Callable[[Any], str],
) -> None:
    text = write({"": value}).encode()
    counter = counter_of()
    places = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    for begin, end in pairwise(places):
        counter.add(text[begin:end])
    found = list(levels_of({"": value}, 1))
    below = sum(level > LEVELS for level in found)
    assert counter.levels == [0, *(found.count(n + 1) for n in range(LEVELS)), below]


@pytest.mark.parametrize(
    ("installed", "expected"), [(True, VectorizedValueCounter), (False, ValueCounter)]
)
def test_an_object_is_bounded_with_and_without_numpy(
    *, installed: bool, expected: type[ValueCounter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_size, "VECTORIZED", installed)
    assert type(request_size.value_counter()) is expected
    assert object_excess(b"[" + b"1," * 40_000 + b"1]") == "too many values; expected at most 20000"
    assert object_excess(b"[" + b"1," * 9_000 + b' "' + b"," * 90_000 + b'"]') == ""
