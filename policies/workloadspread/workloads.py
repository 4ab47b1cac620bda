"""Workloads that WorkloadSpreads target or that own pods, and the kinds that can be targeted.

Besides the built-in kinds, OpenKruise's configuration can allow others (the whitelist), with a path
to their number of replicas and with the kinds of objects between them and their pods.

Sources: openkruise/kruise pkg/util/configuration, pkg/util/workloadspread/workloadspread.go
(matchReference, initializeWorkloadsInWhiteList).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from policies.kubernetes.selectors import Labels, LabelSelector
from policies.workloadspread.object_references import TARGET_KINDS, ObjectKey, WorkloadReference
from policies.workloadspread.quirks import WHITELIST_VERSION, Quirks

_NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale subresource of an object; ``selector`` is None if it has none."""

    replicas: int
    selector: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class TargetWorkload:
    """An object that a WorkloadSpread targets, or an owner between it and its pods.

    ``replicas`` is spec.replicas, ``parallelism`` that of a Job; both default to 1. ``template`` is
    the pod template as JSON without empty values, so that equal templates compare equal.
    ``update_revision`` and ``current_revision`` are those of a CloneSet's status,
    ``deployment_revision`` is the annotation of that name. ``scale`` is None for a kind without the
    subresource. ``document`` is the whole object as JSON, for the lookup of paths.
    """

    identity: ObjectKey
    namespace: str
    version: str = ""
    uid: str = ""
    labels: Labels = field(default_factory=dict)
    generation: int = 0
    observed_generation: int = 0
    terminating: bool = False
    controller: WorkloadReference | None = None
    selector: LabelSelector | None = None
    replicas: int = 1
    parallelism: int = 1
    template: object = None
    update_revision: str = ""
    current_revision: str = ""
    deployment_revision: str = ""
    scale: Scale | None = None
    document: Mapping[str, object] = field(default_factory=lambda: _NOTHING)

    @property
    def key(self) -> str:
        """``Kind namespace/name``, for display."""
        return f"{self.identity.kind} {self.namespace}/{self.identity.name}"


@dataclass(frozen=True, slots=True)
class AllowedKind:
    """A kind of the whitelist; ``intermediate_kinds`` are the kinds between it and its pods."""

    group: str
    version: str
    kind: str
    replicas_path: str = ""
    intermediate_kinds: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class AllowedKinds:
    """The kinds that can be targeted besides the built-in ones."""

    kinds: tuple[AllowedKind, ...] = ()

    def supports(self, group: str, kind: str) -> bool:
        """Return whether an owner of this kind can lead from a pod to a target."""
        return group in TARGET_KINDS.get(kind, ()) or any(
            (group, kind) in ((each.group, each.kind), *each.intermediate_kinds)
            for each in self.kinds
        )

    def targets(self, group: str, kind: str) -> bool:
        """Return whether the whitelist allows a target of this kind."""
        return any((each.group, each.kind) == (group, kind) for each in self.kinds)

    def replicas_path(self, group: str, kind: str) -> str | None:
        """Return the path of a kind's replicas; None if the kind is not in the whitelist."""
        return next(
            (each.replicas_path for each in self.kinds if (each.group, each.kind) == (group, kind)),
            None,
        )

    def path_for_controller(
        self, group: str, version: str, kind: str, quirks: Quirks
    ) -> str | None:
        """Return the path of a kind's replicas, as the controller looks it up."""
        if WHITELIST_VERSION not in quirks:
            return self.replicas_path(group, kind)
        return next(
            (
                each.replicas_path
                for each in self.kinds
                if (each.group, each.version, each.kind) == (group, version, kind)
            ),
            None,
        )


NO_ALLOWED_KINDS = AllowedKinds()
