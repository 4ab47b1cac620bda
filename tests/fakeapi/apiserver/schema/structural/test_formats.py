"""Formats and patterns of texts."""

from __future__ import annotations

import pytest

from fakeapi.apiserver.schema.structural.formats import FORMATS, compile_pattern


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
    ("pattern", "good", "bad"),
    [
        ("^[[:alpha:]]+$", "abc", "ab1"),
        (r"^\d$", "1", "\u0661"),
        ("^a$", "a", "a\n"),
        (r"^a\z", "a", "ab"),
        (r"^[$]$", "$", "a"),
    ],
)
def test_patterns_have_gos_syntax(pattern: str, good: str, bad: str) -> None:
    assert compile_pattern(pattern).search(good)
    assert not compile_pattern(pattern).search(bad)


def test_an_invalid_pattern_is_refused() -> None:
    with pytest.raises(ValueError, match="error parsing regexp"):
        compile_pattern("[")
