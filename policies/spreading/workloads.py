"""What WorkloadSpreads target and what pods belong to, and the kinds that may be targeted.

Besides the kinds that everyone knows, OpenKruise's configuration may allow others (the whitelist),
with a path to their number of replicas and with kinds of objects that stand between them and their
pods.

Sources: openkruise/kruise pkg/util/configuration, pkg/util/workloadspread/workloadspread.go
(matchReference, initializeWorkloadsInWhiteList).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from policies.selectors import Labels, LabelSelector
from policies.spreading.quirks import WHITELIST_VERSION, Quirks
from policies.spreading.references import TARGET_KINDS, Identity, Reference

_NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Scale:
    """What a kind's scale subresource says of an object; ``selector`` None if it has none."""

    replicas: int
    selector: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """An object that a WorkloadSpread targets, or that stands between it and its pods.

    ``replicas`` is spec.replicas, ``parallelism`` that of a Job; both are 1 where they are absent.
    ``template`` is the pod template as JSON without what is empty, so that equal templates are
    equal. ``update_revision`` and ``current_revision`` are those of a CloneSet's status,
    ``deployment_revision`` the annotation of that name. ``scale`` is None for a kind without the
    subresource. ``document`` is the whole object as JSON: paths are looked up in it.
    """

    identity: Identity
    namespace: str
    version: str = ""
    uid: str = ""
    labels: Labels = field(default_factory=dict)
    generation: int = 0
    observed_generation: int = 0
    terminating: bool = False
    controller: Reference | None = None
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
        """``Kind namespace/name``, for people."""
        return f"{self.identity.kind} {self.namespace}/{self.identity.name}"


@dataclass(frozen=True, slots=True)
class AllowedKind:
    """A kind of the whitelist. ``below`` are the groups and kinds between it and its pods."""

    group: str
    version: str
    kind: str
    replicas_path: str = ""
    below: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Whitelist:
    """The kinds that may be targeted besides those that everyone knows."""

    kinds: tuple[AllowedKind, ...] = ()

    def supports(self, group: str, kind: str) -> bool:
        """Return whether an owner of this kind may lead from a pod to a target."""
        return group in TARGET_KINDS.get(kind, ()) or any(
            (group, kind) in ((each.group, each.kind), *each.below) for each in self.kinds
        )

    def targets(self, group: str, kind: str) -> bool:
        """Return whether the list itself allows a target of this kind."""
        return any((each.group, each.kind) == (group, kind) for each in self.kinds)

    def replicas_path(self, group: str, kind: str) -> str | None:
        """Return where a kind's replicas are written; None if the list does not have the kind."""
        return next(
            (each.replicas_path for each in self.kinds if (each.group, each.kind) == (group, kind)),
            None,
        )

    def path_for_controller(
        self, group: str, version: str, kind: str, quirks: Quirks
    ) -> str | None:
        """Return the same, as the controller finds it."""
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


NO_WHITELIST = Whitelist()
