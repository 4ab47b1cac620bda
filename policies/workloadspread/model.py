"""The WorkloadSpread model: the WorkloadSpread, its status, and its pods.

All values are immutable and consist of ints and strings. Times are nanoseconds since the epoch;
None is a time that was never set. Selectors are kept as written, because validation reports them;
:mod:`policies.workloadspread.pod_groups` compiles them.

Source: openkruise/kruise apis/apps/v1beta1/workloadspread_types.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from policies.kubernetes.selectors import Labels, LabelSelector, Toleration
from policies.workloadspread.object_references import WorkloadReference

SECOND: Final = 10**9
"""One second in the unit of all times here."""

FAKE_SUBSET: Final = "kruise.io/workloadspread-fake-subset-name"
"""The subset of pods that belong to none."""

UNLIMITED: Final = -1
"""``missing`` of a subset without maxReplicas."""

VERSION_IGNORED: Final = "versionIgnored"
"""The only version of workloads whose pods are not distinguished by version."""

NO_PODS: Final[Mapping[str, int]] = MappingProxyType({})
_NO_LABELS: Final[Labels] = MappingProxyType({})

MaxReplicas = int | str | None
"""An absolute number, a percentage as written, or no limit."""


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression of a node selector term, as written."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """A node selector term, as written: expressions on labels, and on fields."""

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
    """Which pods of the target are counted, and the paths of its number of replicas.

    ``selector`` is None without a selector, or if it is invalid; ``error`` is then the error.
    """

    selector: LabelSelector | None = None
    error: str = ""
    replicas_paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AdaptiveStrategy:
    """``scheduleStrategy.adaptive``.

    With ``reschedule_critical_seconds`` None, pods are not rescheduled.
    """

    simulates: bool = True
    reschedule_critical_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class ScheduleStrategy:
    """``scheduleStrategy``; ``type`` is as written, "" for Fixed."""

    type: str = ""
    adaptive: AdaptiveStrategy | None = None

    @property
    def is_adaptive(self) -> bool:
        """Whether pods can be placed in another order than that of the subsets."""
        return self.type == "Adaptive"

    @property
    def simulates(self) -> bool:
        """Whether scheduling on a subset's nodes is simulated first."""
        return self.is_adaptive and (self.adaptive is None or self.adaptive.simulates)

    @property
    def reschedule_critical_seconds(self) -> int:
        """After how many seconds an unschedulable pod is deleted; 0: never."""
        if not self.is_adaptive or self.adaptive is None:
            return 0
        return self.adaptive.reschedule_critical_seconds or 0


@dataclass(frozen=True, slots=True)
class SubsetCondition:
    """A condition of a subset (metav1.Condition)."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    changed_ns: int | None = None
    observed_generation: int = 0


@dataclass(frozen=True, slots=True)
class SubsetStatus:
    """The status of a subset, in total or in one version.

    ``replicas`` is the number of active pods. ``missing`` is how many pods it lacks, 0 if it is
    full, UNLIMITED without a limit. ``creating`` and ``deleting`` are pods that an admission
    webhook allowed and whose creation or deletion has not been observed since; they map a name or
    an id to the time of the admission.
    """

    name: str
    missing: int
    replicas: int = 0
    creating: Mapping[str, int] = field(default_factory=lambda: NO_PODS)
    deleting: Mapping[str, int] = field(default_factory=lambda: NO_PODS)
    conditions: tuple[SubsetCondition, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkloadSpreadStatus:
    """The status of a WorkloadSpread; ``versions`` maps versions to their own lists."""

    observed_generation: int = 0
    subsets: tuple[SubsetStatus, ...] = ()
    versions: Mapping[str, tuple[SubsetStatus, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )


@dataclass(frozen=True, slots=True)
class WorkloadSpread:
    """A WorkloadSpread.

    With ``ignores_patch_metadata``, metadata of subsets' patches is not applied to existing pods.
    """

    namespace: str
    name: str
    target: WorkloadReference | None
    subsets: tuple[Subset, ...]
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    terminating: bool = False
    target_filter: TargetFilter | None = None
    strategy: ScheduleStrategy = ScheduleStrategy()
    ignores_patch_metadata: bool = False
    status: WorkloadSpreadStatus = WorkloadSpreadStatus()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class SubsetInjection:
    """The subset of a pod, from the pod's annotation.

    ``uid`` identifies a pod that had no name yet; "" otherwise.
    """

    spread: str
    subset: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class SpreadPod:
    """A pod, with the fields that spreading reads.

    ``owners`` are the UIDs of all its owners, ``controller`` is its controller reference. ``node``
    is "" for a pod without one. ``ready_since`` counts only if the pod is ``ready``. ``restarts``
    is the maximum over its containers, ``sidecar_restarts`` the maximum over its sidecars.
    ``unschedulable`` is set by kube-scheduler. ``node_terms`` are its required node terms;
    ``injection`` and ``deletion_cost`` come from its annotations.
    """

    namespace: str
    name: str
    uid: str = ""
    labels: Labels = field(default_factory=lambda: _NO_LABELS)
    controller: WorkloadReference | None = None
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
    injection: SubsetInjection | None = None
    deletion_cost: str | None = None

    @property
    def active(self) -> bool:
        """Whether it has neither finished nor is being deleted."""
        return not self.terminating and self.phase not in ("Succeeded", "Failed")

    def belongs_to(self, spread: WorkloadSpread) -> bool:
        """Return whether it has been put into a subset of ``spread``."""
        injection = self.injection
        return injection is not None and injection.spread == spread.name and injection.subset != ""
