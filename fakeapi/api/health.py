"""Health endpoints: ``/healthz``, ``/livez`` and ``/readyz``, as a whole and check by check.

``?verbose`` lists the checks, ``?exclude=NAME`` leaves one out. Few components of a server in one
process can fail by themselves, so every check succeeds.

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


def serve_health(request: Request) -> Response | None:
    """Serve a health path; return None for other paths and unknown checks."""
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
