"""ListOptions and DeleteOptions, with upstream's validation.

ListOptions are the query of a list, watch or get; DeleteOptions come from the body or, without one,
from the query.

Sources: k8s.io/apimachinery/pkg/apis/meta/internalversion (defaults.go, validation),
pkg/apis/meta/v1 (DeleteOptions, validation), pkg/runtime (conversion of query parameters);
k8s.io/apiserver/pkg/endpoints/handlers/delete.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from fakeapi.apiserver.wire.errors import Cause, bad_request, invalid
from fakeapi.apiserver.wire.go_format import json_type
from policies.kubernetes.integers import INT64_MAX

_FORBIDDEN = "FieldValueForbidden"
_LIST_OPTIONS = "ListOptions.meta.k8s.io"


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


def _forbidden_error(field: str, detail: str) -> Cause:
    return Cause(_FORBIDDEN, f"Forbidden: {detail}", field)


def _match_errors(options: ListOptions) -> list[Cause]:
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
    causes += _match_errors(options)
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
        detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        causes.append(_forbidden_error(field, detail))
    if not options.match:
        return causes
    if options.initial_events is None:
        detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        causes.append(_forbidden_error(field, detail))
    if options.match != "NotOlderThan":
        message = f'Unsupported value: "{options.match}": supported values: "NotOlderThan"'
        causes.append(Cause("FieldValueNotSupported", message, field))
    if options.continue_token:
        causes.append(
            _forbidden_error(field, "resourceVersionMatch is forbidden when continue is provided")
        )
    return causes


_KIND: Final = "DeleteOptions"
_QUALIFIED: Final = "DeleteOptions.meta.k8s.io"
_POLICIES: Final = ("Foreground", "Background", "Orphan")
_UNSAFE: Final = "ignoreStoreReadErrorWithClusterBreakingPotential"

_TYPES: Final[Mapping[str, tuple[type, str]]] = {
    "gracePeriodSeconds": (int, "int64"),
    "orphanDependents": (bool, "bool"),
    "propagationPolicy": (str, "v1.DeletionPropagation"),
    "preconditions": (dict, "v1.Preconditions"),
    "dryRun": (list, "[]string"),
    _UNSAFE: (bool, "bool"),
}


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Options of a delete; None and "" mean unset. ``grace_seconds`` is in seconds.

    ``unsafe``: delete the object even if it cannot be read.
    """

    grace_seconds: int | None = None
    uid: str | None = None
    version: str | None = None
    propagation: str = ""
    orphan_dependents: bool | None = None
    dry_run: bool = False
    unsafe: bool = False

    def document(self) -> dict[str, Any]:
        """Return the options as JSON, without unset ones."""
        preconditions = {"uid": self.uid, "resourceVersion": self.version}
        members = {
            "gracePeriodSeconds": self.grace_seconds,
            "preconditions": {k: v for k, v in preconditions.items() if v is not None} or None,
            "orphanDependents": self.orphan_dependents,
            "propagationPolicy": self.propagation or None,
            "dryRun": ["All"] if self.dry_run else None,
            _UNSAFE: self.unsafe or None,
        }
        return {name: value for name, value in members.items() if value is not None}


def parse_delete_options(query: Mapping[str, str], body: Mapping[str, Any]) -> DeleteOptions:
    """Read and validate the options; raise StatusError (400, 422)."""
    values = dict(body) if body else _from_query(query)
    _check_types(values)
    causes = [*_policy_errors(values), *dry_run_errors(values.get("dryRun") or [])]
    if causes:
        raise invalid(_QUALIFIED, "", causes)
    preconditions = values.get("preconditions") or {}
    return DeleteOptions(
        grace_seconds=values.get("gracePeriodSeconds"),
        uid=preconditions.get("uid"),
        version=preconditions.get("resourceVersion"),
        propagation=values.get("propagationPolicy") or "",
        orphan_dependents=values.get("orphanDependents"),
        dry_run=bool(values.get("dryRun")),
        unsafe=bool(values.get(_UNSAFE)),
    )


def check_collection_options(options: DeleteOptions) -> None:
    """Raise StatusError (422) for options that are valid for single objects only."""
    if options.unsafe:
        detail = "is not allowed with DELETECOLLECTION, try again after removing the option"
        cause = Cause("FieldValueInvalid", f"Invalid value: true: {detail}", _UNSAFE)
        raise invalid(_QUALIFIED, "", [cause])


def check_eviction_options(name: str, options: DeleteOptions) -> None:
    """Raise StatusError (422) for options that an eviction may not have; ``name`` is the pod's."""
    if options.unsafe:
        detail = "can not be set for pod eviction, try after removing the option"
        field = f"deleteOptions.{_UNSAFE}"
        cause = Cause("FieldValueInvalid", f"Invalid value: true: {detail}", field)
        raise invalid("Eviction.policy", name, [cause])


def _from_query(query: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if "gracePeriodSeconds" in query:
        values["gracePeriodSeconds"] = parse_integer(query["gracePeriodSeconds"])
    if "propagationPolicy" in query:
        values["propagationPolicy"] = query["propagationPolicy"]
    if "dryRun" in query:
        values["dryRun"] = [query["dryRun"]]
    for name in ("orphanDependents", _UNSAFE):
        flag = read_flag(query, name)
        if flag is not None:
            values[name] = flag
    return values


def _check_types(values: Mapping[str, Any]) -> None:
    kind = values.get("kind") or _KIND
    if kind != _KIND:
        version = values.get("apiVersion") or "meta.k8s.io/v1"
        raise bad_request(f'no kind "{kind}" is registered for version "{version}"')
    for name, (expected, go_type) in _TYPES.items():
        value = values.get(name)
        if value is None:
            continue
        fits = isinstance(value, expected) and (expected is bool or not isinstance(value, bool))
        if not fits or (expected is int and not -INT64_MAX - 1 <= value <= INT64_MAX):
            raise _wrong_type(_KIND, name, value, go_type)
    for element in values.get("dryRun") or ():
        if not isinstance(element, str | None):
            raise _wrong_type(_KIND, "dryRun", element, "string")
    for name, go_type in (("uid", "types.UID"), ("resourceVersion", "string")):
        value = (values.get("preconditions") or {}).get(name)
        if not isinstance(value, str | None):
            raise _wrong_type("Preconditions", f"preconditions.{name}", value, go_type)


def _wrong_type(struct: str, where: str, value: Any, go_type: str) -> Exception:
    found = json_type(value)
    if found == "number" and go_type == "int64":
        found = f"number {value!r}"
    return bad_request(
        f"json: cannot unmarshal {found} into Go struct field {struct}.{where} of type {go_type}"
    )


def _policy_errors(values: Mapping[str, Any]) -> list[Cause]:
    policy = values.get("propagationPolicy")
    field = "propagationPolicy"
    causes = []
    if policy is not None and values.get("orphanDependents") is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        causes.append(Cause("FieldValueInvalid", f'Invalid value: "{policy}": {detail}', field))
    if policy is not None and policy not in _POLICIES:
        supported = ", ".join(f'"{name}"' for name in (*_POLICIES, "nil"))
        message = f'Unsupported value: "{policy}": supported values: {supported}'
        causes.append(Cause("FieldValueNotSupported", message, field))
    return causes
