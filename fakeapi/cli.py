"""Where the ``reprieve`` command begins.

``fakeapi`` is started by tests that wait for it: it begins without what only other commands need,
and without looking for garbage among the modules that are being imported, which all stay.
"""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run the command line."""
    gc.disable()
    if sys.argv[1:2] == ["fakeapi"]:
        from fakeapi.serving import run_alone as run_command
    else:
        from fakeapi.commands import run_commands as run_command
    gc.freeze()
    gc.enable()
    run_command()
