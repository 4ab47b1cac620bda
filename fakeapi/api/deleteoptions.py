"""DeleteOptions of a request, from its body or, without one, from its query.

Source: k8s.io/apiserver/pkg/endpoints/handlers/delete.go, k8s.io/apimachinery/pkg/apis/meta/v1
(DeleteOptions) and its validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fakeapi.api.errors import Cause, bad_request, invalid
from fakeapi.api.options import dry_run_errors, parse_integer, read_flag

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
    given = dict(body) if body else _from_query(query)
    _check_types(given)
    causes = [*_policy_errors(given), *dry_run_errors(given.get("dryRun") or [])]
    if causes:
        raise invalid(_QUALIFIED, "", causes)
    preconditions = given.get("preconditions") or {}
    return DeleteOptions(
        grace_seconds=given.get("gracePeriodSeconds"),
        uid=preconditions.get("uid"),
        version=preconditions.get("resourceVersion"),
        propagation=given.get("propagationPolicy") or "",
        orphan_dependents=given.get("orphanDependents"),
        dry_run=bool(given.get("dryRun")),
        unsafe=bool(given.get(_UNSAFE)),
    )


def check_collection_options(options: DeleteOptions) -> None:
    """Raise StatusError (422) for options that are valid for single objects only."""
    if options.unsafe:
        why = "is not allowed with DELETECOLLECTION, try again after removing the option"
        cause = Cause("FieldValueInvalid", f"Invalid value: true: {why}", _UNSAFE)
        raise invalid(_QUALIFIED, "", [cause])


def check_eviction_options(name: str, options: DeleteOptions) -> None:
    """Raise StatusError (422) for options that an eviction may not have; ``name`` is the pod's."""
    if options.unsafe:
        why = "can not be set for pod eviction, try after removing the option"
        field = f"deleteOptions.{_UNSAFE}"
        cause = Cause("FieldValueInvalid", f"Invalid value: true: {why}", field)
        raise invalid("Eviction.policy", name, [cause])


def _from_query(query: Mapping[str, str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if query.get("gracePeriodSeconds"):
        given["gracePeriodSeconds"] = parse_integer(query["gracePeriodSeconds"])
    if query.get("propagationPolicy"):
        given["propagationPolicy"] = query["propagationPolicy"]
    if query.get("dryRun"):
        given["dryRun"] = [query["dryRun"]]
    for name in ("orphanDependents", _UNSAFE):
        flag = read_flag(query, name)
        if flag is not None:
            given[name] = flag
    return given


def _check_types(given: Mapping[str, Any]) -> None:
    kind = given.get("kind") or _KIND
    if kind != _KIND:
        version = given.get("apiVersion") or "v1"
        raise bad_request(f'no kind "{kind}" is registered for version "{version}"')
    for name, (wanted, go_type) in _TYPES.items():
        value = given.get(name)
        if value is None:
            continue
        if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            raise _wrong_type(name, value, go_type)
    for name, value in (given.get("preconditions") or {}).items():
        if not isinstance(value, str | None):
            raise _wrong_type(f"preconditions.{name}", value, "string")


def _wrong_type(where: str, value: Any, go_type: str) -> Exception:
    names = {bool: "bool", int: "number", float: "number", str: "string", list: "array"}
    json_type = names.get(type(value), "object")
    return bad_request(
        f"json: cannot unmarshal {json_type} into Go struct field {_KIND}.{where} of type {go_type}"
    )


def _policy_errors(given: Mapping[str, Any]) -> list[Cause]:
    policy = given.get("propagationPolicy")
    field = "propagationPolicy"
    causes = []
    if policy is not None and given.get("orphanDependents") is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        causes.append(Cause("FieldValueInvalid", f'Invalid value: "{policy}": {why}', field))
    if policy is not None and policy not in _POLICIES:
        known = ", ".join(f'"{name}"' for name in (*_POLICIES, "nil"))
        message = f'Unsupported value: "{policy}": supported values: {known}'
        causes.append(Cause("FieldValueNotSupported", message, field))
    return causes
