"""The limit of open files, which bounds the connections of a server.

As Go's programs do, a server raises the soft limit at the start, since the usual one of 1,024 is
for programs that use ``select``.
"""

from __future__ import annotations

import resource
from typing import Final

from extender.config.strict_decoding import ConfigError

SPARE_FILES: Final = 64
"""Files that are not connections of clients: watches, certificates, the log."""
MANY_FILES: Final = 65_536


def raise_open_file_limit(wanted: int) -> int:
    """Raise the soft limit of open files to ``wanted`` if possible, and return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if most <= soft:
        return soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most


def require_open_files(connections: int) -> None:
    """Raise the limit for a number of concurrent calls; raise ConfigError if that is impossible.

    A server has up to two connections for each call (see
    :mod:`extender.secure_serving.connection_limits`).
    """
    needed = 2 * connections + SPARE_FILES
    limit = raise_open_file_limit(needed)
    if limit < needed:
        raise ConfigError(
            f"limits.connections: {connections} needs {needed} open files, and this process may "
            f"open {limit}; expected fewer connections, or a higher limit (ulimit -n)"
        )
