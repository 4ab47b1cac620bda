"""Command-line options for control-plane components, and the files that options name."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from extender.config import ConfigError
from fakeapi.orders import parse_run

KubeconfigOut = Annotated[
    Path | None, typer.Option("--kubeconfig-out", metavar="F", help="Write a kubeconfig.")
]
KubeletScriptFile = Annotated[
    str, typer.Option("--kubelet", metavar="FILE", help="What simulated kubelets play.")
]
SchedulerConfig = Annotated[
    str,
    typer.Option("--scheduler-config", metavar="FILE", help="A KubeSchedulerConfiguration."),
]
UpstreamVersion = Annotated[
    str, typer.Option("--upstream", metavar="V", help="The kube-scheduler to follow: 1.34.")
]

_COMPONENT_NOUNS: Final = {"kubelet": "kubelets", "scheduler": "scheduler"}


def read_component_file(option: str, path: str, component: str, run: str) -> bytes:
    """Read the file of an option that needs a component.

    Return b"" for an empty path. Raise ConfigError and UnknownComponentError.
    """
    if not path:
        return b""
    check_component_runs(option, component, run)
    return read_option_file(option, path)


def check_scheduler_options(run: str, options: Mapping[str, str]) -> None:
    """Check the scheduler's options; raises ConfigError and UnknownComponentError."""
    for option, value in options.items():
        if value:
            check_component_runs(option, "scheduler", run)
    url = options["--extender"]
    if url and not url.startswith(("http://", "https://")):
        raise ConfigError(f"--extender: {url!r}; expected http://HOST:PORT, perhaps with a path")


def check_component_runs(option: str, component: str, run: str) -> None:
    """Check that an option's component runs; raises ConfigError, UnknownComponentError."""
    if component not in parse_run(run):
        nobody = f"no {_COMPONENT_NOUNS[component]} in --run {run}"
        raise ConfigError(f"{option}: {nobody}; expected '{component}' in it, or 'all'")


def read_option_file(option: str, file: str) -> bytes:
    """Read the file of an option ("-": standard input); raises ConfigError."""
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(f"{option}: {display_name(file)}: {error.strerror or error}") from None


def display_name(file: str) -> str:
    """Return the name of a file in messages."""
    return "standard input" if file == "-" else file
