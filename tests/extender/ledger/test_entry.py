"""IDs and bodies of entries: in the order of time, unique, and refused if they are not whole."""

from __future__ import annotations

import zlib
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from extender.ledger.entry import (
    LedgerEntry,
    UnreadableEntryError,
    decode_body,
    encode_body,
    entry_id,
    first_id,
    format_id,
    parse_id,
    time_of_id,
)
from tests.builders.ledger_entries import NOON_NS, ledger_entry
from tests.extender.ledger.ledgers import named_pod

LATEST_NS = 2**62
TIMES = st.integers(1000, LATEST_NS)
WHOLE = ledger_entry(
    NOON_NS,
    named_pod("vip", team="front"),
    named_pod("web-1", owner="ReplicaSet/web"),
    named_pod("nul\0 \N{GRINNING FACE}", requests={"cpu": 2**70, "example.com/a": -1}),
    budgets=("default/strict",),
)


@given(TIMES, st.integers(0, 2**20))
def test_an_id_has_the_time_in_microseconds(at_ns: int, writer: int) -> None:
    found = entry_id(at_ns, writer)
    assert time_of_id(found) == at_ns // 1000 * 1000
    assert first_id(time_of_id(found)) <= found < first_id(at_ns + 1000)
    assert found < 2**63


@given(st.lists(TIMES, min_size=2), st.integers(0, 1023), st.integers(0, 1023))
def test_ids_increase_even_if_the_clock_is_set_back(times: list[int], one: int, two: int) -> None:
    found = [0]
    for at_ns in times:
        found.append(entry_id(at_ns, one, found[-1]))
    assert found == sorted(set(found))
    if one != two:
        assert entry_id(times[0], two) not in found


@given(st.integers(0, 2**63 - 1))
def test_a_written_id_is_read_again(number: int) -> None:
    assert parse_id(format_id(number)) == number


@pytest.mark.parametrize(
    "text",
    ["", "1", "0x00000000000001", "00000000000000001", "000000000000000G", "-00000000000001"],
)
def test_other_texts_are_no_ids(text: str) -> None:
    assert parse_id(text) is None


def test_a_body_is_read_as_it_was_written() -> None:
    assert decode_body(WHOLE.id, encode_body(WHOLE)) == WHOLE
    assert decode_body(5, encode_body(WHOLE)) == structs.replace(WHOLE, id=5)


def test_a_body_is_small() -> None:
    pods = [named_pod(f"web-7d4b9c6f5-{n:05}") for n in range(5)]
    assert len(encode_body(ledger_entry(NOON_NS, named_pod("vip"), *pods))) < 400


def test_a_torn_body_is_refused() -> None:
    body = encode_body(WHOLE)
    for length in range(len(body)):
        with pytest.raises(UnreadableEntryError):
            decode_body(1, body[:length])


def test_a_damaged_body_is_refused_or_read() -> None:
    body, rng = encode_body(WHOLE), Random(0)
    for place in range(len(body)):
        damaged = bytearray(body)
        damaged[place] ^= 1 << rng.randrange(8)
        try:
            assert isinstance(decode_body(1, bytes(damaged)), LedgerEntry)
        except UnreadableEntryError:
            continue


def test_a_body_that_becomes_too_large_is_refused() -> None:
    compressor = zlib.compressobj(wbits=-15)
    bomb = compressor.compress(b" " * 2**25) + compressor.flush()
    with pytest.raises(UnreadableEntryError, match="too long"):
        decode_body(1, bomb)
