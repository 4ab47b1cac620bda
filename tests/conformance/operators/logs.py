"""The errors in an operator's log, without those that it also logs about a real API server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

KnownErrors = Mapping[str, str]
"""The pattern of a line that is no error of the server → why an operator logs it."""

DELETED: Final = r'\\" not found'
"""The pattern of lines about an object, or its namespace, that was deleted meanwhile."""

_KLOG_ERROR: Final = re.compile(r"[EF]\d{4} ")
_LEVEL: Final = re.compile(r'(\bERROR\b|"level":"ERROR"|\bpanic: )')


def errors(log: Path, known: KnownErrors) -> list[str]:
    """Return the lines of klog, zap or slog that report an error, without the known ones."""
    return [
        line
        for line in log.read_text(errors="replace").splitlines()
        if (_KLOG_ERROR.match(line) or _LEVEL.search(line))
        and not any(re.search(pattern, line) for pattern in known)
    ]
