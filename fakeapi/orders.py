"""The table of control plane components, and their options, read from a cluster's arguments.

A parser or a component that takes long to import is imported only where it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from fakeapi.controlplane.disruption import DisruptionController
from fakeapi.controlplane.gc import GarbageCollector
from fakeapi.controlplane.kubelet.outfits import NO_OUTFIT, Outfit, Script
from fakeapi.controlplane.namespaces import NamespaceController
from fakeapi.controlplane.nodelifecycle import NodeLifecycleController
from fakeapi.controlplane.part import MakePart, Part, Setting
from fakeapi.controlplane.plane import WORKLOADS, parse_names
from fakeapi.controlplane.podgc import PodCollector
from fakeapi.controlplane.scheduler.outfits import Configured, Extend, SchedulerOutfit, Waiting
from fakeapi.controlplane.serviceaccounts import AccountController
from fakeapi.controlplane.tainteviction import TaintEvictor

if TYPE_CHECKING:
    from fakeapi.controlplane.kubelet.scripts import Playbook


def _kubelets(setting: Setting, outfit: Outfit = NO_OUTFIT) -> Part:
    from fakeapi.controlplane.kubelet.kubelets import Kubelets  # imported on first use

    return Kubelets(setting, outfit)


def _scheduler(setting: Setting, outfit: SchedulerOutfit | None = None) -> Part:
    from fakeapi.controlplane.scheduler.scheduler import Scheduler  # imported on first use

    return Scheduler(setting, outfit or SchedulerOutfit())


PARTS: Final[Mapping[str, MakePart]] = {
    "gc": GarbageCollector,
    "namespaces": NamespaceController,
    "podgc": PodCollector,
    "serviceaccounts": AccountController,
    "disruption": DisruptionController,
    "nodelifecycle": NodeLifecycleController,
    "tainteviction": TaintEvictor,
    **WORKLOADS,
    "kubelet": _kubelets,
    "scheduler": _scheduler,
}
DEFAULT_RUN: Final = "gc,namespaces"


def components(
    kubelet: Outfit = NO_OUTFIT, scheduler: SchedulerOutfit | None = None
) -> Mapping[str, MakePart]:
    """Return all components of the control plane; kubelet and scheduler take their options."""
    return {
        **PARTS,
        "kubelet": partial(_kubelets, outfit=kubelet),
        "scheduler": partial(_scheduler, outfit=scheduler),
    }


def parse_run(run: str) -> tuple[str, ...]:
    """Return the components to run: ``none``, ``all``, or comma-separated names.

    Raises UnknownComponentError.
    """
    if run in ("none", "all"):
        return tuple(PARTS) if run == "all" else ()
    return parse_names(run, PARTS, "control-plane part", ("none", "all", *PARTS))


def read_book(kubelet: Script) -> Playbook | None:
    """Read the simulation script of hollow kubelets, None if empty; raises ScriptError."""
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
    """Read a scheduler's options; raises SchedulerError, UnknownReleaseError."""
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
    """Return the URLs of the extenders that the scheduler calls over HTTP."""
    extenders = outfit.configuration.extenders if outfit.configuration else ()
    inside = {prefix.rstrip("/") for prefix in outfit.extenders}
    urls = dict.fromkeys(each.url_prefix.rstrip("/") for each in extenders)
    return tuple(url for url in urls if url not in inside)
