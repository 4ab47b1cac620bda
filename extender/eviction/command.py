"""The command ``explain evict`` and its options."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from extender.eviction.answering import EvictQuery, explain_query
from extender.eviction.flags import KubeletFlags
from extender.kube.pods import epoch_ns
from extender.options import NowOption, OutputOption, print_output
from policies.eviction.releases import eviction_release
from policies.upstream import NEWEST, release

EVICT_EXAMPLE: Final = (
    "explain evict --cluster c.yaml --node node-1 --summary s.json "
    "--eviction-hard 'memory.available<500Mi,nodefs.available<10%'"
)
_Texts = list[str] | None


def explain_evict(
    cluster: Annotated[
        _Texts,
        typer.Option("--cluster", metavar="FILE", help="Objects of the cluster; may be repeated."),
    ] = None,
    node: Annotated[
        str | None, typer.Option("--node", metavar="N", help="The node that runs short.")
    ] = None,
    summary: Annotated[
        _Texts,
        typer.Option(
            "--summary", metavar="FILE", help="Its /stats/summary; repeated: samples in time order."
        ),
    ] = None,
    scenario: Annotated[
        str | None,
        typer.Option(
            "--scenario", metavar="FILE", help="Instead: a kubelet, its pods and steps in one file."
        ),
    ] = None,
    eviction_hard: Annotated[
        _Texts, typer.Option("--eviction-hard", metavar="S", help="memory.available<500Mi,…")
    ] = None,
    eviction_soft: Annotated[
        _Texts, typer.Option("--eviction-soft", metavar="S", help="memory.available<1Gi,…")
    ] = None,
    grace_period: Annotated[
        _Texts, typer.Option("--grace-period", metavar="S", help="memory.available=1m30s,…")
    ] = None,
    minimum_reclaim: Annotated[
        _Texts, typer.Option("--minimum-reclaim", metavar="S", help="memory.available=100Mi,…")
    ] = None,
    kubelet_config: Annotated[
        str | None,
        typer.Option(
            "--kubelet-config", metavar="FILE", help="The kubelet's configuration, or its configz."
        ),
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(
            "--layout",
            metavar="NAME",
            help="one, dedicated-imagefs or split filesystems; default: as the sizes suggest.",
        ),
    ] = None,
    upstream: Annotated[
        str | None, typer.Option("--upstream", metavar="V", help="Follow this kubelet's release.")
    ] = None,
    now: NowOption = None,
    output: OutputOption = None,
) -> None:
    """Show which pods the kubelet would evict from a node under pressure, and in which order."""
    rules = eviction_release(release(upstream or NEWEST.name))
    flags = KubeletFlags(
        kubelet_config, eviction_hard, eviction_soft, grace_period, minimum_reclaim
    )
    at = None if now is None else epoch_ns(now)
    found = explain_query(
        EvictQuery(cluster or (), node, summary or (), scenario, rules, flags, layout, at)
    )
    print_output(output, found.document, found.table)
