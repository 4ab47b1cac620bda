"""Regular expressions that others write."""

from __future__ import annotations

import pytest

from policies.kubernetes.regular_expressions import RegularExpression


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("^[[:alpha:]]+$", "abc", "ab1"),
        (r"^\d$", "1", "\u0661"),
        ("^a$", "a", "a\n"),
        (r"^a\z", "a", "ab"),
        (r"^[$]$", "$", "a"),
        (r"^\pL+$", "a\u00e9", "a1"),
        (r"^\Q\C\E$", r"\C", "C"),
        ("b", "abc", "ac"),
        ("(?i)B", "abc", "ac"),
        ("^.$", "\U0001f600", "ab"),
    ],
)
def test_patterns_have_gos_syntax(pattern: str, good: str, bad: str) -> None:
    assert RegularExpression(pattern).matches(good)
    assert not RegularExpression(pattern).matches(bad)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("[", "missing closing ]: `[`"),
        ("(", "missing closing ): `(`"),
        ("a)", "unexpected ): `a)`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(?P<n", "invalid named capture: `(?P<n`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        (r"\pL{1000}", "expression too large"),
    ],
)
def test_an_invalid_pattern_is_refused_in_gos_words(
    pattern: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError) as refused:
        RegularExpression(pattern)
    assert str(refused.value) == f"error parsing regexp: {message}"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^a*a*a*a*a*$", "^(.*)*$x"])
def test_a_pattern_that_takes_python_exponential_time_is_answered(pattern: str) -> None:
    assert not RegularExpression(pattern).matches("a" * 100_000 + "!")


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("a*", "baac", ["", "aa", ""]),
        ("", "\u00e9", ["", ""]),
        ("[0-9]", "1a2b", ["1", "2"]),
        ("\u00e9+", "a\u00e9\u00e9b\u00e9", ["\u00e9\u00e9", "\u00e9"]),
        ("x", "a", []),
    ],
)
def test_all_parts_that_match_are_found(pattern: str, text: str, found: list[str]) -> None:
    assert RegularExpression(pattern).find_all(text) == found
    assert RegularExpression(pattern).find_all(text, 1) == found[:1]


def test_a_surrogate_is_a_character_that_no_letter_matches() -> None:
    assert not RegularExpression(r"\pL").matches("\ud800")
    assert RegularExpression("\ud800").find_all("a") == []
