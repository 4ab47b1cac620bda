"""Entry point of the ``reprieve`` command.

Tests wait for ``fakeapi`` to start, and users wait for ``record`` and ``replay``. So these commands
run without loading the others, and import only what they need. Garbage collection is disabled
during the imports, because the modules stay loaded. Afterwards the young generation is collected
somewhat less often than by default: serving one request allocates about as many objects as the
default threshold, most of which are still in use when the collection runs.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

import typer
from typer.exceptions import TyperException

from extender.config.strict_decoding import ConfigError
from extender.kube.decoders.manifests import ManifestError
from extender.kube.rest.api_errors import ConnectionConfigError
from extender.terminal.command_line import exit_with_errors, log_to_stderr

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
    if name not in ("fakeapi", "controllers", "record", "replay"):
        from fakeapi.cli.commands import run_commands

        return run_commands

    if name == "fakeapi":
        from fakeapi.cli.serve_command import EXAMPLE, serve_fakeapi

        return partial(run_single_command, name, serve_fakeapi, EXAMPLE)
    if name == "controllers":
        from extender.controllers.process.command import EXAMPLE as CONTROLLERS_EXAMPLE
        from extender.controllers.process.command import controllers_command

        return partial(
            run_single_command, name, controllers_command(check_pod), CONTROLLERS_EXAMPLE
        )
    if name == "record":
        from extender.recording import command

        return partial(run_single_command, name, command.record_events, command.EXAMPLE)
    from fakeapi.cli import replay_command

    return partial(run_single_command, name, replay_command.replay_events, replay_command.EXAMPLE)


def run_single_command(name: str, command: Callable[..., None], example: str) -> None:
    """Run ``reprieve NAME …`` as :func:`fakeapi.cli.commands.run_commands` would."""
    log_to_stderr()
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(name, epilog=example)(command)
    try:
        code = app(sys.argv[2:], prog_name=f"reprieve {name}", standalone_mode=False)
    except TyperException as error:
        exit_with_errors(f"{error.format_message().rstrip('.')}; see reprieve {name} --help")
    except (ConfigError, ConnectionConfigError, ManifestError) as error:
        exit_with_errors(str(error))
    sys.exit(code)


def check_pod(pod: Mapping[str, Any]) -> Iterable[tuple[str, str, str]]:
    """Validate a pod as the API server does, which is imported only where a pod is validated."""
    from fakeapi.apiserver.validation.object_validation import pod_spec_errors

    return pod_spec_errors(pod)
