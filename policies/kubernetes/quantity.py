"""Kubernetes quantities as exact integers.

A quantity is a decimal number with a suffix: ``100m``, ``1.5Gi``, ``2e3``, ``+4k``. Upstream keeps
it as an arbitrary-precision decimal whose smallest step is a nano (10^-9) and rounds *away from
zero* when less precision is needed, "under the theory that if you want some resources, you should
get some". Here a quantity is therefore a plain ``int`` of nanos, so sums are exact, and rounding
happens once, when a caller needs whole units or thousandths:

    parse_quantity("0.5m") * 2     ->  1_000_000 nanos
    milli(1_000_000)               ->  1          (rounding each first would return 2)

The canonical form of ``0.5`` is ``500m``, that of ``1024Ki`` is ``1Mi``: it has no fraction, and
the largest suffix that allows it. A quantity with a binary suffix keeps one, unless it is smaller
than 1024 or no whole number; an exponent stays an exponent:

    1.5Gi  ->  1536Mi          0.5Ki  ->  512
    1.1Gi  ->  1181116006400m  1500   ->  1500       2000  ->  2k

A component that has just decoded a quantity prints most of them as they were written, which is
mostly the canonical form; :func:`as_decoded` handles the exceptions (``+5`` and ``007`` stay).

Source: k8s.io/apimachinery/pkg/api/resource (quantity.go, suffix.go, scale_int.go).
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import Final

NANOS = 10**9
MALFORMED: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
UNKNOWN_SUFFIX: Final = "unable to parse quantity's suffix"

_LARGEST_BINARY = (2**63 - 1) * NANOS

_BINARY_SHIFTS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BINARY_SUFFIXES = tuple(_BINARY_SHIFTS)
_DECIMAL_EXPONENTS: Final[dict[str, int]] = dict(
    zip(("n", "u", "m", "", *"kMGTPE"), range(-9, 19, 3), strict=True)
)
_DECIMAL_SUFFIXES = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENTS.items()}
_LARGEST_SUFFIX = 18

_FORM = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]?|[eE][+-]?[0-9]+)",
    re.ASCII,
)
_SCANNED: Final = re.compile(r"[+-]?[0-9]*(?:\.[0-9]*)?[eEinumkKMGTP]*(?:[-+]?[0-9]*)?", re.ASCII)
_PARTS: Final = re.compile(
    r"[+-]?0*(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<suffix>.*)", re.ASCII
)
_FAST_DIGITS: Final = 18
# No resource has an exponent beyond this; upstream's own int32 exponent overflows far later.
_LARGEST_EXPONENT = 100
_SHOWN: Final = 20
_LONGEST: Final = 256
"""The longest text that is read; upstream has no limit, but no such quantity is of any use."""


class QuantityError(ValueError):
    """A text is not a Kubernetes quantity; the message contains the text and what was expected."""


def parse_quantity(text: str) -> int:
    """Return ``text`` in nanos, rounded away from zero to a whole nano.

    Raise QuantityError if it is not a quantity (empty, a wrong suffix, spaces, no digits), or has
    more than 256 characters.
    """
    if len(text) > _LONGEST:
        raise QuantityError(f"{text[:_SHOWN]!r}… has {len(text)} characters; expected at most 256")
    match = _FORM.fullmatch(text)
    if match is None or not (match["whole"] or match["part"]):
        raise QuantityError(
            f"{text!r} is not a quantity; expected a number such as 100m, 2 or 1.5Gi"
        )
    digits = int(match["whole"] + (match["part"] or "") or "0")
    places = len(match["part"] or "")
    suffix = match["suffix"]
    if suffix in _BINARY_SHIFTS:
        nanos = min(_scaled(digits << _BINARY_SHIFTS[suffix], 9 - places), _LARGEST_BINARY)
    else:
        nanos = _scaled(digits, 9 - places + _decimal_exponent(text, suffix))
    return -nanos if match["sign"] == "-" else nanos


def units(nanos: int) -> int:
    """Return a quantity in whole units (bytes, cores, pods), rounded up."""
    return -(-nanos // NANOS)


def milli(nanos: int) -> int:
    """Return a quantity in thousandths (milliCPU), rounded up."""
    return -(-nanos // 10**6)


def _decimal_exponent(text: str, suffix: str) -> int:
    if suffix in _DECIMAL_EXPONENTS:
        return _DECIMAL_EXPONENTS[suffix]
    exponent = int(suffix[1:])
    if abs(exponent) > _LARGEST_EXPONENT:
        raise QuantityError(f"{text!r} has an exponent beyond ±{_LARGEST_EXPONENT}")
    return exponent


def _scaled(digits: int, power: int) -> int:
    if power >= 0:
        return digits * int(10**power)
    return -(-digits // int(10**-power))


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
    if form is not QuantityFormat.EXPONENT and exponent - spare > _LARGEST_SUFFIX:
        spare = exponent - _LARGEST_SUFFIX
    digits, exponent = digits * 10**spare, exponent - spare
    if form is QuantityFormat.EXPONENT:
        return f"{digits}e{exponent}" if exponent else str(digits)
    return f"{digits}{_DECIMAL_SUFFIXES[exponent]}"


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
    exponent = _DECIMAL_EXPONENTS[suffix] if suffix in _DECIMAL_EXPONENTS else int(suffix[1:])
    scale = exponent - len(fraction)
    few = len(digits) <= _FAST_DIGITS and scale >= -9
    return few and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"


def _parts(text: str) -> tuple[str, str, str]:
    """Split a quantity: whole digits without leading zeros, fraction, suffix."""
    match = _PARTS.fullmatch(text)
    assert match is not None
    return match["whole"] or "0", match["fraction"] or "", match["suffix"]
