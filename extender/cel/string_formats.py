"""Formats of strings: ``format: ipv4`` and others.

Formats that are not in the table are ignored, as upstream ignores them.

Sources: k8s.io/kube-openapi/pkg/validation/strfmt, k8s.io/apiextensions-apiserver/pkg/apiserver/
validation/formats.go.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Callable, Mapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_network
from typing import Any, Final
from urllib.parse import urlsplit

from policies.kubernetes.duration import parse_duration
from policies.kubernetes.integers import parse_integer
from policies.kubernetes.name_validation import invalid_dns_label, invalid_subdomain

_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_UUID: Final = r"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{}[0-9a-f]{{3}}-?{}[0-9a-f]{{3}}-?[0-9a-f]{{12}}"
_DATE: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_TIME: Final = re.compile(r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(z|[+-]\d\d:\d\d)", re.ASCII)
_DURATION_PART: Final = r"([0-9]++)\s*+([A-Za-zµ]++)\s*+"
_WORDY_DURATION: Final = re.compile(rf"\s*+(?:{_DURATION_PART})++", re.ASCII)
_TIME_UNIT: Final = re.compile(
    r"ns|nano.*|us|µs|micro.*|ms|milli.*|s|sec.*|m|min.*|h|hr|hour.*|d|day.*|w|wk|week.*",
    re.IGNORECASE,
)
_HOST: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9-]{1,63}")


def _regex(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII | re.IGNORECASE)
    return lambda text: compiled.fullmatch(text) is not None


def parses(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    """Return a predicate that is true for texts which ``parse`` accepts without a ValueError."""

    def fits(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return fits


def is_uri(text: str) -> bool:
    """Return whether a text is an absolute URI or an absolute path."""
    if not text or any(c <= " " or c == "\x7f" for c in text):
        return False
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return text.startswith("/") or bool(parts.scheme)


def _is_email(text: str) -> bool:
    address = re.search(r"<([^<>]+)>\s*\Z", text)
    local, at, domain = (address[1] if address else text).rpartition("@")
    return bool(local and at and domain) and not re.search(r"[\s<>]", f"{local}{domain}")


def _is_host(text: str) -> bool:
    return _HOST.fullmatch(text) is not None and not text.startswith("-")


def _is_ipv4(text: str) -> bool:
    parts = text.split(".")
    return len(parts) == 4 and all(p.isdigit() and parse_integer(p, 255) is not None for p in parts)


def is_date(text: str) -> bool:
    """Return whether a text is a valid date of RFC 3339."""
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    leap = (year % 4 == 0 and year % 100 != 0) or year % 400 == 0
    last = 28 if month == 2 and not leap else _DAYS[min(max(month, 1), 12) - 1]
    return 1 <= month <= 12 and 1 <= day <= last


@lru_cache(maxsize=1_024)  # times are whole seconds, so many objects have the same
def is_datetime(text: str) -> bool:
    """Return whether a text is a date and time with a time zone of RFC 3339."""
    date, t, time = text.lower().partition("t")
    return bool(t) and is_date(date) and _TIME.fullmatch(time) is not None


def _is_base64(text: str) -> bool:
    try:
        b64decode(text, validate=True)
    except (Error, ValueError):
        return False
    return bool(text)


def _is_duration(text: str) -> bool:
    if parses(parse_duration)(text):
        return True
    if _WORDY_DURATION.fullmatch(text) is None:
        return False
    parts = re.findall(_DURATION_PART, text, re.ASCII)
    are_integers = all(parse_integer(number) is not None for number, _ in parts)
    return are_integers and any(_TIME_UNIT.fullmatch(unit) for _, unit in parts)


def _digits(text: str) -> str:
    return re.sub(r"[^0-9X]", "", text.upper())


def _is_isbn10(text: str) -> bool:
    digits = _digits(text)
    if not re.fullmatch(r"\d{9}[\dX]", digits):
        return False
    values = [10 if digit == "X" else int(digit) for digit in digits]
    return sum(value * (index + 1) for index, value in enumerate(values)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = _digits(text)
    if not re.fullmatch(r"\d{13}", digits):
        return False
    return sum(int(digit) * (3 if index % 2 else 1) for index, digit in enumerate(digits)) % 10 == 0


def _is_card(text: str) -> bool:
    digits = re.sub(r"\D", "", text)
    if not 13 <= len(digits) <= 19:
        return False
    doubled = [int(d) * (2 if i % 2 else 1) for i, d in enumerate(reversed(digits))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


_BYTE: Final = r"(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])"

FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "bsonobjectid": _regex("[0-9a-f]{24}"),
    "byte": _is_base64,
    "cidr": parses(lambda text: ip_network(text if "/" in text else "", strict=False)),
    "creditcard": _is_card,
    "date": is_date,
    "datetime": is_datetime,
    "duration": _is_duration,
    "email": _is_email,
    "hexcolor": _regex("#?([0-9a-f]{3}|[0-9a-f]{6})"),
    "hostname": _is_host,
    "ipv4": _is_ipv4,
    "ipv6": parses(IPv6Address),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "k8slongname": lambda text: not invalid_subdomain(text),
    "k8sshortname": lambda text: not invalid_dns_label(text),
    "mac": _regex("[0-9a-f]{2}([:-][0-9a-f]{2}){5}([:-][0-9a-f]{2}){0,2}"),
    "password": lambda _text: True,
    "rgbcolor": _regex(rf"rgb\(\s*{_BYTE}\s*,\s*{_BYTE}\s*,\s*{_BYTE}\s*\)"),
    "ssn": _regex(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "uri": is_uri,
    "uuid": _regex(_UUID.format("[0-9a-f]", "[0-9a-f]")),
    "uuid3": _regex(_UUID.format("3", "[0-9a-f]")),
    "uuid4": _regex(_UUID.format("4", "[89ab]")),
    "uuid5": _regex(_UUID.format("5", "[89ab]")),
}
"""Functions that return whether a text matches a format, by its name without dashes."""

_NUMBERS: Final = {"integer": ("int32", "int64"), "number": ("float", "double")}


def known_format(schema: Mapping[str, Any]) -> str:
    """Return the format of a schema; "" if it has none that is known for its type."""
    name: str = schema.get("format") or ""
    kind = schema.get("type", "")
    if schema.get("x-kubernetes-int-or-string"):
        kind = "int-or-string"
    if kind in ("", "string"):
        return name if name.replace("-", "") in FORMATS else ""
    return name if name in _NUMBERS.get(kind, ()) else ""
