"""Field managers: the name that a request writes under.

The query names the field manager. An update without it uses the first part of the User-Agent, up to
the slash. An apply must name it.

Source: k8s.io/apiserver/pkg/endpoints/handlers/create.go (managerOrUserAgent),
k8s.io/apimachinery/pkg/apis/meta/v1/validation.
"""

from __future__ import annotations

from typing import Final

from fakeapi.api.causes import forbidden_field, invalid_value, required
from fakeapi.api.errors import Cause, invalid
from fakeapi.api.messages import Request
from fakeapi.api.options import read_flag

APPLY_PATCH: Final = "application/apply-patch+yaml"
MAX_BYTES: Final = 128

_FIELD: Final = "fieldManager"
_OPTIONS: Final = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}


def field_manager_of(request: Request) -> str:
    """Return the field manager of a create, update or patch; raise StatusError (422)."""
    named = request.query.get(_FIELD, "")
    causes = _manager_errors(named)
    if "force" in request.query and request.method == "PATCH":
        causes.insert(0, forbidden_field("force", "may not be specified for non-apply patch"))
    _check(request, causes)
    return named or _from_user_agent(request.user_agent)


def apply_manager_of(request: Request) -> tuple[str, bool]:
    """Return the field manager of an apply, and whether it is forced; raise StatusError (422)."""
    named = request.query.get(_FIELD, "")
    missing = [] if named else [required(_FIELD, "is required for apply patch")]
    _check(request, missing + _manager_errors(named))
    return named, bool(read_flag(request.query, "force"))


def _check(request: Request, causes: list[Cause]) -> None:
    if causes:
        raise invalid(f"{_OPTIONS[request.method]}.meta.k8s.io", "", causes)


def _manager_errors(name: str) -> list[Cause]:
    causes = []
    if len(name.encode()) > MAX_BYTES:
        message = f"Too long: may not be more than {MAX_BYTES} bytes"
        causes.append(Cause("FieldValueTooLong", message, _FIELD))
    for character in name:
        if not character.isprintable():
            position = len(name.partition(character)[0].encode())
            detail = f"invalid character U+{ord(character):04X} (at position {position})"
            causes.append(invalid_value(_FIELD, name, detail))
    return causes


def _from_user_agent(agent: str) -> str:
    """Return the printable characters before the slash, truncated to the maximum length."""
    shown = "".join(filter(str.isprintable, agent.partition("/")[0])).encode()
    return shown[:MAX_BYTES].decode(errors="ignore")
