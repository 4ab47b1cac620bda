"""The whole ``reprieve`` command."""

from __future__ import annotations

from extender.terminal.process_exit import run_process


def main() -> None:
    """Run the command line, and end the process."""
    run_process(_run)


def _run() -> None:
    from fakeapi.cli.root_command import main as run  # slow: signals have to be handled before

    run()
