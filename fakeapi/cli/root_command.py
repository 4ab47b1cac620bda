"""All commands of ``reprieve``: those of the extender, and those that need fakeapi.

The young generation is collected somewhat less often than by default: serving one request allocates
about as many objects as the default threshold, most of which are still in use when the collection
runs.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final

import typer

from extender.cli.root_command import extender_commands
from extender.terminal.command_groups import (
    LazyCommand,
    command_group,
    command_line,
    run_command_line,
    single_command,
)

if TYPE_CHECKING:
    from extender.cli.serve_command import EmbeddedCluster

YOUNG_GENERATION_THRESHOLD: Final = 10_000
"""Net allocations after which the garbage collector's young generation is collected."""


def main() -> None:
    """Run the command line."""
    gc.set_threshold(YOUNG_GENERATION_THRESHOLD)
    run_command_line(command_line(all_commands()))


def all_commands() -> tuple[LazyCommand, ...]:
    """Return the commands, each of which is imported when it runs."""
    return (
        *extender_commands(start_embedded, unknown_fields),
        LazyCommand("fakeapi", "Serve a Kubernetes API from this process.", _fakeapi),
        LazyCommand(
            "controllers", "Run the workload controllers against an API server.", _controllers
        ),
        LazyCommand(
            "replay",
            "Play a recording into a new fakeapi, and report the differences at the end.",
            _replay,
        ),
        LazyCommand(
            "backtest",
            "Simulate a workload under preemption policies, and report how they differ.",
            _backtest,
        ),
        LazyCommand(
            "tune", "Search better orders and weights of a policy's criteria by backtests.", _tune
        ),
        LazyCommand("validate", "Validate objects as webhooks do; no server needed.", _validate),
        LazyCommand(
            "demo", "Show what Reprieve does; fails if a step of the loop does not complete.", _demo
        ),
    )


def start_embedded(name: str) -> AbstractAsyncContextManager[EmbeddedCluster]:
    """Start the cluster of ``serve --embedded``, which is imported only for it."""
    from fakeapi.cli.embedded_cluster import embedded_cluster

    return embedded_cluster(name)


def check_pod(pod: Mapping[str, Any]) -> Iterable[tuple[str, str, str]]:
    """Validate a pod as the API server does, which is imported only where a pod is validated."""
    from fakeapi.apiserver.validation.object_validation import pod_spec_errors

    return pod_spec_errors(pod)


def unknown_fields(manifest: bytes) -> Iterable[str]:
    """Return a line for each field that the manifest's kind does not have."""
    from fakeapi.apiserver.schema.unknown_fields import unknown_fields as find_unknown_fields

    return find_unknown_fields(manifest)


def _fakeapi() -> typer.Typer:
    from fakeapi.cli.serve_command import EXAMPLE, serve_fakeapi

    return single_command(serve_fakeapi, EXAMPLE)


def _controllers() -> typer.Typer:
    from extender.controllers.process.command import EXAMPLE, controllers_command

    return single_command(controllers_command(check_pod), EXAMPLE)


def _replay() -> typer.Typer:
    from fakeapi.cli.replay_command import EXAMPLE, replay_events

    return single_command(replay_events, EXAMPLE)


def _backtest() -> typer.Typer:
    from fakeapi.backtest.command import EXAMPLE, run_backtest

    return single_command(run_backtest, EXAMPLE)


def _tune() -> typer.Typer:
    from fakeapi.backtest.tuning.command import EXAMPLE, tune_policy

    return single_command(tune_policy, EXAMPLE)


def _validate() -> typer.Typer:
    return command_group(
        "Validate objects as webhooks do; no server needed.",
        "validate workloadspread spread.yaml --cluster c.yaml",
        (
            LazyCommand(
                "workloadspread",
                "Validate a WorkloadSpread by OpenKruise's rules; the output has all errors.",
                _validate_workloadspread,
            ),
        ),
    )


def _validate_workloadspread() -> typer.Typer:
    from extender.cli.workloadspread_commands import (
        VALIDATE_EXAMPLE,
        validate_workloadspread_command,
    )

    return single_command(validate_workloadspread_command(check_pod), VALIDATE_EXAMPLE)


def _demo() -> typer.Typer:
    from fakeapi.demo.command import EXAMPLE, show_demo

    return single_command(show_demo, EXAMPLE)
