"""Runs one command without loading the others, for commands whose start-up time matters."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import typer
from typer.exceptions import TyperException

from extender.config import ConfigError
from extender.console import exit_with_errors, log_to_stderr
from extender.kube.connection import ConnectionConfigError
from extender.kube.manifests import ManifestError


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
    from fakeapi.api.podspecs import pod_spec_errors

    return pod_spec_errors(pod)
