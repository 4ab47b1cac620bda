"""The commands that do not need fakeapi, each imported when it runs.

A usage error exits with code 2 and one line on stderr.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

import typer

from extender.terminal.command_groups import LazyCommand, command_group, single_command
from extender.terminal.program import log_warnings

if TYPE_CHECKING:
    from extender.cli.serve_command import StartEmbedded
    from extender.explain.cluster_objects import WarnAboutFields
    from extender.kube.decoders.manifests import Manifest

_LEDGER_SUMMARY: Final = "List, show and count the decisions of a ledger."
_POLICY_SUMMARY: Final = "Check and show preemption policies; no server needed."

FindUnknownFields = Callable[[bytes], Iterable[str]]


def extender_commands(
    embed: StartEmbedded, unknown_fields: FindUnknownFields
) -> tuple[LazyCommand, ...]:
    """Return the commands; ``embed`` starts the cluster of ``serve --embedded``.

    ``unknown_fields`` yields a line for each field of a manifest that its kind does not have.
    """

    def serve() -> typer.Typer:
        from extender.cli.serve_command import EXAMPLE, serve_command

        return single_command(serve_command(embed), EXAMPLE)

    return (
        LazyCommand(
            "explain", "Explain a decision; no server needed.", partial(_explain, unknown_fields)
        ),
        LazyCommand("advise", "Forecast evictions in a live cluster.", _advise),
        LazyCommand(
            "check-config", "Validate a configuration file, and print all of its errors.", _check
        ),
        LazyCommand("ledger", _LEDGER_SUMMARY, _ledger),
        LazyCommand(
            "mcp",
            "Serve tools to agents and scripts by the Model Context Protocol; they only read.",
            partial(_mcp, unknown_fields),
        ),
        LazyCommand("policy", _POLICY_SUMMARY, _policy),
        LazyCommand("serve", "Answer kube-scheduler's filter and preempt calls.", serve),
        LazyCommand(
            "record",
            "Record the objects and events of an API server, for reprieve replay.",
            _record,
        ),
        LazyCommand(
            "why",
            "Show why a pod was preempted, or which pods it preempted, and what followed.",
            _why,
        ),
    )


def _explain(unknown_fields: FindUnknownFields) -> typer.Typer:
    warn = partial(_warn_about_fields, unknown_fields)
    return command_group(
        "Explain a decision; no server needed.",
        "explain preempt --cluster c.yaml --pod p.yaml",
        (
            LazyCommand(
                "filter",
                "Show the nodes on which a pod fits now, and why each other node is rejected.",
                partial(_explain_filter, warn),
            ),
            LazyCommand(
                "preempt",
                "Show which pods would be preempted for a pod, which are reprieved, and why.",
                partial(_explain_preempt, warn),
            ),
            LazyCommand(
                "scaledown",
                "Show which pods a ReplicaSet would delete first when it is scaled down, and why.",
                partial(_explain_scaledown, warn),
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
                partial(_explain_spread, warn),
            ),
        ),
    )


def _explain_filter(warn: WarnAboutFields) -> typer.Typer:
    from extender.cli.explain_commands import FILTER_EXAMPLE, explain_filter_command

    return single_command(explain_filter_command(warn), FILTER_EXAMPLE)


def _explain_preempt(warn: WarnAboutFields) -> typer.Typer:
    from extender.cli.explain_commands import PREEMPT_EXAMPLE, explain_preempt_command

    return single_command(explain_preempt_command(warn), PREEMPT_EXAMPLE)


def _explain_scaledown(warn: WarnAboutFields) -> typer.Typer:
    from extender.cli.explain_commands import SCALEDOWN_EXAMPLE, explain_scaledown_command

    return single_command(explain_scaledown_command(warn), SCALEDOWN_EXAMPLE)


def _explain_evict() -> typer.Typer:
    from extender.eviction.command import EVICT_EXAMPLE, explain_evict

    return single_command(explain_evict, EVICT_EXAMPLE)


def _explain_spread(warn: WarnAboutFields) -> typer.Typer:
    from extender.cli.workloadspread_commands import SPREAD_EXAMPLE, explain_spread_command

    return single_command(explain_spread_command(warn), SPREAD_EXAMPLE)


def _warn_about_fields(unknown_fields: FindUnknownFields, manifests: Iterable[Manifest]) -> None:
    """Print a line for each unknown field, up to a limit."""
    found = (
        f"{manifest.source}: {line}"
        for manifest in manifests
        for line in unknown_fields(manifest.raw)
    )
    log_warnings(found, "unknown fields")


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


def _mcp(unknown_fields: FindUnknownFields) -> typer.Typer:
    from extender.cli.mcp_command import EXAMPLE, mcp_command

    return single_command(mcp_command(unknown_fields), EXAMPLE)


def _policy() -> typer.Typer:
    return command_group(
        _POLICY_SUMMARY,
        "policy check policy.yaml",
        (
            LazyCommand(
                "check", "Validate a policy file, and print all of its errors.", _policy_check
            ),
            LazyCommand("show", "Show a policy with all of its defaults.", _policy_show),
            LazyCommand("schema", "Print the JSON Schema of policy files.", _policy_schema),
        ),
    )


def _policy_check() -> typer.Typer:
    from extender.cli.policy_commands import CHECK_EXAMPLE, check_policy

    return single_command(check_policy, CHECK_EXAMPLE)


def _policy_show() -> typer.Typer:
    from extender.cli.policy_commands import SHOW_EXAMPLE, show_policy

    return single_command(show_policy, SHOW_EXAMPLE)


def _policy_schema() -> typer.Typer:
    from extender.cli.policy_commands import SCHEMA_EXAMPLE, print_policy_schema

    return single_command(print_policy_schema, SCHEMA_EXAMPLE)


def _record() -> typer.Typer:
    from extender.recording.command import EXAMPLE, record_events

    return single_command(record_events, EXAMPLE)


def _why() -> typer.Typer:
    from extender.cli.why_command import EXAMPLE, why

    return single_command(why, EXAMPLE)


def _ledger() -> typer.Typer:
    return command_group(
        _LEDGER_SUMMARY,
        "ledger list --ledger ledger.db",
        (
            LazyCommand("list", "List decisions, the newest first.", _ledger_list),
            LazyCommand("show", "Show everything that is kept of a decision.", _ledger_show),
            LazyCommand(
                "stats",
                "Count preempted pods, lost work, violated budgets, outcomes, and differences.",
                _ledger_stats,
            ),
            LazyCommand(
                "diff",
                "Compare decisions with those of shadow policies on the same state.",
                _ledger_diff,
            ),
            LazyCommand("export", "Write decisions as Parquet files, by day.", _ledger_export),
        ),
    )


def _ledger_list() -> typer.Typer:
    from extender.cli.ledger_commands import LIST_EXAMPLE, list_decisions

    return single_command(list_decisions, LIST_EXAMPLE)


def _ledger_show() -> typer.Typer:
    from extender.cli.ledger_commands import SHOW_EXAMPLE, show_decision

    return single_command(show_decision, SHOW_EXAMPLE)


def _ledger_stats() -> typer.Typer:
    from extender.cli.ledger_commands import STATS_EXAMPLE, show_statistics

    return single_command(show_statistics, STATS_EXAMPLE)


def _ledger_diff() -> typer.Typer:
    from extender.cli.ledger_diff_command import DIFF_EXAMPLE, show_differences

    return single_command(show_differences, DIFF_EXAMPLE)


def _ledger_export() -> typer.Typer:
    from extender.cli.ledger_export_command import EXPORT_EXAMPLE, export_decisions

    return single_command(export_decisions, EXPORT_EXAMPLE)
