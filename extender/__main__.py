"""The ``reprieve`` command without fakeapi: ``python -m extender``.

It has every command of :mod:`extender.cli`, but no embedded cluster.
"""

from __future__ import annotations

from typing import NoReturn

from extender.terminal.process_exit import run_process


def run() -> None:
    """Run the command line."""
    # Slow: signals have to be handled before.
    from extender.cli.root_command import extender_commands
    from extender.terminal.command_groups import command_line, run_command_line

    run_command_line(command_line(extender_commands(no_cluster, no_unknown_fields)))


def no_unknown_fields(_manifest: bytes) -> tuple[str, ...]:
    """Return nothing: the fields of kinds are known to fakeapi."""
    return ()


def no_cluster(name: str) -> NoReturn:
    """Raise ConfigError: no scenario's cluster can be embedded without fakeapi."""
    from extender.config.strict_decoding import ConfigError

    raise ConfigError(
        f"--embedded: {name!r} requires fakeapi, which this command does not include; "
        "expected --server or --kubeconfig"
    )


if __name__ == "__main__":
    run_process(run)
