"""The ``reprieve`` command without fakeapi: ``python -m extender``, where only that is wanted.

It has every command of :mod:`extender.cli`; there is no cluster to embed.
"""

from __future__ import annotations

from typing import NoReturn

from extender.cli import build, run
from extender.config import ConfigError


def no_cluster(name: str) -> NoReturn:
    """Refuse to embed the cluster of a scenario, whatever its name. Raises ConfigError."""
    raise ConfigError(
        f"--embedded: {name!r} needs fakeapi, which is not part of this command; "
        "expected --server or --kubeconfig"
    )


if __name__ == "__main__":
    run(build(no_cluster))
