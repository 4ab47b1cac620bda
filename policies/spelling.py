"""The canonical form of quantities: ``0.5`` is ``500m``, ``1024Ki`` is ``1Mi``.

The canonical form has no fraction, and the largest suffix that allows it. A quantity with a binary
suffix keeps one, unless it is smaller than 1024 or no whole number; an exponent stays an exponent:

    1.5Gi  ->  1536Mi          0.5Ki  ->  512
    1.1Gi  ->  1181116006400m  1500   ->  1500       2000  ->  2k

A component that has just decoded a quantity prints most of them as they were written, which is
mostly the canonical form; :func:`as_decoded` handles the exceptions (``+5`` and ``007`` stay).

Source: k8s.io/apimachinery/pkg/api/resource (quantity.go, scale_int.go).
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import Final

from policies.quantity import NANOS, QuantityError, parse_quantity

MALFORMED: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
UNKNOWN_SUFFIX: Final = "unable to parse quantity's suffix"

_DECIMAL_SUFFIXES: Final = {
    -9: "n",
    -6: "u",
    -3: "m",
    0: "",
    3: "k",
    6: "M",
    9: "G",
    12: "T",
    15: "P",
}
_LARGEST: Final = 18
_BINARY_SUFFIXES: Final = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_SCANNED: Final = re.compile(r"[+-]?[0-9]*(?:\.[0-9]*)?[eEinumkKMGTP]*(?:[-+]?[0-9]*)?", re.ASCII)
_PARTS: Final = re.compile(
    r"[+-]?0*(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<suffix>.*)", re.ASCII
)
_EXPONENTS: Final = {suffix: exponent for exponent, suffix in _DECIMAL_SUFFIXES.items()} | {
    "E": _LARGEST
}
_FAST_DIGITS: Final = 18


class QuantityFormat(Enum):
    """The three formats of a quantity."""

    BINARY = "1Ki, 1Mi, …"
    DECIMAL = "1, 1k, 1M, …"
    EXPONENT = "1e3"


@lru_cache(maxsize=4096)
def canonical(text: str) -> str:
    """Return the canonical form of a quantity. Raise ValueError with upstream's message."""
    stripped = text.strip()
    try:
        nanos = parse_quantity(stripped)
    except QuantityError:
        raise ValueError(MALFORMED) from None
    return format_quantity(nanos, quantity_format(stripped))


@lru_cache(maxsize=4096)
def as_decoded(text: str) -> str:
    """Return a quantity as a component prints it after decoding. Raise QuantityError if invalid."""
    nanos = parse_quantity(text)
    written = quantity_format(text)
    kept = _binary_is_kept(text) if written is QuantityFormat.BINARY else _decimal_is_kept(text)
    return text if kept else format_quantity(nanos, written)


def parse_error_message(text: str) -> str:
    """Return upstream's error message for a ``text`` that is no quantity."""
    return UNKNOWN_SUFFIX if text and _SCANNED.fullmatch(text) else MALFORMED


def quantity_format(text: str) -> QuantityFormat:
    """Return the format of a quantity."""
    if text.endswith("i"):
        return QuantityFormat.BINARY
    return QuantityFormat.EXPONENT if "e" in text or "E" in text[:-1] else QuantityFormat.DECIMAL


def format_quantity(nanos: int, form: QuantityFormat) -> str:
    """Return the canonical form of an amount of nanos."""
    sign, amount = ("-", -nanos) if nanos < 0 else ("", nanos)
    if form is QuantityFormat.BINARY and amount >= 1024 * NANOS and not amount % NANOS:
        return sign + _binary(amount // NANOS)
    return sign + _decimal(amount, form)


def format_binary(number: int) -> str:
    """Return the canonical form of a number in binary format, as for bytes: 1536Mi."""
    return format_quantity(number * NANOS, QuantityFormat.BINARY)


def format_decimal(number: int) -> str:
    """Return the canonical form of a number in decimal format, as for counts: 2k."""
    return format_quantity(number * NANOS, QuantityFormat.DECIMAL)


def _binary(number: int) -> str:
    suffix = ""
    for larger in _BINARY_SUFFIXES:
        if number % 1024:
            break
        number, suffix = number // 1024, larger
    return f"{number}{suffix}"


def _decimal(nanos: int, form: QuantityFormat) -> str:
    if not nanos:
        return "0"
    digits, exponent = nanos, -9
    while digits % 10 == 0:
        digits, exponent = digits // 10, exponent + 1
    spare = exponent % 3
    if form is not QuantityFormat.EXPONENT and exponent - spare > _LARGEST:
        spare = exponent - _LARGEST
    digits, exponent = digits * 10**spare, exponent - spare
    if form is QuantityFormat.EXPONENT:
        return f"{digits}e{exponent}" if exponent else str(digits)
    return f"{digits}{_DECIMAL_SUFFIXES.get(exponent, 'E')}"


def _binary_is_kept(text: str) -> bool:
    """Return whether the text is kept: few digits, no fraction, and not a multiple of eight."""
    whole, fraction, suffix = _parts(text)
    exponent = 10 * (_BINARY_SUFFIXES.index(suffix) + 1)
    spare = 15 - len(whole) - exponent * 3 // 10 - 1
    number = int(whole)
    return not fraction and spare >= 0 and number << exponent < 2**63 and number % 8 != 0


def _decimal_is_kept(text: str) -> bool:
    """Return whether the text is kept: few digits, none of them redundant, a suffix that fits."""
    if text == "0":
        return True
    whole, fraction, suffix = _parts(text)
    digits = whole + fraction
    exponent = _EXPONENTS[suffix] if suffix in _EXPONENTS else int(suffix[1:])
    scale = exponent - len(fraction)
    few = len(digits) <= _FAST_DIGITS and scale >= -9
    return few and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"


def _parts(text: str) -> tuple[str, str, str]:
    """Split a quantity: whole digits without leading zeros, fraction, suffix."""
    match = _PARTS.fullmatch(text)
    assert match is not None
    return match["whole"] or "0", match["fraction"] or "", match["suffix"]
