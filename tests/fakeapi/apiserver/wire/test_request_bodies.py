"""YAML bodies: their values, and their limits."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapi.apiserver.endpoints import Api, StatusError
from fakeapi.apiserver.wire.yaml_decoder import MAX_DEPTH, MAX_VALUES, read_yaml
from tests.fakeapi.api_requests import MAPS, YAML, Ask, send

# As kube-apiserver 1.37.0 takes them.
SCALARS = [
    ("yes", True),
    ("Off", False),
    ("~", None),
    ("", None),
    ("2020-01-01", "2020-01-01"),
    ("1:30", "1:30"),
    ("12", 12),
    ("-1_000", -1000),
    ("0777", 511),
    ("0o17", 15),
    ("0x1F", 31),
    ("0b101", 5),
    ("089", 89.0),
    ("1e3", 1000.0),
    ("18446744073709551615", 2**64 - 1),
    ("18446744073709551616", 2.0**64),
    ("-9223372036854775809", -(2.0**63)),
    ("0xFFFFFFFFFFFFFFFFF", "0xFFFFFFFFFFFFFFFFF"),
    ("1" * 5_000, "1" * 5_000),
    (".5", 0.5),
    ("'12'", "12"),
    ("!!str 12", "12"),
    ("1.2.3", "1.2.3"),
    ("100m", "100m"),
    ("|\n a\n b\n", "a\nb\n"),
]


@pytest.mark.parametrize(("text", "value"), SCALARS)
def test_a_scalar_has_upstreams_value(text: str, value: Any) -> None:
    assert read_yaml(f"a: {text}".encode()) == {"a": value}


def test_keys_are_texts() -> None:
    assert read_yaml(b"{1: a, true: b, x: c}") == {"1": "a", "true": "b", "x": "c"}


def test_aliases_and_merges_are_followed() -> None:
    text = b"base: &b {x: 1, z: 2}\nother: {<<: *b, z: 3}\nlist: [*b, *b]"
    assert read_yaml(text) == {
        "base": {"x": 1, "z": 2},
        "other": {"x": 1, "z": 3},
        "list": [{"x": 1, "z": 2}] * 2,
    }


def test_only_the_first_document_counts() -> None:
    assert read_yaml(b"---\na: 1\n---\nb: 2\n") == {"a": 1}


NESTED_ALIASES = "\n".join(
    ["l0: &l0 [lol]", *(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 10))]
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (NESTED_ALIASES, "expands to more than 200000 values"),
        ("- 1\n" * MAX_VALUES, "expands to more than 200000 values"),
        ("a: &a [*a]", "contains itself"),
        ("a: *nobody", "unknown anchor 'nobody'"),
        ("[" * (MAX_DEPTH + 1), "exceeded max depth"),
        ("{a: " * 5000, "exceeded max depth"),
        ("a: [", "line 1: did not find expected node content"),
        ("\x00", "control characters are not allowed"),
        ("{[1]: 2}", "invalid map key: []interface {}{1}"),
        ("<<: 1", "map merge requires map"),
    ],
)
def test_an_invalid_or_too_large_body_is_refused(text: str, reason: str) -> None:
    with pytest.raises(StatusError, match="error converting YAML to JSON: yaml: ") as refused:
        read_yaml(text.encode())
    assert refused.value.code == 400
    assert reason in refused.value.message


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_json_is_yaml(value: Any) -> None:
    ascii_json = orjson.dumps(value).decode().encode("unicode_escape").decode()
    if ascii_json == orjson.dumps(value).decode() and "\\u007f" not in ascii_json:
        assert read_yaml(ascii_json.encode()) == value


@given(st.binary(max_size=200) | st.text(alphabet="&*a[]{}:-, \n!|<>'\"#%@").map(str.encode))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    try:
        read_yaml(body)
    except StatusError as refused:
        code = refused.code
    else:
        code = 400
    assert code == 400


def test_objects_are_created_from_yaml(api: Api, ask: Ask) -> None:
    body = b"metadata:\n  name: a\n  labels: {x: 'y'}\ndata:\n  k: |\n    v\n"
    assert send(api, "POST", MAPS, body, YAML).status == 201
    assert ask("GET", f"{MAPS}/a")[1]["data"] == {"k": "v\n"}
