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
        bool, typer.Option("--watch", help="Repeat until interrupted.")
    ] = False,
    interval: Annotated[
        str, typer.Option("--interval", metavar="DURATION", help="Time between samples.")
    ] = "15s",
    samples: Annotated[
        int | None,
        typer.Option(
            "--samples", metavar="N", min=1, help="Samples per forecast; default 2; with --yes 5."
        ),
    ] = None,
    top: Annotated[
        int, typer.Option("--top", metavar="N", min=1, help="Number of nodes in -o text.")
    ] = 10,
    concurrency: Annotated[
        int,
        typer.Option(
            "--concurrency", metavar="N", min=1, max=100, help="Concurrent requests to kubelets."
        ),
    ] = 32,
    cordon_and_evict: Annotated[  # noqa: FBT002
        bool,
        typer.Option(
            "--cordon-and-evict",
            help="Cordon nodes that reach a hard threshold --within a time, and evict pods; "
            "without --yes, a dry run.",
        ),
    ] = False,
    within: Annotated[
        str | None,
        typer.Option(
            "--within", metavar="DURATION", help="Forecast horizon of --cordon-and-evict."
        ),
    ] = None,
    yes: Annotated[  # noqa: FBT002
        bool, typer.Option("--yes", help="Cordon and evict; no dry run.")
    ] = False,
    rate: Annotated[
        float | None,
        typer.Option("--rate", metavar="N", help="Maximum evictions per minute; default 6."),
    ] = None,
    max_nodes: Annotated[
        int | None,
        typer.Option(
            "--max-nodes", metavar="N", min=1, help="Maximum number of cordoned nodes; default 3."
        ),
    ] = None,
    local: Annotated[  # noqa: FBT002
        bool,
        typer.Option(
            "--local",
            help="Read this machine's memory; with --kubeconfig or --server and "
            "--node, also its pods.",
        ),
    ] = False,
    cgroup: Annotated[
        str | None,
        typer.Option(
            "--cgroup", metavar="NAME", help="--local: a cgroup, or self; default: the root."
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
        typer.Option("--kubelet-config", metavar="FILE", help="--local: KubeletConfiguration."),
    ] = None,
    upstream: Annotated[
        str | None, typer.Option("--upstream", metavar="V", help="kubelet release to follow.")
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
