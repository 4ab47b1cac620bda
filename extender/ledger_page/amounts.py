"""Amounts, intervals and times as the page writes them."""

from __future__ import annotations

from typing import Final

from extender.kube.decoders.object_meta import format_time

SECOND_NS: Final = 10**9
_CORES: Final = 1000
_BINARY: Final = ("KiB", "MiB", "GiB", "TiB", "PiB")
_BYTES: Final = frozenset({"memory", "ephemeral-storage"})
_UNITS: Final = ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


def format_amount(resource: str, amount: int) -> str:
    """Return an amount of a resource with its unit: ``1.5 cores``, ``64 GiB``, ``8``."""
    if resource == "cpu":
        return f"{amount / _CORES:g} core{'' if amount == _CORES else 's'}"
    if resource in _BYTES or resource.startswith("hugepages-"):
        return _format_bytes(amount)
    return f"{amount:,}"


def format_interval(nanoseconds: int) -> str:
    """Return an interval in its two largest units: ``0.3 s``, ``5 min 2 s``, ``3 d 4 h``."""
    seconds = nanoseconds / SECOND_NS
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f} s"
    whole = round(seconds)
    for size, unit, smaller, smaller_unit in _UNITS:
        if whole >= size:
            rest = whole % size // smaller
            return (
                f"{whole // size} {unit} {rest} {smaller_unit}"
                if rest
                else f"{whole // size} {unit}"
            )
    return f"{whole} s"


def format_hours(amount: int, per_hour: int) -> str:
    """Return work as hours: ``amount`` by seconds, of which ``per_hour`` are one."""
    hours = amount / per_hour
    return f"{hours:,.0f} h" if hours >= 100 else f"{hours:.3g} h"


def time_or_empty(at_ns: int) -> str:
    """Return a time as RFC 3339, "" for 0, which is no time."""
    return format_time(at_ns) if at_ns else ""


def count_of(number: int, noun: str) -> str:
    """Return a number with a noun: ``1 pod``, ``2 pods``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _format_bytes(amount: int) -> str:
    shown, unit = float(amount), "B"
    for larger in _BINARY:
        if abs(shown) < 1024:
            break
        shown, unit = shown / 1024, larger
    return f"{shown:.4g} {unit}"
