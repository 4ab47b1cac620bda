"""The commands that do not need fakeapi, each imported when it runs.

A usage error exits with code 2 and one line on stderr.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from extender.terminal.command_groups import LazyCommand, command_group, single_command

if TYPE_CHECKING:
    from extender.cli.serve_command import StartEmbedded


def extender_commands(embed: StartEmbedded) -> tuple[LazyCommand, ...]:
    """Return the commands; ``embed`` starts the cluster of ``serve --embedded``."""

    def serve() -> typer.Typer:
        from extender.cli.serve_command import EXAMPLE, serve_command

        return single_command(serve_command(embed), EXAMPLE)

    return (
        LazyCommand("explain", "Explain a decision; no server needed.", _explain),
        LazyCommand("advise", "Forecast evictions in a live cluster.", _advise),
        LazyCommand(
            "check-config", "Validate a configuration file, and print all of its errors.", _check
        ),
        LazyCommand("serve", "Answer kube-scheduler's filter and preempt calls.", serve),
        LazyCommand(
            "record",
            "Record the objects and events of an API server, for reprieve replay.",
            _record,
        ),
    )


def _explain() -> typer.Typer:
    return command_group(
        "Explain a decision; no server needed.",
        "explain preempt --cluster c.yaml --pod p.yaml",
        (
            LazyCommand(
                "filter",
                "Show the nodes on which a pod fits now, and why each other node is rejected.",
                _explain_filter,
            ),
            LazyCommand(
                "preempt",
                "Show which pods would be preempted for a pod, which are reprieved, and why.",
                _explain_preempt,
            ),
            LazyCommand(
                "scaledown",
                "Show which pods a ReplicaSet would delete first when it is scaled down, and why.",
                _explain_scaledown,
            ),
            LazyCommand(
                "evict",
                "Show which pods the kubelet would evict from a node under pressure, and in which "
                "order.",
                _explain_evict,
            ),
            LazyCommand(
                "spread",
                "Show the subset of each pod of a workload, which pods are deleted first and why.",
                _explain_spread,
            ),
        ),
    )


def _explain_filter() -> typer.Typer:
    from extender.cli.explain_commands import FILTER_EXAMPLE, explain_filter_command

    return single_command(explain_filter_command, FILTER_EXAMPLE)


def _explain_preempt() -> typer.Typer:
    from extender.cli.explain_commands import PREEMPT_EXAMPLE, explain_preempt_command

    return single_command(explain_preempt_command, PREEMPT_EXAMPLE)


def _explain_scaledown() -> typer.Typer:
    from extender.cli.explain_commands import SCALEDOWN_EXAMPLE, explain_scaledown_command

    return single_command(explain_scaledown_command, SCALEDOWN_EXAMPLE)


def _explain_evict() -> typer.Typer:
    from extender.eviction.command import EVICT_EXAMPLE, explain_evict

    return single_command(explain_evict, EVICT_EXAMPLE)


def _explain_spread() -> typer.Typer:
    from extender.cli.workloadspread_commands import SPREAD_EXAMPLE, explain_spread_command

    return single_command(explain_spread_command, SPREAD_EXAMPLE)


def _advise() -> typer.Typer:
    from extender.eviction.advise.command import ADVISE_EXAMPLE

    summary = "Show which nodes are expected to evict pods, how soon, and which pods."
    return command_group(
        "Forecast evictions in a live cluster.",
        ADVISE_EXAMPLE,
        (LazyCommand("eviction", summary, _advise_eviction),),
    )


def _advise_eviction() -> typer.Typer:
    from extender.eviction.advise.command import ADVISE_EXAMPLE, advise_eviction

    return single_command(advise_eviction, ADVISE_EXAMPLE)


def _check() -> typer.Typer:
    from extender.cli.config_validation import EXAMPLE, check_config

    return single_command(check_config, EXAMPLE)


def _record() -> typer.Typer:
    from extender.recording.command import EXAMPLE, record_events

    return single_command(record_events, EXAMPLE)
