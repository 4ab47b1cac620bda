"""The command ``advise eviction`` and its options; its imports are deferred until it runs."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from extender.terminal.command_line import KubeconfigOption, OutputOption, ServerOption

ADVISE_EXAMPLE: Final = "advise eviction --kubeconfig ~/.kube/config --watch"

_Texts = list[str] | None


def advise_eviction(
    kubeconfig: KubeconfigOption = None,
    server: ServerOption = None,
    node: Annotated[
        str | None, typer.Option("--node", metavar="N", help="Only this node; default: all.")
    ] = None,
    watch: Annotated[  # noqa: FBT002 - a flag of the command line
        bool, typer.Option("--watch", help="Look again and again, until interrupted.")
    ] = False,
    interval: Annotated[
        str, typer.Option("--interval", metavar="DURATION", help="From one look to the next.")
    ] = "15s",
    samples: Annotated[
        int | None,
        typer.Option(
            "--samples", metavar="N", min=1, help="Looks before one answer; default 2, to act 5."
        ),
    ] = None,
    top: Annotated[
        int, typer.Option("--top", metavar="N", min=1, help="Nodes that -o text shows.")
    ] = 10,
    concurrency: Annotated[
        int,
        typer.Option(
            "--concurrency", metavar="N", min=1, max=100, help="Kubelets asked at a time."
        ),
    ] = 32,
    cordon_and_evict: Annotated[  # noqa: FBT002
        bool,
        typer.Option(
            "--cordon-and-evict",
            help="Relieve nodes that hit a hard threshold --within a time; without --yes, only "
            "say how.",
        ),
    ] = False,
    within: Annotated[
        str | None, typer.Option("--within", metavar="DURATION", help="How far to look ahead.")
    ] = None,
    yes: Annotated[  # noqa: FBT002
        bool, typer.Option("--yes", help="Really cordon and evict.")
    ] = False,
    rate: Annotated[
        float | None,
        typer.Option("--rate", metavar="N", help="Evictions in a minute, at most; default 6."),
    ] = None,
    max_nodes: Annotated[
        int | None,
        typer.Option("--max-nodes", metavar="N", min=1, help="Nodes to cordon at most; default 3."),
    ] = None,
    local: Annotated[  # noqa: FBT002
        bool,
        typer.Option(
            "--local",
            help="This machine's memory, from its kernel; with --kubeconfig or --server and "
            "--node, also its pods.",
        ),
    ] = False,
    cgroup: Annotated[
        str | None,
        typer.Option(
            "--cgroup", metavar="NAME", help="--local: a control group, or self; default: all."
        ),
    ] = None,
    eviction_hard: Annotated[
        _Texts, typer.Option("--eviction-hard", metavar="S", help="--local: as the kubelet's.")
    ] = None,
    eviction_soft: Annotated[
        _Texts, typer.Option("--eviction-soft", metavar="S", help="--local: as the kubelet's.")
    ] = None,
    grace_period: Annotated[
        _Texts, typer.Option("--grace-period", metavar="S", help="--local: memory.available=1m.")
    ] = None,
    minimum_reclaim: Annotated[
        _Texts, typer.Option("--minimum-reclaim", metavar="S", help="--local: as the kubelet's.")
    ] = None,
    kubelet_config: Annotated[
        str | None,
        typer.Option("--kubelet-config", metavar="FILE", help="--local: its configuration."),
    ] = None,
    upstream: Annotated[
        str | None, typer.Option("--upstream", metavar="V", help="Follow this kubelet's release.")
    ] = None,
    output: OutputOption = None,
) -> None:
    """Show which nodes are expected to evict pods, how soon, and which pods.

    Nothing is changed unless --cordon-and-evict is combined with --yes.
    """
    from extender.eviction.advise.options import AdviseOptions, LocalFlags, ReliefFlags, run_advise
    from extender.eviction.kubelet_flags import KubeletFlags

    flags = KubeletFlags(
        kubelet_config, eviction_hard, eviction_soft, grace_period, minimum_reclaim
    )
    asked = AdviseOptions(
        kubeconfig, server, node, watch, interval, samples, top, concurrency, upstream, output
    )
    relieving = ReliefFlags(cordon_and_evict, within, yes, rate, max_nodes)
    run_advise(asked, relieving, LocalFlags(local, cgroup, flags))
