"""Packed names equal strings, and the compiled extension is exact, leaks nothing, and is used."""

from __future__ import annotations

import json
import random
import re
import shutil
import struct
import sysconfig
import tracemalloc
from collections.abc import Sequence
from contextlib import suppress
from itertools import compress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.kubernetes.packed_names import (
    COMPILED,
    NamePositions,
    PackedNames,
    pack_names,
    parse_names,
)

PLAIN = re.compile(rb'\[(?:"[ !#-\[\]-\x7f]*"(?:,"[ !#-\[\]-\x7f]*")*)?\]')
"""What can be packed."""

few_letters = st.text("ab", max_size=20)
plain = few_letters | st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=9)
some_plain = st.lists(plain.map(lambda name: re.sub(r'["\\]', "-", name)), max_size=12)
any_names = some_plain | st.lists(few_letters | st.text(max_size=9), max_size=6)


@st.composite
def arrays(draw: st.DrawFn) -> bytes:
    """Draw a list of names as one writer or another has it, or somewhat spoiled."""
    listed: list[object] = list(draw(any_names))
    if draw(st.sampled_from([False] * 4 + [True])):
        listed.insert(draw(st.integers(0, len(listed))), draw(st.sampled_from([None, 1, []])))
    text = json.dumps(
        listed,
        separators=draw(st.sampled_from([(",", ":"), (",", ":"), (", ", ": ")])),
        ensure_ascii=draw(st.booleans()),
    )
    raw: bytes = text.encode(errors="surrogatepass")
    if draw(st.booleans()):
        return raw
    put: bytes = draw(st.sampled_from([*'[]",\\ \x1fa\x7f', "ö"])).encode()
    cut = draw(st.integers(0, len(raw)))
    return raw[:cut] + put + raw[cut + draw(st.integers(0, 1)) :]


@given(arrays() | st.binary(max_size=9))
def test_only_plain_names_are_parsed(text: bytes) -> None:
    taken = parse_names(text)
    assert (taken is not None) == (COMPILED and PLAIN.fullmatch(text) is not None)
    assert taken is None or list(taken) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        *[b"", b"[", b"]", b"[]]", b"[] ", b" []", b"{}", b"[1]", b"null", b'"a"', b'["]', b'["a]'],
        *[b'["a"', b'"a"]', b'{"a"]', b'["a"}', b'["a",]', b'[,"a"]', b'["a"]"', b'["a""b"]'],
        *[b'["a";"b"]', b'["a" "b"]', b'["a", "b"]', b'["a",b"]', b'["a",1,"b"]', b'["a",1"b"]'],
        *[b'["a"],["b"]', b'["a\x1f"]', b'["a\\n"]', b'["\\"]', b'["\xc3\xb6"]', b'["a\x00"]'],
    ],
)
def test_names_with_escapes_are_left_to_the_decoder(text: bytes) -> None:
    assert parse_names(text) is None


@given(any_names)
def test_packing_keeps_all_names(listed: list[str]) -> None:
    written = json.dumps(listed, separators=(",", ":")).encode()
    assert pack_names(listed) == parse_names(written)
    assert pack_names(listed) in (None, listed)


def test_only_names_that_kubernetes_allows_are_parsed() -> None:
    longest, longer = (b'["a","%s","b"]' % (b"n" * length) for length in (253, 254))
    assert (parse_names(longest) is not None) == COMPILED
    assert parse_names(longer) is None


def test_the_extension_is_used_wherever_it_can_be_compiled() -> None:
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    header = Path(sysconfig.get_path("include"), "Python.h")
    could = shutil.which(compiler) is not None and header.exists()
    assert COMPILED or not could, "a compiler is here, but policies/_names.c was not built"


def packing(listed: Sequence[str]) -> PackedNames:
    taken = pack_names(listed)
    assert taken is not None
    return taken


def places(known: Sequence[str], requested: Sequence[str]) -> list[int] | None:
    found = NamePositions(packing(known)).find(packing(requested))
    return None if found is None else list(struct.unpack(f"{len(requested)}q", found))


def expected(known: Sequence[str], requested: Sequence[str]) -> list[int] | None:
    if len(set(requested)) < len(requested) or not set(requested) <= set(known):
        return None
    return [known.index(name) for name in requested]


def begins(*numbers: int) -> bytes:
    return struct.pack(f"{len(numbers)}I", *numbers)


if COMPILED:

    class TestPackedNames:
        @given(some_plain)
        def test_behave_like_any_sequence(self, listed: list[str]) -> None:
            taken = packing(listed)
            assert (len(taken), list(taken)) == (len(listed), listed)
            assert tuple(listed) == taken
            assert [taken[place] for place in range(len(listed))] == listed
            assert list(taken[1:3]) == listed[1:3]
            assert all(name in taken for name in listed)
            assert repr(taken) == repr(tuple(listed))
            assert taken != [*listed, "more"]

        @given(st.lists(few_letters, unique=True, max_size=40), st.data())
        def test_are_found_at_their_positions(self, known: list[str], data: st.DataObject) -> None:
            others = st.sampled_from([*known, "a", "ab"])
            requested = data.draw(st.permutations(known) | st.lists(others, max_size=12))
            assert places(known, requested) == expected(known, requested)

        def test_are_found_by_the_thousand(self) -> None:
            known = [f"node-{number}.example.com" for number in range(5_000)]
            shuffled = random.Random(7).sample(known, len(known))
            for requested in (known, shuffled, known[::3], [*known, "unknown"], [*known, known[0]]):
                assert places(known, requested) == expected(known, requested)

        @given(some_plain, st.data())
        def test_are_selected_as_any_names_are(self, names: list[str], data: st.DataObject) -> None:
            marks = data.draw(st.binary(min_size=len(names), max_size=len(names)))
            found, expected = packing(names).marked(marks), packing([*compress(names, marks)])
            assert (found.text, found.begins) == (expected.text, expected.begins)

        @pytest.mark.parametrize("marks", [b"", b"\x01", b"\x01\x01\x01"])
        def test_need_a_mark_each_to_be_selected(self, marks: bytes) -> None:
            with pytest.raises(ValueError, match="the marks are not those of the names"):
                packing(["a", "b"]).marked(marks)

    @pytest.mark.parametrize(
        "wrong",
        [
            b"",
            begins(0, 4),
            begins(2, 4, 6),
            begins(2, 4, 8),
            begins(2, 7),
            begins(2, 2**32 - 1),
            begins(2**32 - 1, 2),
            begins(7, 2, 10),
        ],
    )
    def test_numbers_that_lead_out_of_the_text_are_refused(wrong: bytes) -> None:
        known = packing(["a", "b"])
        strange = PackedNames(b'["a"]', wrong)
        with pytest.raises(ValueError, match="the begins are not those of the text"):
            NamePositions(strange)
        with pytest.raises(ValueError, match="the begins are not those of the text"):
            NamePositions(known).find(strange)
        with pytest.raises(ValueError, match="the begins are not those of the text"):
            strange.marked(b"\x01")

    def test_no_memory_is_leaked() -> None:
        known = packing(["a", "b", "c"])

        def use() -> None:
            for text in (b'["c","a"]', b'["a","a"]', b'["d"]', b'["a" ]', b'["a', b"[1]", b"[]"):
                given = memoryview(text)
                taken = parse_names(given)
                if taken is not None:
                    NamePositions(known).find(taken)
                    NamePositions(taken).find(known)
                    taken.marked(b"\x01" * len(taken))
                    with suppress(ValueError):
                        taken.marked(bytes(9))
                    del taken
                given.release()  # fails while anybody still holds the text
            for wrong in (begins(2, 9), b""):
                with suppress(ValueError):
                    NamePositions(known).find(PackedNames(b'["a"]', wrong))

        tracemalloc.start()
        try:
            use()
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(1_000):
                use()
            assert tracemalloc.get_traced_memory()[0] - before < 1_000
        finally:
            tracemalloc.stop()
