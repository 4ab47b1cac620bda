"""Durations in Go's notation: ``90s``, ``1m30s``, ``1.5h``.

Source: time.ParseDuration.
"""

from __future__ import annotations

import json
import re
from typing import Final

from policies.kubernetes.integers import parse_integer


def quoted(text: str) -> str:
    """Quote a text as Go's %q does."""
    return json.dumps(text, ensure_ascii=False)


_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,  # micro sign; the next line has the Greek letter
    "\u03bcs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_OVERFLOWING: Final = 2**63
_FRACTION_DIGITS: Final = 18
"""More digits are less than a nanosecond, even of an hour."""
_COMPONENT: Final = re.compile(r"(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<unit>[^0-9.]*)")


def parse_duration(text: str) -> int:
    """Return a duration in nanoseconds. Raise ValueError with Go's error text."""
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    total, at = 0, 0
    while at < len(rest) or not rest:
        match = _COMPONENT.match(rest, at)
        assert match is not None
        whole = parse_integer(match["whole"] or "0", _OVERFLOWING)
        if not (match["whole"] or match["fraction"]) or whole is None:
            raise ValueError(f"time: invalid duration {quoted(text)}")
        if not match["unit"]:
            raise ValueError(f"time: missing unit in duration {quoted(text)}")
        if match["unit"] not in _UNITS:
            raise ValueError(
                f"time: unknown unit {quoted(match['unit'])} in duration {quoted(text)}"
            )
        total += whole * _UNITS[match["unit"]] + _fraction(match)
        if total > _OVERFLOWING:
            raise ValueError(f"time: invalid duration {quoted(text)}")
        at = match.end()
    if total == _OVERFLOWING and sign > 0:
        raise ValueError(f"time: invalid duration {quoted(text)}")
    return sign * total


def format_duration(nanoseconds: int) -> str:
    """Format a duration that is not negative: ``0.5s``, ``1m30s``, ``2h0m0s``."""
    minutes, rest = divmod(nanoseconds, _UNITS["m"])
    seconds, fraction = divmod(rest, _UNITS["s"])
    shown = f"{seconds}.{fraction:09}".rstrip("0").rstrip(".") if fraction else str(seconds)
    if not minutes:
        return f"{shown}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{shown}s" if hours else f"{minutes}m{shown}s"


def _fraction(match: re.Match[str]) -> int:
    digits = (match["fraction"] or "")[:_FRACTION_DIGITS]
    return (parse_integer(digits) or 0) * _UNITS[match["unit"]] // int(10 ** len(digits))
