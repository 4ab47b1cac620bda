"""Where the ``reprieve`` command begins.

``fakeapi`` is started by tests that wait for it, ``record`` and ``replay`` by people who do: they
begin without what only other commands need, and without looking for garbage among the modules that
are being imported, which all stay. Later all commands look for it a little less often than usual:
to serve one request makes about as many objects as there are by default between two looks, most of
which are still in use when it comes.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import partial
from typing import Final

YOUNG_OBJECTS: Final = 10_000
"""How many objects more there must be before garbage is looked for among the newest."""


def main() -> None:
    """Run the command line."""
    gc.disable()
    run_command = _command(sys.argv[1] if len(sys.argv) > 1 else "")
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
    gc.enable()
    run_command()


def _command(name: str) -> Callable[[], None]:
    """Load what a command needs, and give it."""
    if name not in ("fakeapi", "record", "replay"):
        from fakeapi.commands import run_commands

        return run_commands
    from fakeapi.alone import run_alone

    if name == "fakeapi":
        from fakeapi.serving import EXAMPLE, serve_fakeapi

        return partial(run_alone, name, serve_fakeapi, EXAMPLE)
    if name == "record":
        from extender.recording import command

        return partial(run_alone, name, command.record_events, command.EXAMPLE)
    from fakeapi import replaycommand

    return partial(run_alone, name, replaycommand.replay_events, replaycommand.EXAMPLE)
