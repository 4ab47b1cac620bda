"""The rollout of a Deployment: the sizes of its ReplicaSets, their annotations, and its status.

    replicas 4, maxSurge 1, maxUnavailable 1, all pods available

    new   old
    0     4
    1     3     the new ReplicaSet gets the surge, the old one loses what may be unavailable
    2     3     5 pods at most
    2     1     3 available pods at least
    4     1
    4     0

Old ReplicaSets lose pods that are not available first. A Deployment that is scaled during a rollout
scales its ReplicaSets in proportion.

Source: kubernetes/pkg/controller/deployment (sync.go, rolling.go, progress.go,
util/deployment_util.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from msgspec import Struct, field

from extender.controllers.replicaset.types import ReplicaSetStatus, controller_reference
from extender.kube.decoders.core_v1_types import LabelSelectorV1
from extender.kube.rest.resources import REPLICA_SETS, Resource
from fakeapi.controlplane.controllers.types import decode_tolerantly
from fakeapi.controlplane.workloads.types import (
    Conditions,
    ObjectKind,
    UpdateStrategy,
    Workload,
    WorkloadSpec,
    canonical,
    ceil_percent,
    compute_hash,
    floor_percent,
)

HASH_LABEL: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
PROGRESSING: Final = "Progressing"

_REVISION_HISTORY: Final = "deployment.kubernetes.io/revision-history"
_DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
_MAX: Final = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED: Final = (
    *(REVISION, _REVISION_HISTORY, _DESIRED, _MAX),
    *("kubectl.kubernetes.io/last-applied-configuration", "deprecated.deployment.rollback.to"),
)
_MAX_NAME_LENGTH: Final = 253
_NO_DEADLINE: Final = 2**31 - 1


class DeploymentSpec(WorkloadSpec, rename="camel"):
    """apps/v1.DeploymentSpec."""

    strategy: UpdateStrategy = field(default_factory=UpdateStrategy)
    paused: bool = False
    progress_deadline_seconds: int | None = None


class DeploymentStatus(Struct, rename="camel", frozen=True):
    """apps/v1.DeploymentStatus."""

    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    terminating_replicas: int | None = None
    collision_count: int | None = None
    conditions: Conditions = ()


class Deployment(Workload):
    """apps/v1.Deployment."""

    KIND: ClassVar[str] = "Deployment"

    spec: DeploymentSpec = field(default_factory=DeploymentSpec)
    status: DeploymentStatus = field(default_factory=DeploymentStatus)

    @property
    def max_surge(self) -> int:
        """How many pods may exist beyond the replicas; 0 unless the update is rolling."""
        if self.spec.strategy.type != "RollingUpdate":
            return 0
        return ceil_percent(self.spec.strategy.parameters.max_surge, self.spec.desired)

    @property
    def max_unavailable(self) -> int:
        """How many replicas may be unavailable; 0 unless the update is rolling."""
        if self.spec.strategy.type != "RollingUpdate" or self.spec.desired == 0:
            return 0
        value = floor_percent(self.spec.strategy.parameters.max_unavailable, self.spec.desired)
        return min(value or int(self.max_surge == 0), self.spec.desired)

    @property
    def has_deadline(self) -> bool:
        """Whether a rollout has to progress within a time."""
        return (self.spec.progress_deadline_seconds or _NO_DEADLINE) != _NO_DEADLINE


class ReplicaSet(Workload):
    """apps/v1.ReplicaSet."""

    KIND: ClassVar[str] = "ReplicaSet"

    status: ReplicaSetStatus = field(default_factory=ReplicaSetStatus)

    @property
    def age_order(self) -> tuple[str, str]:
        """The order of creation."""
        return (self.metadata.creation_timestamp or "", self.metadata.name)

    @property
    def revision(self) -> int:
        """Its revision; 0 if it has none."""
        return self.annotated_number(REVISION) or 0

    def annotated_number(self, key: str) -> int | None:
        """Return the number in an annotation, or None."""
        text = (self.metadata.annotations or {}).get(key, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


DEPLOYMENTS: Final = ObjectKind(
    "Deployment",
    Resource("apps", "v1", "deployments", namespaced=True),
    decode_tolerantly(Deployment),
)
OWNED_REPLICA_SETS: Final = ObjectKind("ReplicaSet", REPLICA_SETS, decode_tolerantly(ReplicaSet))


@dataclass(frozen=True, slots=True)
class Rollout:
    """A Deployment and its ReplicaSets: the one of its template, and the others by age.

    ``conditions`` are those of the Deployment with the changes of this sync.
    """

    deployment: Deployment
    new: ReplicaSet | None
    old: tuple[ReplicaSet, ...]
    conditions: Conditions = ()

    @property
    def all(self) -> Sequence[ReplicaSet]:
        """All ReplicaSets."""
        return self.old if self.new is None else (*self.old, self.new)

    @property
    def active(self) -> Sequence[ReplicaSet]:
        """The ReplicaSets with replicas."""
        return [each for each in self.all if each.spec.desired > 0]

    @property
    def replicas(self) -> int:
        """The number of replicas that all ReplicaSets ask for."""
        return sum(each.spec.desired for each in self.all)


def plan_rollout(deployment: Deployment, sets: Iterable[ReplicaSet]) -> Rollout:
    """Return the rollout; of several ReplicaSets with the template the oldest one is new."""
    wanted = _template_of(deployment)
    by_age = sorted(sets, key=lambda each: each.age_order)
    new = next((each for each in by_age if _template_of(each) == wanted), None)
    old = tuple(each for each in by_age if each is not new)
    return Rollout(deployment, new, old, deployment.status.conditions)


def _template_of(workload: Workload) -> bytes:
    return canonical(workload.spec.template.without_label(HASH_LABEL))


def new_replica_set(rollout: Rollout) -> tuple[str, dict[str, Any]]:
    """Return the name and the JSON of the ReplicaSet of a Deployment's template."""
    deployment = rollout.deployment
    spec, meta = deployment.spec, deployment.metadata
    hashed = compute_hash(spec.template, deployment.status.collision_count)
    template = spec.template.with_label(HASH_LABEL, hashed)
    selector = spec.selector or LabelSelectorV1()
    labels = {**(selector.matchLabels or {}), HASH_LABEL: hashed}
    name = f"{meta.name[: _MAX_NAME_LENGTH - len(hashed) - 1]}-{hashed}"
    return name, {
        "apiVersion": "apps/v1",
        "kind": ReplicaSet.KIND,
        "metadata": {
            "name": name,
            "labels": template.metadata.labels,
            "annotations": {**new_annotations(rollout, {}), **size_annotations(deployment)},
            "ownerReferences": [controller_reference(deployment)],
        },
        "spec": {
            "replicas": _new_size(rollout, 0),
            "minReadySeconds": spec.min_ready_seconds or None,
            "selector": {"matchLabels": labels, "matchExpressions": selector.matchExpressions},
            "template": template,
        },
    }


def rolling_replicas(rollout: Rollout) -> Mapping[str, int]:
    """Return the next sizes of ReplicaSets: the new one grows, or else old ones shrink."""
    if rollout.new is not None:
        size = _new_size(rollout, rollout.new.spec.desired)
        if size != rollout.new.spec.desired:
            return {rollout.new.metadata.name: size}
    return _old_sizes(rollout)


def _new_size(rollout: Rollout, present: int) -> int:
    """Return the size of the new ReplicaSet, which has ``present`` replicas."""
    deployment = rollout.deployment
    desired = deployment.spec.desired
    if deployment.spec.strategy.type == "Recreate" or present >= desired:
        return desired
    room = desired + deployment.max_surge - rollout.replicas
    return present + max(0, min(room, desired - present))


def _old_sizes(rollout: Rollout) -> Mapping[str, int]:
    """Return the sizes of the old ReplicaSets: first they lose what is not available.

    Nothing changes while a ReplicaSet counts pods from before it was scaled down.
    """
    deployment, new = rollout.deployment, rollout.new
    least = deployment.spec.desired - deployment.max_unavailable
    starting = new.spec.desired - new.status.available_replicas if new else 0
    spare = rollout.replicas - least - starting
    old = [each for each in rollout.old if each.spec.desired]
    stale = any(each.status.available_replicas > each.spec.desired for each in old)
    if spare <= 0 or stale:
        return {}
    sizes = {each.metadata.name: each.spec.desired for each in old}
    for each in old:
        lost = min(spare, each.spec.desired - each.status.available_replicas)
        sizes[each.metadata.name] -= lost
        spare -= lost
    spare = max(0, sum(each.status.available_replicas for each in rollout.all) - least)
    for name, size in sizes.items():
        lost = min(spare, size)
        sizes[name] -= lost
        spare -= lost
    return sizes


def is_scaled(rollout: Rollout) -> bool:
    """Return whether the Deployment was scaled since its ReplicaSets were sized."""
    noted = {each.annotated_number(_DESIRED) for each in rollout.active}
    return not noted <= {None, rollout.deployment.spec.desired}


def scaled_replicas(rollout: Rollout) -> Mapping[str, int]:
    """Return the sizes of ReplicaSets after the Deployment was scaled or while it is paused."""
    desired, active = rollout.deployment.spec.desired, rollout.active
    latest = rollout.new or (rollout.old[-1] if rollout.old else None)
    if len(active) <= 1:
        only = active[0] if active else latest
        return {only.metadata.name: desired} if only else {}
    if rollout.new is not None and _is_saturated(rollout.new, desired):
        return {each.metadata.name: 0 for each in rollout.old if each.spec.desired}
    if rollout.deployment.spec.strategy.type != "RollingUpdate":
        return {}
    return _in_proportion(rollout)


def _is_saturated(new: ReplicaSet, desired: int) -> bool:
    """Return whether the new ReplicaSet, which was not scaled since, has all its pods available."""
    sizes = (new.spec.desired, new.annotated_number(_DESIRED), new.status.available_replicas)
    return sizes == (desired, desired, desired)


def _in_proportion(rollout: Rollout) -> Mapping[str, int]:
    deployment = rollout.deployment
    allowed = deployment.spec.desired + deployment.max_surge if deployment.spec.desired else 0
    left = allowed - rollout.replicas
    by_age = sorted(rollout.active, key=lambda each: each.age_order, reverse=left > 0)
    largest_first = sorted(by_age, key=lambda each: -each.spec.desired)
    sizes = {each.metadata.name: each.spec.desired for each in largest_first}
    for each in largest_first:
        share = _share(deployment, each)
        part = min(share, left) if left > 0 else max(share, left)
        sizes[each.metadata.name] += part
        left -= part
    first = largest_first[0].metadata.name
    sizes[first] = max(0, sizes[first] + left)
    return sizes


def _share(deployment: Deployment, replica_set: ReplicaSet) -> int:
    """Return the replicas that a ReplicaSet gains or loses in proportion to its size."""
    size = replica_set.spec.desired
    if deployment.spec.desired == 0:
        return -size
    before = replica_set.annotated_number(_MAX) or deployment.status.replicas
    if before == 0:
        return 0
    most = deployment.spec.desired + deployment.max_surge
    return (2 * size * most + before) // (2 * before) - size


def size_annotations(deployment: Deployment) -> dict[str, str]:
    """Return the annotations of a ReplicaSet that record for which scale it was sized."""
    desired = deployment.spec.desired
    return {_DESIRED: str(desired), _MAX: str(desired + deployment.max_surge)}


def new_annotations(rollout: Rollout, present: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations of the new ReplicaSet, which has some: the Deployment's, a revision.

    A former revision of it goes into its history.
    """
    own = rollout.deployment.metadata.annotations or {}
    found = {**present, **{key: own[key] for key in own if key not in _NOT_COPIED}}
    former = present.get(REVISION, "")
    revision = 1 + max((each.revision for each in rollout.old), default=0)
    if (int(former) if former.isdigit() else 0) < revision:
        found[REVISION] = str(revision)
        if former:
            history = present.get(_REVISION_HISTORY)
            found[_REVISION_HISTORY] = f"{history},{former}" if history else former
    return found


def old_pods_run(rollout: Rollout) -> bool:
    """Return whether old ReplicaSets have pods, terminating ones included."""
    statuses = [each.status for each in rollout.old]
    return any(each.replicas or each.terminating_replicas for each in statuses)


def sets_to_clean_up(rollout: Rollout) -> Sequence[ReplicaSet]:
    """Return the old ReplicaSets beyond revisionHistoryLimit that have no pods."""
    limit = rollout.deployment.spec.revision_history_limit
    alive = sorted(
        (each for each in rollout.old if not each.metadata.deleting),
        key=lambda each: (each.revision, each.age_order),
    )
    surplus = () if limit is None else alive[: max(0, len(alive) - limit)]
    return [each for each in surplus if _is_empty(each)]


def _is_empty(replica_set: ReplicaSet) -> bool:
    observed = replica_set.metadata.generation <= replica_set.status.observed_generation
    return observed and replica_set.status.replicas == 0 and replica_set.spec.desired == 0
