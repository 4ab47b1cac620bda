"""Human-readable cells: fields that may be missing, ages, selectors, shortened lists.

Sources: k8s.io/apimachinery pkg/util/duration (HumanDuration), apis/meta/v1 (FormatLabelSelector)
and pkg/labels.
"""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

Cell = str | int | bool | None
RowPrinter = Callable[[Mapping[str, Any], int], list[Cell]]
"""A printer: returns the cells of a document at a time (seconds since 1970)."""

NONE: Final = "<none>"
UNSET: Final = "<unset>"
UNKNOWN: Final = "<unknown>"

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY

_TIME: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)
_SET_OPERATORS: Final = {"In": "in", "NotIn": "notin"}
_EXISTENCE: Final = {"Exists": "", "DoesNotExist": "!"}


def at(document: Any, *path: str) -> Any:
    """Return the value at a path, or None."""
    for step in path:
        document = document.get(step) if isinstance(document, dict) else None
    return document


def text(document: Any, *path: str, absent: str = "") -> str:
    """Return the scalar at a path as text; ``absent`` if it is missing, empty or not a scalar."""
    value = at(document, *path)
    if value is None or value == "" or isinstance(value, dict | list):
        return absent
    return str(value)


def number(document: Any, *path: str) -> int:
    """Return the integer at a path, or 0."""
    value = at(document, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def flag(document: Any, *path: str) -> bool:
    """Return whether the value at a path is true."""
    return at(document, *path) is True


def objects(document: Any, *path: str) -> Sequence[Mapping[str, Any]]:
    """Return the objects of the list at a path."""
    value = at(document, *path)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def texts(document: Any, *path: str) -> Sequence[str]:
    """Return the strings of the list at a path."""
    value = at(document, *path)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def mapping(document: Any, *path: str) -> Mapping[str, Any]:
    """Return the object at a path; an empty one if it is missing."""
    value = at(document, *path)
    return value if isinstance(value, dict) else {}


def name(document: Any) -> str:
    """Return the object's name."""
    return text(document, "metadata", "name")


def deleted(document: Any) -> bool:
    """Return whether the object is being deleted."""
    return at(document, "metadata", "deletionTimestamp") is not None


def parse_time(stamp: Any) -> int | None:
    """Return an RFC 3339 time in whole seconds since 1970; None if it is not valid."""
    match = _TIME.fullmatch(stamp) if isinstance(stamp, str) else None
    if match is None:
        return None
    seconds = timegm(tuple(int(part) for part in match.groups()[:6]))
    sign, hours, minutes = match.groups()[6:]
    if sign:
        offset = int(hours) * _HOUR + int(minutes) * _MINUTE
        seconds += offset if sign == "-" else -offset
    return seconds


def since(stamp: Any, now: int) -> str:
    """Return the duration since a time; ``<unknown>`` if there is none."""
    time = parse_time(stamp)
    return UNKNOWN if time is None else human_duration(now - time)


def age(document: Any, now: int) -> str:
    """Return an object's age."""
    return since(at(document, "metadata", "creationTimestamp"), now)


def human_duration(seconds: int) -> str:
    """Return a duration in at most two units, which are coarser for longer durations."""
    if seconds < 0:
        return "<invalid>" if seconds < -1 else "0s"
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < 10 * _MINUTE:
        return _two_units(seconds, _MINUTE, "m", 1, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two_units(seconds, _HOUR, "h", _MINUTE, "m")
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    if seconds < 8 * _DAY:
        return _two_units(seconds, _DAY, "d", _HOUR, "h")
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY}d"
    if seconds < 8 * _YEAR:
        return _two_units(seconds, _YEAR, "y", _DAY, "d")
    return f"{seconds // _YEAR}y"


def labels(document: Any, *path: str) -> str:
    """Return the labels at a path in the form of a selector: ``a=b,c=d``."""
    return _pairs(mapping(document, *path)) or NONE


def selector(document: Any, *path: str, absent: str = NONE) -> str:
    """Return the label selector at a path as one line.

    Return ``absent`` for an empty selector and for a missing one, and ``<error>`` for a selector
    with an unknown operator.
    """
    parts = [
        (key, f"{key}={value}") for key, value in mapping(document, *path, "matchLabels").items()
    ]
    for requirement in objects(document, *path, "matchExpressions"):
        key, operator = text(requirement, "key"), text(requirement, "operator")
        if operator in _EXISTENCE:
            parts.append((key, _EXISTENCE[operator] + key))
        elif operator in _SET_OPERATORS:
            values = ",".join(sorted(texts(requirement, "values")))
            parts.append((key, f"{key} {_SET_OPERATORS[operator]} ({values})"))
        else:
            return "<error>"
    parts.sort(key=lambda part: part[0])
    return ",".join(part for _, part in parts) or absent


def containers(document: Any, *path: str) -> list[Cell]:
    """Return the names and the images of the containers in the pod spec at a path."""
    found = objects(document, *path, "containers")
    return [",".join(text(each, field) for each in found) for field in ("name", "image")]


def shortened(words: Sequence[str], most: int, absent: str) -> str:
    """Join the first ``most`` words, and append the number of the others."""
    listed = ",".join(words[:most])
    if len(words) > most:
        return f"{listed} + {len(words) - most} more..."
    return listed or absent


def true_conditions(document: Any) -> frozenset[str]:
    """Return the types of the conditions with status True."""
    found = conditions(document)
    return frozenset(kind for kind, each in found.items() if text(each, "status") == "True")


def conditions(document: Any) -> Mapping[str, Mapping[str, Any]]:
    """Return an object's conditions by type."""
    return {text(each, "type"): each for each in objects(document, "status", "conditions")}


def name_and_age(document: Mapping[str, Any], now: int) -> list[Cell]:
    """Return the cells of kinds that have only the columns Name and Age."""
    return [name(document), age(document, now)]


def _two_units(seconds: int, large: int, large_name: str, small: int, small_name: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large}{large_name}" + (f"{rest}{small_name}" if rest else "")


def _pairs(pairs: Mapping[str, Any]) -> str:
    return ",".join(f"{key}={pairs[key]}" for key in sorted(pairs))


def join_or_none(words: Iterable[str]) -> str:
    """Join words by commas; ``<none>`` if there are none."""
    return ",".join(words) or NONE
