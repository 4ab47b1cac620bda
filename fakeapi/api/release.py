"""The version of Kubernetes that the server reports; clients adapt their behaviour to it.

Source: k8s.io/apimachinery/pkg/version.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

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
