"""Why a node was rejected: codes, reasons and their phrases, as the scheduling framework's Status.

Reasons are worded as kube-scheduler words them, in one phrase table.

Source: kubernetes/kubernetes pkg/scheduler/framework/interface.go (Status) and types.go (FitError).
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from policies.kubernetes.snapshot import Pod


class Code(Enum):
    """Why a filter refused a node; the value is the phrase, with a placeholder for each detail."""

    UNSCHEDULABLE = "node(s) were unschedulable"
    OTHER_NODE = "node(s) didn't match the requested node name"
    ASSIGNED_ELSEWHERE = "pod assigned to different node"
    RESIZE_PREEMPTION_DISABLED = "node had resize preemption disabled"
    UNTOLERATED_TAINT = "node(s) had untolerated taint {{{0}}}"
    UNTOLERATED_TAINTS = "node(s) had untolerated taint(s)"
    NODE_AFFINITY = "node(s) didn't match Pod's node affinity/selector"
    ENFORCED_AFFINITY = "node(s) didn't match scheduler-enforced node affinity"
    AFFINITY_CONFLICT = "pod affinity terms conflict"
    NOT_EXAMINED = "node(s) didn't satisfy plugin(s) [{0}]"
    POD_AFFINITY = "node(s) didn't match pod affinity rules"
    POD_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
    EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"
    SPREAD = "node(s) didn't match pod topology spread constraints"
    SPREAD_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"
    HOST_PORTS = "node(s) didn't have free ports for the requested pod ports"
    TOO_MANY_PODS = "Too many pods"
    INSUFFICIENT = "Insufficient {0}"
    NO_DISK = "node(s) had no available disk"
    CLAIM_IN_USE_HERE = (
        "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod "
        "access mode"
    )
    CLAIM_IN_USE = (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod"
    )
    TOO_MANY_VOLUMES = "node(s) exceed max volume count"
    NO_DRIVER = "{0} CSI driver is not installed on the node"
    NO_CLAIM_TO_COUNT = 'looking up PVC {0}/{1}: persistentvolumeclaim "{1}" not found'
    VOLUME_CONFLICT = "node(s) had volume node affinity conflict"
    VOLUME_AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
    VOLUME_MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
    NO_VOLUME_TO_BIND = "node(s) didn't find available persistent volumes to bind"
    NOT_ENOUGH_STORAGE = "node(s) did not have enough free storage"
    VOLUME_ZONE = "node(s) had no available volume zone"
    NO_CLAIM = 'persistentvolumeclaim "{0}" not found'
    NO_EPHEMERAL_CLAIM = (
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "{0}"'
    )
    CLAIM_LOST = 'persistentvolumeclaim "{0}" bound to non-existent persistentvolume "{1}"'
    CLAIM_DELETED = 'persistentvolumeclaim "{0}" is being deleted'
    CLAIM_OF_OTHER = "PVC {0} was not created for pod {1} (pod is not owner)"
    CLAIM_UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
    CLAIM_WITHOUT_CLASS = "PersistentVolumeClaim had no pv name and storageClass name"
    NO_CLASS = 'storageclass.storage.k8s.io "{0}" not found'
    NO_VOLUME_NAME = "PersistentVolume had no name"
    NO_VOLUME = 'persistentvolume "{0}" not found'
    NO_DEVICE_CLAIM_YET = 'pod "{0}": ResourceClaim not created yet'
    NO_DEVICE_SOURCE = 'pod "{0}", spec.resourceClaim "{1}": none of the supported fields are set'
    NO_DEVICE_CLAIM = 'could not find ResourceClaim "{0}"'
    DEVICE_CLAIM_DELETED = 'resourceclaim "{0}" is being deleted'
    DEVICE_CLAIM_OF_OTHER = "ResourceClaim {0} was not created for pod {1} (pod is not owner)"
    DEVICE_CLAIM_OF_OTHER_POD = "ResourceClaim {0} was not created for Pod {1} (Pod is not owner)"
    DEVICE_CLAIM_IN_USE = "resourceclaim in use"
    NO_DEVICE_CLASS = "request {0}: device class {1} does not exist"
    DEVICES_ELSEWHERE = "resourceclaim not available on the node"
    NO_DEVICES = "cannot allocate all claims"
    DEVICES_ERROR = "devices cannot be allocated: {0}"
    EXTENDED_CLAIM_LEFT = "cannot schedule extended resource claim"
    NO_SUCH_RESOURCE = "cannot fit resource"
    DEVICES_UNKNOWN = "devices not evaluated: {0}"
    VOLUMES_UNKNOWN = "volumes not evaluated: {0}"
    UNDECLARED_FEATURES = "node(s) didn't match Pod's required features"
    NO_VICTIMS = "No preemption victims found for incoming pod"
    NO_VICTIMS_OF_GROUP = "No preemption victims found for incoming preemptor"
    NO_NODE_OF_MEMBER = 'failed to get node info for node "{0}" from snapshot'
    NO_VICTIM_NEEDED = 'expected at least one victim pod on node "{0}"'
    POLICY_LIMIT = "node(s) exceeded the policy's {0}"
    NOT_HELPFUL = "Preemption is not helpful for scheduling"
    FEASIBLE = "the pod fits without preemption"
    UNREADABLE_POD = "node holds a pod that could not be read: {0}"
    UNKNOWN_NODE = "node is not known to the extender (yet)"
    UNREADABLE_NODE = "node could not be read: {0}"
    BY_EXTENDER = "{0}"


@dataclass(frozen=True, slots=True)
class Reason:
    """A code with its details; ``str()`` returns kube-scheduler's phrase.

    A detail without a placeholder in the phrase names the object that is the cause, and why.
    """

    code: Code
    detail: str = ""
    second: str = ""

    def __str__(self) -> str:
        return self.code.value.format(self.detail, self.second)


@dataclass(frozen=True, slots=True)
class Rejection:
    """The status of a node that the pod does not fit; ``resolvable``: evicting pods might help."""

    reasons: tuple[Reason, ...]
    resolvable: bool

    def __str__(self) -> str:
        return ", ".join(str(reason) for reason in self.reasons)

    @property
    def causes(self) -> str:
        """The details that kube-scheduler's phrases leave out, such as the name of a claim."""
        return ", ".join(
            reason.detail
            for reason in self.reasons
            if reason.detail and "{0}" not in reason.code.value
        )

    @property
    def is_undecided(self) -> bool:
        """Whether the node was not evaluated: it passes filtering, and is never a candidate."""
        return self.reasons[0].code in (Code.DEVICES_UNKNOWN, Code.VOLUMES_UNKNOWN)

    @property
    def awaits_devices(self) -> bool:
        """Whether evictions might free devices, on a node where kube-scheduler tries none."""
        return self.resolvable and any(each.code is Code.NO_DEVICES for each in self.reasons)


def refused(code: Code, detail: str = "") -> Rejection:
    """Return a rejection that eviction might resolve (upstream: Unschedulable)."""
    return Rejection((Reason(code, detail),), resolvable=True)


def unresolvable(code: Code, detail: str = "", second: str = "") -> Rejection:
    """Return a rejection that eviction cannot resolve (upstream: UnschedulableAndUnresolvable)."""
    return Rejection((Reason(code, detail, second),), resolvable=False)


FEASIBLE = unresolvable(Code.FEASIBLE)
"""The status, in a preemption decision, of a node that the pod fits without preemption."""


def ending_error(reasons: Iterable[Reason]) -> str | None:
    """Return the error of a filter, which ends the scheduling attempt before preemption.

    Source: findNodesThatPassFilters and schedulingAlgorithm in pkg/scheduler/schedule_one.go.
    """
    errors = [str(each) for each in reasons if each.code is Code.DEVICES_ERROR]
    return min(errors, default=None)


def fit_message(nodes: int, reasons: Mapping[Reason, int]) -> str:
    """Return ``0/N nodes are available: …`` with the count of each reason, as kube-scheduler does.

    Source: FitError.Error in pkg/scheduler/framework/types.go. Entries are sorted as texts, counts
    included; reasons with the same text are counted together.
    """
    counted: Counter[str] = Counter()
    for reason, count in reasons.items():
        counted[str(reason)] += count
    entries = sorted(f"{count} {phrase}" for phrase, count in counted.items() if count)
    head = f"0/{nodes} nodes are available:"
    return f"{head} {', '.join(entries)}." if entries else head


class CountedRejections(Mapping[str, Rejection]):
    """Rejections by node name that are counted and grouped without a loop over the nodes."""

    @abstractmethod
    def by_rejection(self) -> Iterator[tuple[Rejection, Sequence[str]]]:
        """Yield each rejection with the names of its nodes."""

    @abstractmethod
    def count_reasons(self) -> Counter[Reason]:
        """Return the count of each reason; NO_VICTIM_NEEDED is counted without node names."""


def group_by_rejection(
    rejections: Mapping[str, Rejection],
) -> Iterable[tuple[Rejection, Sequence[str]]]:
    """Return each rejection with the names of its nodes."""
    if isinstance(rejections, CountedRejections):
        return rejections.by_rejection()
    groups: dict[Rejection, list[str]] = {}
    for name, rejection in rejections.items():
        groups.setdefault(rejection, []).append(name)
    return groups.items()


@dataclass(frozen=True, slots=True)
class FilterDecision:
    """The nodes that a pod fits now, and the status of the others.

    ``undecided`` are those of the feasible nodes that could not be evaluated: kube-scheduler has
    evaluated them itself. ``conflict`` is set when the pod contradicts itself, so that no node was
    evaluated; ``not_evaluated`` names the in-tree filters that need more than the snapshot shows,
    such as objects that could not be read.
    """

    pod: Pod
    feasible: Sequence[str]
    rejected: Mapping[str, Rejection]
    conflict: Rejection | None = None
    not_evaluated: frozenset[str] = frozenset()
    undecided: Mapping[str, Rejection] = field(default_factory=dict)

    def describe(self) -> Iterator[str]:
        """Yield, line by line, the nodes that fit and the status of the others."""
        nodes = len(self.feasible) + len(self.rejected)
        yield f"{self.pod.key} fits {len(self.feasible)} of {nodes} nodes"
        for node in self.feasible:
            yield f"  {node}: {self.undecided.get(node, 'fits')}"
        for node, rejection in sorted(self.rejected.items()):
            yield f"  {node}: {explained(rejection)}{resolution_note(rejection)}"
        yield from describe_not_evaluated(self.not_evaluated)


def explained(rejection: Rejection) -> str:
    """Return kube-scheduler's phrases for a rejection, and in parentheses what they leave out."""
    return f"{rejection} ({rejection.causes})" if rejection.causes else str(rejection)


def resolution_note(rejection: Rejection) -> str:
    """Return the note behind a rejection that eviction cannot resolve, or ""."""
    return "" if rejection.resolvable or rejection == FEASIBLE else " (eviction cannot help)"


def describe_not_evaluated(filters: frozenset[str]) -> Iterator[str]:
    """Yield a line with the filters that were not evaluated, if there are any."""
    if filters:
        yield f"not evaluated, so the result may be too optimistic: {', '.join(sorted(filters))}"
