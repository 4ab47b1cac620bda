"""The ``reprieve`` command without fakeapi: ``python -m extender``.

It has every command of :mod:`extender.cli`, but no embedded cluster.
"""

from __future__ import annotations

from typing import NoReturn

from extender.terminal.process_exit import run_process


def run() -> None:
    """Run the command line."""
    from extender.cli.root_command import (  # slow: signals have to be handled before
        build_command_line,
        run_command_line,
    )

    run_command_line(build_command_line(no_cluster))


def no_cluster(name: str) -> NoReturn:
    """Raise ConfigError: no scenario's cluster can be embedded without fakeapi."""
    from extender.config.strict_decoding import ConfigError

    raise ConfigError(
        f"--embedded: {name!r} requires fakeapi, which this command does not include; "
        "expected --server or --kubeconfig"
    )


if __name__ == "__main__":
    run_process(run)
