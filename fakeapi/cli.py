"""Entry point of the ``reprieve`` command.

Tests wait for ``fakeapi`` to start, and users wait for ``record`` and ``replay``. These commands
import only what they need. Garbage collection is disabled during the imports, because the modules
stay loaded. Afterwards the young generation is collected somewhat less often than by default:
serving one request allocates about as many objects as the default threshold, most of which are
still in use when the collection runs.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import partial
from typing import Final

YOUNG_GENERATION_THRESHOLD: Final = 10_000
"""Net allocations after which the garbage collector's young generation is collected."""


def main() -> None:
    """Run the command line."""
    gc.disable()
    run_command = _load_command(sys.argv[1] if len(sys.argv) > 1 else "")
    gc.freeze()
    gc.set_threshold(YOUNG_GENERATION_THRESHOLD)
    gc.enable()
    run_command()


def _load_command(name: str) -> Callable[[], None]:
    """Import and return the function that runs a command."""
    if name not in ("fakeapi", "controllers", "record", "replay"):
        from fakeapi.commands import run_commands

        return run_commands
    from fakeapi.alone import check_pod, run_single_command

    if name == "fakeapi":
        from fakeapi.serving import EXAMPLE, serve_fakeapi

        return partial(run_single_command, name, serve_fakeapi, EXAMPLE)
    if name == "controllers":
        from fakeapi.standalone import EXAMPLE as CONTROLLERS_EXAMPLE
        from fakeapi.standalone import controllers_command

        return partial(run_single_command, name, controllers_command(check_pod), CONTROLLERS_EXAMPLE)
    if name == "record":
        from extender.recording import command

        return partial(run_single_command, name, command.record_events, command.EXAMPLE)
    from fakeapi import replaycommand

    return partial(run_single_command, name, replaycommand.replay_events, replaycommand.EXAMPLE)
