"""The differences between Kubernetes releases, as data.

Each field of :class:`Release` is one rule that changed; the table below contains the release in
which it did. Read from the sources of v1.30.12, v1.31.14, v1.32.10, v1.33.6, v1.34.2, v1.35.0,
v1.36.0 and v1.37.0 (pkg/scheduler, component-helpers/resource), with the feature gates' defaults;
1.38 follows the merged pull requests 135486, 139210, 140999 and 141785.

Other differences in the sources make no difference here:

- *Equal pods.* Up to 1.37 pods of the same priority and start time are in any order; 1.38 orders
  them by UID, and so does this engine for every release.
- *Pods that have not started.* Up to 1.37 the missing start is replaced by the time of each
  comparison, in 1.38 by a fixed maximum. Either way they are the newest; among each other they are
  equal here. (If that maximum is beyond int64 nanoseconds, 1.38 ranks a node with such victims last
  where 1.37 ranks it first; that could not be checked and is not followed.)
- *Equal candidates* are chosen at random by all releases; here the node's name decides.
- *The order of budgets*, which matters because a violated budget ends the search from 1.37 on, is
  that of a map upstream; here it is that of the snapshot.
- *Two spread constraints with the same topology key* share one count up to 1.32. The API server
  admits no two hard ones, nor does kube-scheduler's configuration.
A rule behind a feature gate is not a field: it asks ``release.gates``, which has the gates that are
on by default in the release, changed by the settings of the caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from policies.kubernetes.feature_gates import FeatureGate, apply_settings, shown_gates
from policies.kubernetes.input_error import InputError


class StatusResources(Enum):
    """Whether the resources in a running pod's status count beside its spec (in-place resize)."""

    IGNORED = "spec only"
    ALLOCATED = "the larger of the spec and what is allocated, for each app container"
    ACTUATED = "the larger of the spec and what is in force, for each app container"
    PER_CONTAINER = "the larger of both for each container"
    PER_POD = "the larger of both sums"


class PdbViolationCount(Enum):
    """Whether budgets after the first one that a pod violates still count that pod."""

    ALL_BUDGETS = "all matching budgets are charged"
    UNTIL_FIRST_VIOLATION = "the first violated budget ends the search"


class EmptySelector(Enum):
    """Which pods a budget with an empty selector matches, and whether unlabelled pods match."""

    NOTHING = "an empty selector matches no pod; a pod without labels matches no budget"
    EVERYTHING = "an empty selector matches every pod of the namespace, labelled or not"


class TaintReason(Enum):
    """The wording of an untolerated taint."""

    NAMED = "node(s) had untolerated taint {key: value}"
    COUNTED = "node(s) had untolerated taint(s)"


class PortworxMigration(Enum):
    """Whether volumes of the in-tree Portworx plugin count as those of its CSI driver."""

    OFF = "never"
    ANNOTATED = "on nodes whose CSINode lists the migrated plugin"
    ALWAYS = "on every node that has a CSINode"


@dataclass(frozen=True, slots=True)
class Release:
    """The rules of one minor release of kube-scheduler."""

    name: str
    gates: frozenset[FeatureGate]  # the feature gates that are on
    status_resources: StatusResources
    sidecar_host_ports: bool  # host ports of restartable init containers count
    taint_reason: TaintReason
    oversized_is_unresolvable: bool  # a request above allocatable cannot be helped by eviction
    names_unexamined_nodes: bool  # nodes excluded before filtering appear in the message
    mentions_claims: bool  # a failed preemption's sentence begins with the deallocation result
    announces_placement: bool  # a successful preemption adds its sentence to the message
    pdb_violation_count: PdbViolationCount
    empty_selector: EmptySelector
    evicts_units: bool  # an ordinary pod evicts the pods of a group together, by its mode
    simulates_pod_groups: bool  # a group is scheduled with all its possible victims removed
    victimless_candidates: bool  # an extender may receive, and may return, a node without victims
    waits_without_status: bool  # a pod waits for a nominated node that has no filter status
    node_name_limits: bool  # for a pod that names its node, other nodes are not evaluated
    node_name_is_first: bool  # NodeName filters before NodeUnschedulable
    claim_in_use_is_of_the_node: bool  # a ReadWriteOncePod claim in use: "node has pod using …"
    volume_affinity_is_a_conflict: bool  # … "had volume node affinity conflict", later reworded
    node_lists_volume_limits: bool  # status.allocatable of a node limits volumes, too
    limits_disks: bool  # a node without a CSINode limits disks of EBS, GCE and Azure
    attachments_count: bool  # a VolumeAttachment counts, whether or not a pod uses the volume
    portworx: PortworxMigration
    claim_owner_is_capitalised: bool  # "was not created for Pod …", earlier "for pod …"

    def __hash__(self) -> int:
        return hash(self.gates)  # fast: a frozenset keeps its hash


class UnknownReleaseError(InputError, ValueError):
    """A version that is not in the table; the message lists the known ones."""


def _release(minor: int, settings: Mapping[str, bool]) -> Release:
    gates = apply_settings(minor, settings).enabled
    return Release(
        name=f"1.{minor}",
        gates=gates,
        status_resources=(
            StatusResources.IGNORED
            if FeatureGate.IN_PLACE_POD_VERTICAL_SCALING not in gates
            else StatusResources.ALLOCATED
            if minor < 32
            else StatusResources.ACTUATED
            if minor < 33
            else StatusResources.PER_CONTAINER
            if minor < 37
            else StatusResources.PER_POD
        ),
        sidecar_host_ports=minor >= 33,
        taint_reason=TaintReason.COUNTED if minor >= 34 else TaintReason.NAMED,
        oversized_is_unresolvable=minor >= 34,
        names_unexamined_nodes=minor >= 32,
        mentions_claims=34 <= minor <= 36,
        announces_placement=minor >= 37,
        pdb_violation_count=(
            PdbViolationCount.UNTIL_FIRST_VIOLATION
            if minor >= 37
            else PdbViolationCount.ALL_BUDGETS
        ),
        empty_selector=EmptySelector.EVERYTHING if minor >= 38 else EmptySelector.NOTHING,
        evicts_units=minor >= 37 and FeatureGate.GENERIC_WORKLOAD in gates,
        simulates_pod_groups=gates.issuperset(
            {FeatureGate.GENERIC_WORKLOAD}
            if minor >= 37
            else {
                FeatureGate.GENERIC_WORKLOAD,
                FeatureGate.GANG_SCHEDULING,
                FeatureGate.WORKLOAD_AWARE_PREEMPTION,
            }
        ),
        victimless_candidates=minor >= 38,
        waits_without_status=minor < 32,
        node_name_limits=minor >= 37,
        node_name_is_first=minor >= 37,
        claim_in_use_is_of_the_node=minor < 34,
        volume_affinity_is_a_conflict=minor < 33,
        node_lists_volume_limits=minor < 32,
        limits_disks=minor < 31,
        attachments_count=minor >= 32,
        portworx=(
            PortworxMigration.OFF
            if minor < 31
            else PortworxMigration.ANNOTATED
            if minor < 36
            else PortworxMigration.ALWAYS
        ),
        claim_owner_is_capitalised=minor >= 36,
    )


RELEASES: Mapping[str, Release] = {f"1.{minor}": _release(minor, {}) for minor in range(30, 39)}
NEWEST = RELEASES["1.38"]


def release(version: str, settings: Mapping[str, bool] | None = None) -> Release:
    """Return the rules of ``version``: 1.34, v1.34 or 1.34.2. Else raise UnknownReleaseError.

    ``settings`` are feature gates by name; those that do not exist in the release have no effect.
    """
    minor = _minor(version)
    return _release(minor, settings) if settings else RELEASES[f"1.{minor}"]


def assumed_gates(version: str, settings: Mapping[str, bool]) -> frozenset[FeatureGate]:
    """Return the gates to take as on where the API server serves their objects.

    They are neither in ``settings`` nor on by default. Raise UnknownReleaseError.
    """
    return shown_gates(_minor(version), settings)


def gate_warnings(version: str, settings: Mapping[str, bool]) -> tuple[str, ...]:
    """Return one line for each of ``settings`` that has no effect in ``version``.

    Raise UnknownReleaseError.
    """
    return apply_settings(_minor(version), settings).warnings


def _minor(version: str) -> int:
    name = ".".join(version.removeprefix("v").split(".")[:2])
    if name not in RELEASES:
        known = ", ".join(RELEASES)
        raise UnknownReleaseError(
            f"unknown Kubernetes release {version!r}; expected one of {known}"
        )
    return int(name.removeprefix("1."))
