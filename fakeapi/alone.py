"""One command without the others, for those that are started often or are waited for."""

from __future__ import annotations

import sys
from collections.abc import Callable

import typer
from typer.exceptions import TyperException

from extender.config import ConfigError
from extender.console import log_to_stderr, refuse
from extender.kube.manifests import ManifestError


def run_alone(name: str, command: Callable[..., None], example: str) -> None:
    """Run ``reprieve NAME …`` as :func:`fakeapi.commands.run_commands` would."""
    log_to_stderr()
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(name, epilog=example)(command)
    try:
        code = app(sys.argv[2:], prog_name=f"reprieve {name}", standalone_mode=False)
    except TyperException as error:
        refuse(f"{error.format_message().rstrip('.')}; see reprieve {name} --help")
    except (ConfigError, ManifestError) as error:
        refuse(str(error))
    sys.exit(code)
