"""Quantities in their one canonical spelling: ``0.5`` is ``500m``, ``1024Ki`` is ``1Mi``.

The canonical form has no fraction, and the largest suffix that allows it. What was written with a
binary suffix keeps one (unless it is smaller than 1024), an exponent stays an exponent. Digits
beyond a billionth are rounded away from zero.

Source: k8s.io/apimachinery/pkg/api/resource/quantity.go.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

MALFORMED: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)

_TEXT: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>\d*)(?:\.(?P<fraction>\d*))?"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE]?)|[eE](?P<exponent>[+-]?\d{1,4}))",
    re.ASCII,
)
_DECIMAL: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_FINEST: Final = -9
_LARGEST: Final = 18
_LARGEST_EXPONENT: Final = 1_000


@lru_cache(maxsize=4096)
def canonical(text: str) -> str:
    """Give a quantity's canonical spelling; raises ValueError (with upstream's words)."""
    match = _TEXT.fullmatch(text.strip())
    if match is None or not (match["whole"] or match["fraction"]):
        raise ValueError(MALFORMED)
    fraction = match["fraction"] or ""
    digits = int((match["whole"] + fraction) or "0")
    sign = "-" if match["sign"] == "-" and digits else ""
    suffix = match["suffix"] or ""
    if suffix in _BINARY:
        return sign + _binary(digits << _BINARY[suffix], len(fraction))
    if match["exponent"] is None:
        return sign + _decimal(digits, _DECIMAL[suffix] - len(fraction), exponents=False)
    if abs(int(match["exponent"])) > _LARGEST_EXPONENT:
        raise ValueError(MALFORMED)
    return sign + _decimal(digits, int(match["exponent"]) - len(fraction), exponents=True)


def _binary(scaled: int, places: int) -> str:
    """Write a number of bytes that is ``scaled`` divided by ten to the power of ``places``."""
    unit = 10**places
    if scaled < 1024 * unit:
        return _decimal(scaled, -places, exponents=False)
    value, steps = -(-scaled // unit), 0
    while value % 1024 == 0 and steps < len(_BINARY):
        value, steps = value // 1024, steps + 1
    return f"{value}{list(_BINARY)[steps - 1] if steps else ''}"


def _decimal(digits: int, exponent: int, *, exponents: bool) -> str:
    if not digits:
        return "0"
    if exponent < _FINEST:
        digits, exponent = -(-digits // 10 ** (_FINEST - exponent)), _FINEST
    while digits % 10 == 0:
        digits, exponent = digits // 10, exponent + 1
    spare = exponent % 3
    if not exponents and exponent - spare > _LARGEST:
        spare = exponent - _LARGEST
    digits, exponent = digits * 10**spare, exponent - spare
    if exponents:
        return f"{digits}e{exponent}" if exponent else str(digits)
    return f"{digits}{_DECIMAL_SUFFIX[exponent]}"
