"""What the rules of a WorkloadSpread read: the WorkloadSpread, its status, pods and nodes.

Everything is immutable and made of ints and texts. Times are nanoseconds since the epoch; None is a
time that was never written. Selectors are kept as they are written, since validation speaks of
them; :mod:`policies.spreading.matching` compiles them.

Source: openkruise/kruise apis/apps/v1beta1/workloadspread_types.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from policies.selectors import Labels, LabelSelector, Toleration
from policies.spreading.references import Reference

SECOND: Final = 10**9
"""One second in the unit of all times here."""

FAKE_SUBSET: Final = "kruise.io/workloadspread-fake-subset-name"
"""The subset of pods that belong to none."""

UNLIMITED: Final = -1
"""``missing`` of a subset without maxReplicas."""

VERSION_IGNORED: Final = "versionIgnored"
"""The one version of workloads whose pods are not told apart by version."""

NO_PODS: Final[Mapping[str, int]] = MappingProxyType({})
_NO_LABELS: Final[Labels] = MappingProxyType({})

MaxReplicas = int | str | None
"""An absolute number, a percentage as it is written, or no limit."""


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression of a node selector term, as it is written."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """A node selector term, as it is written: expressions on labels, and on fields."""

    expressions: tuple[Expression, ...] = ()
    fields: tuple[Expression, ...] = ()

    def __and__(self, other: NodeTerm) -> NodeTerm:
        return NodeTerm(self.expressions + other.expressions, self.fields + other.fields)


@dataclass(frozen=True, slots=True)
class Preference:
    """A preferred scheduling term."""

    weight: int
    term: NodeTerm


@dataclass(frozen=True, slots=True)
class SubsetToleration:
    """A toleration of a subset; ``bounded`` if it has tolerationSeconds."""

    toleration: Toleration
    bounded: bool = False


@dataclass(frozen=True, slots=True)
class Subset:
    """A subset. ``required`` None selects any node; ``patched`` if it has a patch."""

    name: str
    max_replicas: MaxReplicas = None
    required: NodeTerm | None = None
    preferred: tuple[Preference, ...] = ()
    tolerations: tuple[SubsetToleration, ...] = ()
    patched: bool = False


@dataclass(frozen=True, slots=True)
class TargetFilter:
    """Which pods of the target count, and where its number of replicas is written.

    ``selector`` is None if there is none; ``problem`` says why one that is there cannot be used.
    """

    selector: LabelSelector | None = None
    problem: str = ""
    replicas_paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Adaptive:
    """``scheduleStrategy.adaptive``; ``critical_seconds`` None: pods are not rescheduled."""

    simulates: bool = True
    critical_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Strategy:
    """``scheduleStrategy``; ``type`` is as written, "" for Fixed."""

    type: str = ""
    adaptive: Adaptive | None = None

    @property
    def is_adaptive(self) -> bool:
        """Whether pods may be placed elsewhere than the order of subsets says."""
        return self.type == "Adaptive"

    @property
    def simulates(self) -> bool:
        """Whether a pod is to be tried on a subset's nodes first."""
        return self.is_adaptive and (self.adaptive is None or self.adaptive.simulates)

    @property
    def critical_seconds(self) -> int:
        """After how many seconds an unschedulable pod goes; 0: never."""
        if not self.is_adaptive or self.adaptive is None:
            return 0
        return self.adaptive.critical_seconds or 0


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a subset (metav1.Condition)."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    changed_ns: int | None = None
    observed_generation: int = 0


@dataclass(frozen=True, slots=True)
class SubsetStatus:
    """What is known of a subset, in all or in one version.

    ``replicas`` are its active pods. ``missing`` is how many it still lacks, 0 if it is full,
    UNLIMITED if it has no limit. ``creating`` and ``deleting`` are pods that an admission webhook
    let through and that nobody has seen come or go since; they map a name or an id to when that
    was.
    """

    name: str
    missing: int
    replicas: int = 0
    creating: Mapping[str, int] = field(default_factory=lambda: NO_PODS)
    deleting: Mapping[str, int] = field(default_factory=lambda: NO_PODS)
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Status:
    """The status of a WorkloadSpread; ``versions`` maps versions to their own lists."""

    observed_generation: int = 0
    subsets: tuple[SubsetStatus, ...] = ()
    versions: Mapping[str, tuple[SubsetStatus, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )


@dataclass(frozen=True, slots=True)
class Spread:
    """A WorkloadSpread.

    ``keeps_metadata``: what subsets' patches say of metadata is not for pods that are there
    already.
    """

    namespace: str
    name: str
    target: Reference | None
    subsets: tuple[Subset, ...]
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    terminating: bool = False
    target_filter: TargetFilter | None = None
    strategy: Strategy = Strategy()
    keeps_metadata: bool = False
    status: Status = Status()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Injection:
    """What a pod's annotation says of the subset that it was put into.

    ``uid`` stands in for the name of a pod that had none yet; "" otherwise.
    """

    spread: str
    subset: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class SpreadPod:
    """A pod, as far as spreading reads it.

    ``owners`` are the UIDs of all its owners, ``controller`` the one that manages it. ``node`` is
    "" for a pod without one. ``ready_since`` counts only if the pod is ``ready``. ``restarts`` are
    the most of any container, ``sidecar_restarts`` of any that restarts beside them.
    ``unschedulable``: kube-scheduler has said so. ``node_terms`` are what it requires of nodes;
    ``injection`` and ``deletion_cost`` what its annotations say.
    """

    namespace: str
    name: str
    uid: str = ""
    labels: Labels = field(default_factory=lambda: _NO_LABELS)
    controller: Reference | None = None
    owners: frozenset[str] = frozenset()
    phase: str = ""
    terminating: bool = False
    node: str = ""
    created_ns: int | None = None
    ready: bool = False
    ready_since: int | None = None
    restarts: int = 0
    sidecar_restarts: int = 0
    unschedulable: bool = False
    tolerations: tuple[Toleration, ...] = ()
    node_terms: tuple[NodeTerm, ...] = ()
    injection: Injection | None = None
    deletion_cost: str | None = None

    @property
    def active(self) -> bool:
        """Whether it has neither finished nor been told to go."""
        return not self.terminating and self.phase not in ("Succeeded", "Failed")

    def belongs_to(self, spread: Spread) -> bool:
        """Return whether it has been put into some subset of ``spread``."""
        given = self.injection
        return given is not None and given.spread == spread.name and given.subset != ""
