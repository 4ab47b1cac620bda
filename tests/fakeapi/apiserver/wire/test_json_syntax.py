"""Syntax errors in Go's words, as a kube-apiserver 1.37 answers them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapi.apiserver.wire.json_syntax import json_syntax_error
from tests.fakeapi.api_requests import MAPS, Ask

BEGIN = "looking for beginning of value"
KEY = "looking for beginning of object key string"
END = "unexpected end of JSON input"
TYPE = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; '
    r'Kind string "json:\"kind,omitempty\"" }'
)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", END),
        ("{", END),
        ("[1,", END),
        ('{"metadata":{"name":"a"', END),
        ('"a', END),
        ("x", f"invalid character 'x' {BEGIN}"),
        ('{"a":}', f"invalid character '}}' {BEGIN}"),
        ("[,]", f"invalid character ',' {BEGIN}"),
        ("[1,]", f"invalid character ']' {BEGIN}"),
        ("{a:1}", f"invalid character 'a' {KEY}"),
        ('{"a":1,}', f"invalid character '}}' {KEY}"),
        ("{'a':1}", rf"invalid character '\'' {KEY}"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ('{"a":1}x', "invalid character 'x' after top-level value"),
        ("tru", "invalid character ' ' in literal true (expecting 'e')"),
        ("nul", "invalid character ' ' in literal null (expecting 'l')"),
        ("[fxlse]", "invalid character 'x' in literal false (expecting 'a')"),
        ("-", "invalid character ' ' in numeric literal"),
        ("1.", "invalid character ' ' after decimal point in numeric literal"),
        ("[1e]", "invalid character ']' in exponent of numeric literal"),
        ("01", "invalid character '1' after top-level value"),
        (r'"\x"', "invalid character 'x' in string escape code"),
        (r'"\u12g4"', r"invalid character 'g' in \u hexadecimal character escape"),
        ('"a\n"', r"invalid character '\n' in string literal"),
    ],
)
def test_the_first_syntax_error_has_gos_words(text: str, error: str) -> None:
    assert json_syntax_error(text.encode()) == error


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
)


@given(VALUES, st.sampled_from([None, 2]))
def test_valid_json_has_no_error(value: object, indent: int | None) -> None:
    assert json_syntax_error(json.dumps(value, indent=indent, allow_nan=False).encode()) == ""


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("x", f"invalid character 'x' {BEGIN} (78)"),
        ('{"a":}', f"invalid character '}}' {BEGIN} ({{\"a\":}})"),
        (f'{{"a":"{"b" * 40}', f'{END} ({{"a":"{"b" * 24} ...)'),
        ("[]", f"json: cannot unmarshal array into Go value of type {TYPE} (5b5d)"),
        (
            '{"kind":1}',
            'json: cannot unmarshal number into Go struct field .kind of type string ({"kind":1})',
        ),
    ],
)
def test_a_body_that_is_no_object_is_refused_in_upstreams_words(
    ask: Ask, body: str, error: str
) -> None:
    status, answer = ask("POST", MAPS, body.encode())
    expected = "the object provided is unrecognized (must be of type ConfigMap): "
    expected += f"couldn't get version/kind; json parse error: {error}"
    assert (status, answer["message"]) == (400, expected)


def test_options_that_are_no_object_are_refused_without_a_kind(ask: Ask) -> None:
    status, answer = ask("DELETE", f"{MAPS}/a", b"{")
    assert (status, answer["message"]) == (
        400,
        f"couldn't get version/kind; json parse error: {END}",
    )
