"""``reprieve check-config``: every error of a configuration, before it is served."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from extender.cli.config_validation import load_serving_config, log_gate_warnings
from extender.kube.rest.clock import SystemClock

EXAMPLE: Final = "check-config reprieve.yaml"


def check_config(
    file: Annotated[Path, typer.Argument(metavar="F", help="A configuration file, as for serve.")],
) -> None:
    """Validate a configuration file, and print all of its errors."""
    log_gate_warnings(load_serving_config(file, {}, SystemClock()))
    print(f"{file}: valid")  # noqa: T201 - the answer
