"""Formats of texts."""

from __future__ import annotations

import pytest

from extender.cel.string_formats import FORMATS


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("bsonobjectid", "507f1f77bcf86cd799439011", "507f"),
        ("byte", "aGk=", "a*"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112"),
        ("date", "2024-02-29", "2023-02-29"),
        ("datetime", "2024-01-01T10:00:00.5Z", "2024-01-01 10:00"),
        ("duration", "1h30m", "soon"),
        ("email", "a@b.c", "a.b.c"),
        ("hexcolor", "#FFf", "#FFff"),
        ("hostname", "a.example.com", "-a"),
        ("ipv4", "10.0.0.1", "10.0.0.256"),
        ("ipv4", "10.0.0.0", "10.0.0." + "1" * 5000),
        ("ipv6", "::1", "10.0.0.1"),
        ("isbn", "978-0321751041", "978-0321751042"),
        ("isbn10", "0321751043", "0321751044"),
        ("k8slongname", "a.b-c", "A"),
        ("k8sshortname", "a-b", "a.b"),
        ("mac", "00:1b:63:84:45:e6", "00:1b"),
        ("rgbcolor", "rgb(1, 2, 255)", "rgb(1,2,256)"),
        ("ssn", "123-45-6789", "123"),
        ("uri", "https://a/b", "a b"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e"),
        ("uuid4", "9f8b1c1e-4b1a-4d3a-9c1e-2f1a3b4c5d6e", "123e4567-e89b-12d3-a456-426614174000"),
    ],
)
def test_a_format_accepts_and_rejects_texts(name: str, good: str, bad: str) -> None:
    assert FORMATS[name](good)
    assert not FORMATS[name](bad)


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("1h30m", True),
        ("-1.5h", True),
        ("3 weeks 2 Days", True),
        ("5 nanosecs", True),
        ("12 fortnights 1 min", True),
        ("12 fortnights", False),
        ("in 5 minutes", False),
        ("9223372036854775808 s", False),
    ],
)
def test_durations_are_gos_or_numbers_with_names_of_units(text: str, valid: bool) -> None:  # noqa: FBT001 - the expected value
    assert FORMATS["duration"](text) is valid


@pytest.mark.parametrize(
    "text",
    ["1" * 500_000, "1" + " " * 500_000 + "-", "1s" * 200_000 + "-", "1 a" * 200_000 + "?"],
    ids=["digits", "spaces", "components", "words"],
)
def test_a_long_text_that_is_no_duration_is_refused(text: str) -> None:
    assert not FORMATS["duration"](text)
