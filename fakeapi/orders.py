"""What parts of the control plane are to go by, as it is given to a cluster.

Only who gives something loads what reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fakeapi.controlplane.kubelet.outfits import Script
from fakeapi.controlplane.scheduler.outfits import Configured, Extend, SchedulerOutfit, Waiting

if TYPE_CHECKING:
    from fakeapi.controlplane.kubelet.scripts import Playbook


def read_book(kubelet: Script) -> Playbook | None:
    """Read what simulated kubelets are to play; raises ScriptError."""
    if not kubelet:
        return None
    from fakeapi.controlplane.kubelet.parsing import read_playbook

    return read_playbook(kubelet)


def read_orders(
    document: Configured,
    url: str,
    insiders: Mapping[str, Extend] | None,
    upstream: str,
    waiting: Waiting | None = None,
) -> SchedulerOutfit:
    """Read what a scheduler is to go by; raises SchedulerError, UnknownReleaseError."""
    insiders = insiders or {}
    if not (document or url or insiders or upstream):
        return SchedulerOutfit()
    from fakeapi.controlplane.scheduler.parsing import read_configuration
    from policies.upstream import NEWEST, release

    urls = [*([url] if url else []), *insiders]
    followed = release(upstream) if upstream else NEWEST
    configuration = read_configuration(document, followed, urls)
    return SchedulerOutfit(configuration, insiders, waiting=waiting)


def elsewhere(outfit: SchedulerOutfit) -> tuple[str, ...]:
    """Return the URLs of the extenders that a scheduler calls over HTTP."""
    extenders = outfit.configuration.extenders if outfit.configuration else ()
    inside = {prefix.rstrip("/") for prefix in outfit.extenders}
    urls = dict.fromkeys(each.url_prefix.rstrip("/") for each in extenders)
    return tuple(url for url in urls if url not in inside)
