"""The version of Kubernetes that the server reports, and its health endpoints.

Clients adapt their behaviour to the version. ``/healthz``, ``/livez`` and ``/readyz`` are served as
a whole and check by check; ``?verbose`` lists the checks, ``?exclude=NAME`` leaves one out. Few
components of a server in one process can fail by themselves, so every check succeeds.

Sources: k8s.io/apimachinery/pkg/version, k8s.io/apiserver/pkg/server/healthz/healthz.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fakeapi.apiserver.wire.http_messages import TEXT, Request, Response

_FORM: Final = re.compile(r"v(\d+)\.(\d+)\.\d+([-+].*)?", re.ASCII)


class ServerVersionError(ValueError):
    """A text is not the name of a release."""


@dataclass(frozen=True, slots=True)
class ServerVersion:
    """A version by its full name, such as ``v1.37.0``."""

    name: str = "v1.37.0"

    def document(self) -> dict[str, Any]:
        """Return the document of ``/version``; raise ServerVersionError."""
        match = _FORM.fullmatch(self.name)
        if match is None:
            raise ServerVersionError(
                f"{self.name!r} is not a release; expected one such as v1.37.0"
            )
        major, minor = match[1], match[2]
        return {
            "major": major,
            "minor": minor,
            "emulationMajor": major,
            "emulationMinor": minor,
            "minCompatibilityMajor": major,
            "minCompatibilityMinor": str(max(int(minor) - 1, 0)),
            "gitVersion": self.name,
            "gitCommit": "",
            "gitTreeState": "clean",
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": "",
            "compiler": "",
            "platform": "linux/amd64",
        }


DEFAULT_SERVER_VERSION: Final = ServerVersion()

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
