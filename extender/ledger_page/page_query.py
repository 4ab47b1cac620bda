"""The query of a page: the range of time and what is selected in it.

Everything that is selected is in the URL, so a link shows the same to each reader. A relative range
(``range=24h``) ends now; a custom one has ``since`` and ``until``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeVar
from urllib.parse import urlencode

from extender.kube.decoders.object_meta import format_time, parse_time
from extender.ledger.entry import parse_id
from extender.ledger.storage.queries import NEWEST_ID, Grouping, Kind, Selection
from extender.ledger.storage.schema import HOUR_NS
from policies.kubernetes.input_error import InputError, similar_name
from policies.kubernetes.name_validation import invalid_dns_label, invalid_subdomain

RANGES: Final = {"1h": 1, "24h": 24, "7d": 7 * 24, "30d": 30 * 24}
"""The hours of relative ranges by name."""
DEFAULT_RANGE: Final = "24h"

_RANGE_PARAMETERS: Final = ("range", "since", "until")
TIMELINE_PARAMETERS: Final = (
    *_RANGE_PARAMETERS,
    *("by", "role", "namespace", "class", "node", "kind", "before", "format"),
)
RANGE_PARAMETERS: Final = (*_RANGE_PARAMETERS, "format")
_YEAR_LIMIT: Final = 4102444800 * 10**9
"""The year 2100; IDs have no room for the times after 2255."""

E = TypeVar("E", bound=Enum)


class QueryError(InputError):
    """A parameter or a path is invalid; the text is one line."""


class Counted(Enum):
    """Which pods the bars count."""

    VICTIMS = "victims"
    PREEMPTORS = "preemptors"


@dataclass(frozen=True, slots=True)
class PageQuery:
    """A valid query; ``parameters`` are those that were given. Times are in nanoseconds."""

    parameters: Mapping[str, str]
    since_ns: int
    until_ns: int
    range: str
    grouping: Grouping = Grouping.NAMESPACE
    counted: Counted = Counted.VICTIMS
    node: str = ""
    selection: Selection = field(default_factory=Selection)

    def url(self, path: str, **changes: str) -> str:
        """Return the path with this query and changes of it; "" removes a parameter."""
        changed = {**self.parameters, **changes}
        query = urlencode([(name, value) for name, value in changed.items() if value])
        return f"{path}?{query}" if query else path

    def range_url(self, path: str, name: str) -> str:
        """Return the path with this query and a relative range; it begins with the newest entry."""
        return self.url(path, range=name, since="", until="", before="")


def parse_query(written: Mapping[str, str], allowed: Iterable[str], now_ns: int) -> PageQuery:
    """Return the query that is written. Raise QueryError."""
    check_parameters(written, allowed)
    given = {name: value.strip() for name, value in written.items() if value.strip()}
    given.pop("format", None)
    since, until, name = _range(given, now_ns)
    before = given.get("before", "")
    number = parse_id(before) if before else NEWEST_ID
    if number is None:
        raise QueryError(f"before: {before!r} is not the ID of a decision")
    node = _checked(given, "node", invalid_subdomain(given["node"]) if "node" in given else "")
    selection = Selection(
        since,
        until,
        _checked(given, "namespace", _error_of_label(given.get("namespace", ""))),
        _checked(given, "class", _error_of_name(given.get("class", ""))),
        _choice(given, "kind", Kind.PREEMPTIONS),
        number,
    )
    grouping = _choice(given, "by", Grouping.NAMESPACE)
    counted = _choice(given, "role", Counted.VICTIMS)
    return PageQuery(given, since, until, name, grouping, counted, node, selection)


def check_parameters(written: Mapping[str, str], allowed: Iterable[str]) -> None:
    """Raise QueryError for a parameter that a page does not have, or that is given twice."""
    known, given = tuple(allowed), set[str]()
    for name, _ in written.items():  # noqa: PERF102 - the items of a query repeat its names
        if name in given:
            raise QueryError(f"{name[:100]}: given twice")
        given.add(name)
        if name not in known:
            similar = similar_name(name, known)
            hint = f"; did you mean {similar}?" if similar else ""
            expected = f"expected some of {', '.join(known)}"
            raise QueryError(f"unknown parameter {name[:100]!r}; {expected}{hint}")
    if written.get("format", "html") not in ("html", "json"):
        raise QueryError(f"format: {written['format'][:100]!r}; expected html or json")


def parse_pod_key(written: str) -> tuple[str, str]:
    """Return the namespace and the name of ``NAMESPACE/NAME``. Raise QueryError."""
    namespace, slash, name = written.strip().partition("/")
    error = _error_of_label(namespace) or _error_of_name(name)
    if not slash or not namespace or not name:
        error = "expected NAMESPACE/NAME"
    if error:
        raise QueryError(f"pod: {written[:300]!r}: {error}")
    return namespace, name


def _range(given: Mapping[str, str], now_ns: int) -> tuple[int, int, str]:
    if "since" not in given and "until" not in given:
        name = given.get("range", DEFAULT_RANGE)
        if name not in RANGES:
            raise QueryError(f"range: {name[:100]!r}; expected one of {', '.join(RANGES)}")
        return now_ns - RANGES[name] * HOUR_NS, now_ns, name
    if "range" in given:
        raise QueryError("range: expected either range, or since and until")
    until = _time(given, "until") if "until" in given else now_ns
    since = _time(given, "since") if "since" in given else until - RANGES[DEFAULT_RANGE] * HOUR_NS
    if since >= until:
        raise QueryError(f"since: {format_time(since)} is not before until, {format_time(until)}")
    return since, until, ""


def _time(given: Mapping[str, str], name: str) -> int:
    """Return a time; one without a zone, as a form sends it, is in UTC."""
    written = given[name]
    found = next((at for zone in ("", "Z", "T00:00Z") if (at := parse_time(written + zone))), 0)
    if not 0 < found < _YEAR_LIMIT:
        expected = "expected a time such as 2026-01-31T12:00:00Z"
        raise QueryError(f"{name}: {written[:100]!r} is not a time; {expected}")
    return found


def _choice(given: Mapping[str, str], name: str, default: E) -> E:
    values = {str(each.value): each for each in type(default)}
    written = given.get(name)
    if written is None:
        return default
    if written not in values:
        raise QueryError(f"{name}: {written[:100]!r}; expected one of {', '.join(values)}")
    return values[written]


def _checked(given: Mapping[str, str], name: str, error: str) -> str:
    if error:
        raise QueryError(f"{name}: {given[name][:300]!r}: {error}")
    return given.get(name, "")


def _error_of_label(name: str) -> str:
    return invalid_dns_label(name) if name else ""


def _error_of_name(name: str) -> str:
    return invalid_subdomain(name) if name else ""
