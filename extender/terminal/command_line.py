"""What all commands share: options, their parsers, and the stop signal."""

from __future__ import annotations

import asyncio
import signal
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

import typer

from extender.terminal.output import OutputFormat


def parse_time_option(text: str) -> datetime:
    """Parse an RFC 3339 time of the command line; the zone is required."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise typer.BadParameter(f"{text!r}; expected a time such as 2026-01-02T15:04:05Z")
    return found


def parse_namespaced_name(text: str) -> str:
    """Validate that a text of the command line is NAMESPACE/NAME, and return it."""
    namespace, _, name = text.partition("/")
    if not namespace or not name or "/" in name:
        raise typer.BadParameter(f"{text!r}; expected NAMESPACE/NAME")
    return text


def parse_feature_gates(text: str) -> dict[str, bool]:
    """Parse feature gates of the command line: NAME=true,NAME=false."""
    found: dict[str, bool] = {}
    for each in split_names(text):
        name, _, value = each.partition("=")
        if not name or value not in _BOOLEANS:
            raise typer.BadParameter(f"{each!r}; expected NAME=true or NAME=false")
        found[name] = _BOOLEANS[value]
    return found


_BOOLEANS: Final = {"true": True, "false": False}


ClusterFilesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--cluster",
        metavar="FILE",
        help="Objects of the cluster; may be repeated. Default: the live cluster.",
    ),
]
PodOption = Annotated[
    str,
    typer.Option(
        "--pod",
        metavar="FILE|NS/NAME",
        help="The pod to schedule: in a file, also as a workload's template, or in the cluster.",
    ),
]
ConfigFileOption = Annotated[
    Path | None, typer.Option("--config", metavar="F", help="A configuration file, as for serve.")
]
KubeconfigOption = Annotated[
    Path | None, typer.Option("--kubeconfig", metavar="F", help="Kubeconfig of the cluster.")
]
ContextOption = Annotated[
    str | None, typer.Option("--context", metavar="C", help="Context of the kubeconfig.")
]
ServerOption = Annotated[
    str | None,
    typer.Option("--server", metavar="URL", help="URL of an API server without authentication."),
]
UpstreamOption = Annotated[
    str | None, typer.Option("--upstream", metavar="V", help="kube-scheduler release to follow.")
]
FeatureGatesOption = Annotated[
    dict[str, bool] | None,
    typer.Option(
        "--feature-gates",
        metavar="NAME=BOOL,…",
        parser=parse_feature_gates,
        help="Feature gates of that kube-scheduler.",
    ),
]
FiltersOption = Annotated[
    str | None, typer.Option("--filters", metavar="NAME,…", help="Run only these in-tree filters.")
]
OutputOption = Annotated[
    OutputFormat,
    typer.Option(
        "-o",
        "--output",
        help="wide: a table with all rows; name: one name per line; csv: rows of ledger commands;"
        " html: a page of backtest, explain preempt and replay.",
    ),
]
NowOption = Annotated[
    datetime | None,
    typer.Option(
        "--now",
        metavar="RFC3339",
        parser=parse_time_option,
        help="Time of the decision; default: now.",
    ),
]

EvictionHardOption = Annotated[
    list[str] | None,
    typer.Option("--eviction-hard", metavar="S", help="memory.available<500Mi,…"),
]
EvictionSoftOption = Annotated[
    list[str] | None,
    typer.Option("--eviction-soft", metavar="S", help="memory.available<1Gi,…"),
]
GracePeriodOption = Annotated[
    list[str] | None,
    typer.Option("--grace-period", metavar="S", help="memory.available=1m30s,…"),
]
MinimumReclaimOption = Annotated[
    list[str] | None,
    typer.Option("--minimum-reclaim", metavar="S", help="memory.available=100Mi,…"),
]
KubeletConfigOption = Annotated[
    str | None,
    typer.Option(
        "--kubelet-config",
        metavar="FILE",
        help="KubeletConfiguration, or the response of /configz.",
    ),
]
KubeletReleaseOption = Annotated[
    str | None, typer.Option("--upstream", metavar="V", help="kubelet release to follow.")
]


def split_names(names: str) -> list[str]:
    """Split a list that is separated by commas."""
    return [name.strip() for name in names.split(",") if name.strip()]


def stop_signal() -> asyncio.Event:
    """Return an event that SIGINT, SIGTERM and SIGHUP set from now on; SIGHUP not under nohup.

    The signals have no effect after the loop is closed, where asyncio would restore handlers that
    end the process with a traceback or without the exit code of the command.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def request_stop(_number: int, _frame: object) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(stop.set)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, request_stop)
    return stop
