"""ListOptions: the query of a list, watch or get, with upstream's validation.

Source: k8s.io/apimachinery/pkg/apis/meta/internalversion (defaults.go, validation) and pkg/runtime
conversion of query parameters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from fakeapi.api.errors import Cause, bad_request, invalid

_FORBIDDEN = "FieldValueForbidden"
_LIST_OPTIONS = "ListOptions.meta.k8s.io"
_WRITE_OPTIONS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Options of a list or watch; ``version`` is the resourceVersion as sent, "" if unset."""

    labels: str = ""
    fields: str = ""
    version: str = ""
    match: str = ""
    limit: int = 0
    continue_token: str = ""
    watch: bool = False
    bookmarks: bool = False
    timeout_seconds: int | None = None
    initial_events: bool | None = None

    @property
    def version_number(self) -> int:
        """Return the resourceVersion as a number; 0 if unset."""
        return int(self.version or "0")


def parse_list_options(query: Mapping[str, str]) -> ListOptions:
    """Parse and validate the options; raise StatusError (400 or 422).

    A watch without a version, or from 0, gets initial events unless it says otherwise.
    """
    options = ListOptions(
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
        version=parse_version(query.get("resourceVersion", "")),
        match=query.get("resourceVersionMatch", ""),
        limit=_integer(query, "limit") or 0,
        continue_token=query.get("continue", ""),
        watch=bool(read_flag(query, "watch")),
        bookmarks=bool(read_flag(query, "allowWatchBookmarks")),
        timeout_seconds=_integer(query, "timeoutSeconds"),
        initial_events=read_flag(query, "sendInitialEvents"),
    )
    causes = _watch_errors(options) if options.watch else _list_errors(options)
    if causes:
        raise invalid(_LIST_OPTIONS, "", causes)
    if options.watch and not options.version_number and options.initial_events is None:
        return replace(options, initial_events=True)
    return options


def parse_version(text: str) -> str:
    """Check that a resourceVersion is empty or a decimal number; raise StatusError (400)."""
    if text and not re.fullmatch(r"[0-9]{1,19}", text, re.ASCII):
        raise bad_request(
            f'resourceVersion: Invalid value: "{text}": '
            f'strconv.ParseUint: parsing "{text}": invalid syntax'
        )
    return text


def parse_integer(text: str) -> int:
    """Parse a number of up to 64 bits; raise StatusError (400)."""
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text, re.ASCII):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def read_flag(query: Mapping[str, str], name: str) -> bool | None:
    """Parse a boolean as upstream does: only "false" and "0" are false; None if it is unset."""
    value = query.get(name)
    return None if value is None else value.lower() not in ("false", "0")


def is_dry_run(method: str, query: Mapping[str, str]) -> bool:
    """Return whether a write is a dry run; raise StatusError (422) for an unknown value.

    A delete may request a dry run in its body, too: see :func:`parse_delete_options`.
    """
    value = query.get("dryRun")
    if not value or method not in _WRITE_OPTIONS:
        return False
    causes = dry_run_errors([value])
    if causes:
        raise invalid(f"{_WRITE_OPTIONS[method]}.meta.k8s.io", "", causes)
    return True


def dry_run_errors(values: Sequence[Any]) -> list[Cause]:
    """Return an error if ``dryRun`` has another value than ``All``."""
    if all(value == "All" for value in values):
        return []
    listed = orjson.dumps(list(values)).decode()
    message = f'Unsupported value: {listed}: supported values: "All"'
    return [Cause("FieldValueNotSupported", message, "dryRun")]


def _integer(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    return parse_integer(text) if text else None


def _forbidden_error(field: str, why: str) -> Cause:
    return Cause(_FORBIDDEN, f"Forbidden: {why}", field)


def _known_match(options: ListOptions) -> list[Cause]:
    if options.match in ("", "Exact", "NotOlderThan"):
        return []
    message = f'Unsupported value: "{options.match}": supported values: "Exact", "NotOlderThan", ""'
    return [Cause("FieldValueNotSupported", message, "resourceVersionMatch")]


def _list_errors(options: ListOptions) -> list[Cause]:
    causes = []
    field = "resourceVersionMatch"
    if options.initial_events is not None:
        causes.append(
            _forbidden_error("sendInitialEvents", "sendInitialEvents is forbidden for list")
        )
    if not options.match:
        return causes
    if not options.version:
        causes.append(
            _forbidden_error(
                field, "resourceVersionMatch is forbidden unless resourceVersion is provided"
            )
        )
    if options.continue_token:
        causes.append(
            _forbidden_error(field, "resourceVersionMatch is forbidden when continue is provided")
        )
    causes += _known_match(options)
    if options.match == "Exact" and options.version == "0":
        causes.append(
            _forbidden_error(
                field, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            )
        )
    return causes


def _watch_errors(options: ListOptions) -> list[Cause]:
    field = "resourceVersionMatch"
    causes = []
    if options.initial_events is not None and options.match != "NotOlderThan":
        why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        causes.append(_forbidden_error(field, why))
    if not options.match:
        return causes
    if options.initial_events is None:
        why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        causes.append(_forbidden_error(field, why))
    if options.match != "NotOlderThan":
        message = f'Unsupported value: "{options.match}": supported values: "NotOlderThan"'
        causes.append(Cause("FieldValueNotSupported", message, field))
    if options.continue_token:
        causes.append(
            _forbidden_error(field, "resourceVersionMatch is forbidden when continue is provided")
        )
    return causes
