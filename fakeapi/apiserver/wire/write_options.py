"""CreateOptions, UpdateOptions and PatchOptions: the query of a write, with upstream's validation.

Sources: k8s.io/apimachinery/pkg/apis/meta/v1/validation; managerOrUserAgent in
k8s.io/apiserver/pkg/endpoints/handlers/create.go.
"""

from __future__ import annotations

from typing import Final

from fakeapi.apiserver.wire.errors import (
    Cause,
    forbidden_field,
    invalid,
    invalid_value,
    required,
    too_long,
    unsupported_value,
)
from fakeapi.apiserver.wire.http_messages import Request
from fakeapi.apiserver.wire.request_bodies import media_type
from fakeapi.apiserver.wire.request_options import dry_run_errors, read_flag

APPLY_PATCH: Final = "application/apply-patch+yaml"
MAX_BYTES: Final = 128

_FIELD: Final = "fieldManager"
_OPTIONS: Final = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}
_LEVELS: Final = ("", "Ignore", "Strict", "Warn")
_CHECKED: Final = frozenset((_FIELD, "dryRun", "fieldValidation", "force"))


def check_write_options(request: Request) -> None:
    """Raise StatusError (422) for invalid options of a create, update or patch."""
    kind = _OPTIONS.get(request.method)
    if kind is None:
        return
    causes = _patch_errors(request) if kind == "PatchOptions" else []
    if not _CHECKED.isdisjoint(request.query):
        causes += _errors(request)
    if causes:
        raise invalid(f"{kind}.meta.k8s.io", "", causes)


def is_dry_run(request: Request) -> bool:
    """Return whether a create, update or patch is a dry run.

    A delete may request a dry run in its body, too: see ``parse_delete_options``.
    """
    return request.method in _OPTIONS and bool(request.query.get("dryRun"))


def field_manager_of(request: Request) -> str:
    """Return the field manager of a create, update or patch."""
    return request.query.get(_FIELD, "") or _from_user_agent(request.user_agent)


def apply_manager_of(request: Request) -> tuple[str, bool]:
    """Return the field manager of an apply, and whether it is forced."""
    return request.query.get(_FIELD, ""), bool(read_flag(request.query, "force"))


def _patch_errors(request: Request) -> list[Cause]:
    applies = media_type(request.content_type) == APPLY_PATCH
    if not applies and "force" in request.query:
        return [forbidden_field("force", "may not be specified for non-apply patch")]
    if applies and not request.query.get(_FIELD):
        return [required(_FIELD, "is required for apply patch")]
    return []


def _errors(request: Request) -> list[Cause]:
    query = request.query
    causes = _manager_errors(query.get(_FIELD, ""))
    if "dryRun" in query:
        causes += dry_run_errors([query["dryRun"]])
    level = query.get("fieldValidation", "")
    if level not in _LEVELS:
        causes.append(unsupported_value("fieldValidation", level, _LEVELS))
    return causes


def _manager_errors(name: str) -> list[Cause]:
    causes = []
    if len(name.encode()) > MAX_BYTES:
        causes.append(too_long(_FIELD, MAX_BYTES))
    for character in name:
        if not character.isprintable():
            position = len(name.partition(character)[0].encode())
            detail = f"invalid character U+{ord(character):04X} (at position {position})"
            causes.append(invalid_value(_FIELD, name, detail))
    return causes


def _from_user_agent(agent: str) -> str:
    """Return the printable characters before the slash, truncated to the maximum length."""
    printable = "".join(filter(str.isprintable, agent.partition("/")[0])).encode()
    return printable[:MAX_BYTES].decode(errors="ignore")
