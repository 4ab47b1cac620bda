"""Health: ``/healthz``, ``/livez`` and ``/readyz``, as a whole and check by check.

``?verbose`` lists the checks, ``?exclude=NAME`` leaves one out. A server in one process has few
things that can fail by themselves, so whoever is answered at all is told that all is well.

Source: k8s.io/apiserver/pkg/server/healthz/healthz.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from fakeapi.api.messages import TEXT, Request, Response

_ALIVE: Final = ("ping", "log", "etcd")

CHECKS: Final[Mapping[str, Sequence[str]]] = {
    "healthz": _ALIVE,
    "livez": _ALIVE,
    "readyz": (*_ALIVE, "etcd-readiness", "informer-sync", "shutdown"),
}


def check_health(request: Request) -> Response | None:
    """Answer a health path; None if it is none, or names no check."""
    group, _, check = request.path.strip("/").partition("/")
    if group not in CHECKS or (check and check not in CHECKS[group]):
        return None
    if check or "verbose" not in request.query:
        return _text("ok")
    excluded = request.query.get("exclude", "")
    lines = [
        f"[+]{name} {'excluded: ok' if name == excluded else 'ok'}\n" for name in CHECKS[group]
    ]
    if excluded and excluded not in CHECKS[group]:
        unknown = f'warn: some health checks cannot be excluded: no matches for "{excluded}"\n'
        lines.append(unknown)
    return _text("".join(lines) + f"{group} check passed\n")


def _text(text: str) -> Response:
    return Response(200, text.encode(), TEXT, headers={"X-Content-Type-Options": "nosniff"})
