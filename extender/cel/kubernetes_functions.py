"""The functions that Kubernetes adds to CEL.

There are functions for lists, strings, URLs, quantities, IP addresses, formats and versions. The
receiver of a CEL method call is the first argument. Values of these types are strings in canonical
form, so that equal values compare as equal: a quantity is a plain number (``1Ki`` is ``1024``), an
address its canonical form.

Source: k8s.io/apiserver/pkg/cel/library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from itertools import pairwise
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlsplit

from extender.cel.macros import MACRO_FUNCTIONS
from extender.cel.parser import ENGINE, MATCHES, OPTIONAL_FIELD, optional_field
from extender.cel.string_formats import FORMATS, is_uri, parses
from policies.kubernetes.integers import UINT64_MAX, parse_integer
from policies.kubernetes.name_validation import (
    invalid_dns1035_label,
    invalid_dns_label,
    invalid_label_key,
    invalid_label_value,
    invalid_subdomain,
)
from policies.kubernetes.regular_expressions import compile_pattern

Function = Callable[..., Any]

_QUANTITY: Final = re.compile(
    r"([+-]?(?:\d++\.?\d*+|\.\d++))(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?\d{1,3}))?", re.ASCII
)
_SEMVER: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([\w.-]+))?(?:\+[\w.-]+)?", re.ASCII
)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_FORMAT: Final = "format "


def _sum(values: Sequence[Any]) -> Any:
    total = values[0] if values else 0
    for value in values[1:]:
        total += value
    return total


def _is_sorted(values: Sequence[Any]) -> bool:
    return all(one <= two for one, two in pairwise(values))


def _index_of(values: Any, item: Any, offset: int = 0) -> int:
    if isinstance(values, str):
        return values.find(item, offset)
    return next((i for i, value in enumerate(values) if value == item), -1)


def _last_index_of(values: Any, value: Any, offset: int | None = None) -> int:
    if isinstance(values, str):
        end = len(values) if offset is None else offset + len(value)
        return values.rfind(value, 0, end)
    return next((i for i in range(len(values) - 1, -1, -1) if values[i] == value), -1)


def _least(values: Sequence[Any]) -> Any:
    if not values:
        raise ValueError("min called on empty list")
    return min(values)


def _greatest(values: Sequence[Any]) -> Any:
    if not values:
        raise ValueError("max called on empty list")
    return max(values)


def _includes(values: Any, value: Any) -> bool:
    return bool(value in values if isinstance(values, list) else values == value)


def _find(text: str, pattern: str) -> str:
    return next(iter(compile_pattern(pattern).find_all(text, 1)), "")


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    return compile_pattern(pattern).find_all(text, None if limit < 0 else limit)


def _matches(text: str, pattern: str) -> bool:
    return compile_pattern(pattern).matches(text)


def _url(text: str) -> str:
    if not is_uri(text):
        raise ValueError(f"URL parse error during conversion from string: {text!r}")
    return text


def _host(text: str) -> str:
    return urlsplit(text).netloc.rpartition("@")[2]


def _hostname(text: str) -> str:
    host = _host(text)
    return host[1 : host.index("]")] if host.startswith("[") else host.partition(":")[0]


def _port(text: str) -> str:
    port = urlsplit(text).port
    return "" if port is None else str(port)


def _escaped_path(text: str) -> str:
    return quote(urlsplit(text).path, safe="/%:@!$&'()*+,;=~-._")


def _query(text: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(text).query, keep_blank_values=True)


def _amount(text: str) -> Fraction:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError("quantities must match the regular expression")
    number, suffix, exponent = match.groups()
    base, power = (2, _BINARY[suffix]) if suffix in _BINARY else (10, _DECIMAL.get(suffix, 0))
    if exponent:
        power = parse_integer(exponent) or 0
    return Fraction(number) * _power(base, power)


def _power(base: int, exponent: int) -> Fraction:
    return Fraction(base**exponent) if exponent >= 0 else Fraction(1, base**-exponent)


def _quantity_string(amount: Fraction) -> str:
    """Return an amount as a quantity: a plain decimal number, in nano units if not an integer."""
    if amount.denominator == 1:
        return str(amount.numerator)
    return f"{amount.numerator * 10**9 // amount.denominator}n"


def _is_quantity(text: str) -> bool:
    return _QUANTITY.fullmatch(text) is not None


def _quantity(text: str) -> str:
    return _quantity_string(_amount(text))


def _version(text: str) -> tuple[Any, ...]:
    match = _SEMVER.fullmatch(text)
    if match is None:
        raise ValueError(f"No semantic version: {text!r}")
    marks = (match[4] or "").split(".")
    order = [(0, _part(each), "") if each.isdigit() else (1, 0, each) for each in marks]
    return (*map(_part, match.groups()[:3]), match[4] is None, order)


def _part(text: str) -> int:
    """Return a number of a version. Raise ValueError beyond 64 bits, as upstream does."""
    number = parse_integer(text, UINT64_MAX)
    if number is None:
        raise ValueError(f"No number of a version: {text!r}")
    return number


def _compare(one: str, two: str) -> int:
    """Return -1, 0 or 1: the order of two quantities, or of two versions."""
    first: Any
    second: Any
    if _is_quantity(one) and _is_quantity(two):
        first, second = _amount(one), _amount(two)
    else:
        first, second = _version(one), _version(two)
    return int(first > second) - int(first < second)


def _other(number: Any) -> Fraction:
    return _amount(number) if isinstance(number, str) else Fraction(number)


def _as_integer(text: str) -> int:
    amount = _amount(text)
    if amount.denominator != 1:
        raise ValueError("cannot convert value to integer")
    return amount.numerator


def _semver(text: str) -> str:
    _version(text)
    return text


def _address(text: str) -> IPv4Address | IPv6Address:
    if "%" in text:
        raise ValueError("IP address with zone value is not allowed")
    return ip_address(text)


def _ip(text: str) -> str:
    return str(_address(text.partition("/")[0]))


def _cidr(text: str) -> str:
    address, slash, length = text.partition("/")
    if not slash:
        raise ValueError("network address parse error during conversion from string")
    ip_network(text, strict=False)
    return f"{_address(address)}/{length}"


def _contains_ip(network: str, address: str) -> bool:
    return _address(address) in ip_network(network, strict=False)


def _contains_cidr(network: str, other: str) -> bool:
    one, two = ip_network(network, strict=False), ip_network(other, strict=False)
    same = one.version == two.version and one.prefixlen <= two.prefixlen
    return same and two.network_address in one


def _formatted(form: str, values: Sequence[Any]) -> str:
    """Return a text with its clauses (``%s``, ``%d``, ``%.2f``) replaced by values."""
    left = iter(values)

    def clause(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        value = next(left, None)
        if value is None:
            raise ValueError("index out of range")
        if match[2] == "s":
            return str(value).lower() if isinstance(value, bool) else str(value)
        return format(value, f"{match[1] or ''}{match[2]}")

    return _CLAUSE.sub(clause, form)


_CLAUSE: Final = re.compile(r"%(?:%|(\.\d+)?([sdfebxXo]))")


def _unwrapped(values: Sequence[Any]) -> list[Any]:
    return [value.value() for value in values if value.has_value()]


_CHECKS: Final[Mapping[str, Callable[[str], str]]] = {
    "byte": lambda text: "" if FORMATS["byte"](text) else "invalid base64",
    "date": lambda text: "" if FORMATS["date"](text) else "invalid date",
    "datetime": lambda text: "" if FORMATS["datetime"](text) else "invalid datetime",
    "dns1035Label": invalid_dns1035_label,
    "dns1035LabelPrefix": lambda text: invalid_dns1035_label(f"{text.rstrip('-')}a"),
    "dns1123Label": invalid_dns_label,
    "dns1123LabelPrefix": lambda text: invalid_dns_label(f"{text.rstrip('-')}a"),
    "dns1123Subdomain": invalid_subdomain,
    "dns1123SubdomainPrefix": lambda text: invalid_subdomain(f"{text.rstrip('-')}a"),
    "labelValue": invalid_label_value,
    "qualifiedName": invalid_label_key,
    "uri": lambda text: "" if is_uri(text) else f'parse "{text}": invalid URI for request',
    "uuid": lambda text: "" if FORMATS["uuid"](text) else "does not match the UUID format",
}


def _format_named(name: str) -> Any:
    value = ENGINE.OptionalValue
    return value.of(_FORMAT + name) if name in _CHECKS else value.none()


def _validate(form: str, text: str) -> Any:
    wrong = _CHECKS[form.removeprefix(_FORMAT)](text)
    return ENGINE.OptionalValue.of([wrong]) if wrong else ENGINE.OptionalValue.none()


AUTHORIZER_FUNCTIONS: Final = frozenset(
    [
        "allowed",
        "check",
        "error",
        "errored",
        "fieldSelector",
        "group",
        "labelSelector",
        "name",
        "namespace",
        "path",
        "reason",
        "resource",
        "serviceAccount",
        "subresource",
    ]
)
"""The functions of the variable ``authorizer``, which only admission policies have."""

FUNCTIONS: Final[Mapping[str, Function]] = {
    "add": lambda one, two: _quantity_string(_amount(one) + _other(two)),
    "asApproximateFloat": lambda text: float(_amount(text)),
    "asInteger": _as_integer,
    "cidr": _cidr,
    "compareTo": _compare,
    "containsCIDR": _contains_cidr,
    "containsIP": _contains_ip,
    "family": lambda text: _address(text).version,
    "find": _find,
    "findAll": _find_all,
    "format": _formatted,
    "format.named": _format_named,
    "getEscapedPath": _escaped_path,
    "getHost": _host,
    "getHostname": _hostname,
    "getPort": _port,
    "getQuery": _query,
    "getScheme": lambda text: urlsplit(text).scheme,
    "includes": _includes,
    "indexOf": _index_of,
    "ip": _ip,
    "ip.isCanonical": lambda text: str(_address(text)) == text,
    "isCIDR": parses(_cidr),
    "isGlobalUnicast": lambda text: (
        not (
            _address(text).is_multicast
            or _address(text).is_loopback
            or _address(text).is_unspecified
            or _address(text).is_link_local
        )
    ),
    "isGreaterThan": lambda one, two: _compare(one, two) > 0,
    "isIP": parses(_address),
    "isInteger": lambda text: _amount(text).denominator == 1,
    "isLessThan": lambda one, two: _compare(one, two) < 0,
    "isLinkLocalMulticast": lambda text: str(_address(text)).startswith(("224.0.0.", "ff02:")),
    "isLinkLocalUnicast": lambda text: _address(text).is_link_local,
    "isLoopback": lambda text: _address(text).is_loopback,
    "isQuantity": _is_quantity,
    "isSemver": parses(_version),
    "isSorted": _is_sorted,
    "isURL": is_uri,
    "isUnspecified": lambda text: _address(text).is_unspecified,
    "jsonpatch.escapeKey": lambda key: key.replace("~", "~0").replace("/", "~1"),
    "lastIndexOf": _last_index_of,
    "major": lambda text: _version(text)[0],
    "masked": lambda text: str(ip_network(text, strict=False)),
    "max": _greatest,
    "min": _least,
    "minor": lambda text: _version(text)[1],
    "patch": lambda text: _version(text)[2],
    "prefixLength": lambda text: ip_network(text, strict=False).prefixlen,
    "quantity": _quantity,
    "semver": _semver,
    "sign": lambda text: (_amount(text) > 0) - (_amount(text) < 0),
    "sub": lambda one, two: _quantity_string(_amount(one) - _other(two)),
    "sum": _sum,
    "optional.unwrap": _unwrapped,
    "unwrapOpt": _unwrapped,
    "url": _url,
    "validate": _validate,
    MATCHES: _matches,
    OPTIONAL_FIELD: optional_field,
    **MACRO_FUNCTIONS,
    **{f"format.{name}": (lambda name=name: _FORMAT + name) for name in _CHECKS},
}
"""The functions by name, qualified with a namespace where they have one."""
