"""Kubernetes quantities as exact integers.

A quantity is a decimal number with a suffix: ``100m``, ``1.5Gi``, ``2e3``, ``+4k``. Upstream keeps
it as an arbitrary-precision decimal whose smallest step is a nano (10^-9) and rounds *away from
zero* when less precision is needed, "under the theory that if you want some resources, you should
get some". Here a quantity is therefore a plain ``int`` of nanos, so sums are exact, and rounding
happens once, when a caller needs whole units or thousandths:

    parse_quantity("0.5m") * 2     ->  1_000_000 nanos
    milli(1_000_000)               ->  1          (rounding each first would return 2)

Source of the rules: k8s.io/apimachinery/pkg/api/resource (quantity.go, suffix.go).
"""

from __future__ import annotations

import re

NANOS = 10**9
_LARGEST_BINARY = (2**63 - 1) * NANOS

_BINARY_SHIFTS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_EXPONENTS = {
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

_FORM = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]?|[eE][+-]?[0-9]+)",
    re.ASCII,
)
# No resource has an exponent beyond this; upstream's own int32 exponent overflows far later.
_LARGEST_EXPONENT = 100


class QuantityError(ValueError):
    """A text is not a Kubernetes quantity; the message contains the text and what was expected."""


def parse_quantity(text: str) -> int:
    """Return ``text`` in nanos, rounded away from zero to a whole nano.

    Raise QuantityError if it is not a quantity: empty, a wrong suffix, spaces, no digits.
    """
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
