"""The command ``advise eviction`` and its options; its imports are deferred until it runs."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from extender.terminal.command_line import (
    EvictionHardOption,
    EvictionSoftOption,
    GracePeriodOption,
    KubeconfigOption,
    KubeletConfigOption,
    KubeletReleaseOption,
    MinimumReclaimOption,
    OutputOption,
    ServerOption,
)
from extender.terminal.output import OutputFormat

ADVISE_EXAMPLE: Final = "advise eviction --kubeconfig ~/.kube/config --watch"


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
        int, typer.Option("--top", metavar="N", min=1, help="Number of nodes in a table.")
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
    eviction_hard: EvictionHardOption = None,
    eviction_soft: EvictionSoftOption = None,
    grace_period: GracePeriodOption = None,
    minimum_reclaim: MinimumReclaimOption = None,
    kubelet_config: KubeletConfigOption = None,
    upstream: KubeletReleaseOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show which nodes are expected to evict pods, how soon, and which pods.

    Nothing is changed unless --cordon-and-evict is combined with --yes. The kubelet's own flags
    (--eviction-hard to --kubelet-config) need --local.
    """
    from extender.eviction.advise.options import AdviseOptions, LocalFlags, ReliefFlags, run_advise
    from extender.eviction.kubelet_flags import KubeletFlags

    flags = KubeletFlags(
        kubelet_config, eviction_hard, eviction_soft, grace_period, minimum_reclaim
    )
    options = AdviseOptions(
        kubeconfig, server, node, watch, interval, samples, top, concurrency, upstream, output
    )
    relief_flags = ReliefFlags(cordon_and_evict, within, yes, rate, max_nodes)
    run_advise(options, relief_flags, LocalFlags(local, cgroup, flags))
