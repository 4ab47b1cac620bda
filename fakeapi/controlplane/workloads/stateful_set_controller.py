"""The StatefulSet controller: pods with stable names and claims, in order.

    OrderedReady    one pod at a time is created, deleted or updated, and the next one only when
                    all before it are available
    Parallel        pods are created and deleted at once

Pods are updated from the highest ordinal down to the partition. Left out: the retention policy of
claims (they are retained), and repairs of a pod's identity.

Source: kubernetes/pkg/controller/statefulset (stateful_set_control.go, stateful_set_utils.go).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from extender.controllers.context import ControllerContext
from extender.controllers.replicaset.pod_control import SYNC_ERRORS, error_message
from extender.kube.controller_runtime.controller import Controller
from extender.kube.decoders.object_meta import ObjectMeta
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import PERSISTENT_VOLUME_CLAIMS, STATEFUL_SETS
from fakeapi.controlplane.controllers.types import decode_tolerantly
from fakeapi.controlplane.workloads.controller_revisions import (
    HASH_LABEL,
    ControllerRevision,
    RevisionHistory,
)
from fakeapi.controlplane.workloads.types import (
    WORKLOAD_PODS,
    Fields,
    ObjectKind,
    PodTemplate,
    UpdateStrategy,
    Workload,
    WorkloadPod,
    WorkloadSpec,
    floor_percent,
    pod_document,
    raw,
    seconds_until_next_available,
)
from fakeapi.controlplane.workloads.workload_caches import WorkloadCaches

POD_NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"


class Ordinals(Struct):
    """apps/v1.StatefulSetOrdinals."""

    start: int = 0


class ClaimTemplate(Struct):
    """The fields of a template of PersistentVolumeClaims."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: Fields = field(default_factory=dict)


class StatefulSetSpec(WorkloadSpec, rename="camel"):
    """apps/v1.StatefulSetSpec."""

    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    update_strategy: UpdateStrategy = field(default_factory=UpdateStrategy)
    volume_claim_templates: list[ClaimTemplate] | None = None
    ordinals: Ordinals | None = None


class StatefulSetStatus(Struct, rename="camel", frozen=True):
    """apps/v1.StatefulSetStatus."""

    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: int | None = None


class StatefulSet(Workload):
    """apps/v1.StatefulSet."""

    KIND: ClassVar[str] = "StatefulSet"

    spec: StatefulSetSpec = field(default_factory=StatefulSetSpec)
    status: StatefulSetStatus = field(default_factory=StatefulSetStatus)

    @property
    def ordinals(self) -> range:
        """The ordinals of its pods."""
        start = self.spec.ordinals.start if self.spec.ordinals else 0
        return range(start, start + self.spec.desired)

    @property
    def ordered(self) -> bool:
        """Whether pods are created and deleted one after the other."""
        return self.spec.pod_management_policy != "Parallel"

    @property
    def rolling(self) -> bool:
        """Whether pods of an old revision are deleted."""
        return self.spec.update_strategy.type == "RollingUpdate"

    @property
    def first_updated(self) -> int:
        """The lowest ordinal that is updated."""
        return self.ordinals.start + self.spec.update_strategy.parameters.partition

    def ordinal_of(self, pod: WorkloadPod) -> int | None:
        """Return the ordinal in the name of a pod; None if it is not a member's name."""
        name, _, text = pod.metadata.name.rpartition("-")
        return int(text) if name == self.metadata.name and text.isdecimal() else None


STATEFUL_SET_KIND: Final = ObjectKind("StatefulSet", STATEFUL_SETS, decode_tolerantly(StatefulSet))


@dataclass(frozen=True, slots=True)
class StatefulPods:
    """A StatefulSet, its revisions, and its pods by ordinal."""

    of: StatefulSet
    current: ControllerRevision
    update: ControllerRevision
    pods: dict[int, WorkloadPod]
    now_ns: int

    def available(self, pod: WorkloadPod | None) -> bool:
        """Return whether a pod runs, is ready for long enough, and is not being deleted."""
        if pod is None or pod.metadata.deleting or pod.status.phase != "Running":
            return False
        return pod.seconds_until_available(self.of.spec.min_ready_seconds, self.now_ns) == 0

    @property
    def condemned(self) -> Sequence[WorkloadPod]:
        """The pods beyond the replicas, the highest ordinal first."""
        beyond = (each for each in self.pods if each not in self.of.ordinals)
        return [self.pods[each] for each in sorted(beyond, reverse=True)]

    def revision_of_new(self, ordinal: int) -> ControllerRevision:
        """Return the revision that a new pod has."""
        old = self.of.rolling and ordinal < self.of.first_updated
        return self.current if old else self.update


@dataclass(frozen=True, slots=True)
class StatefulActions:
    """The ordinals that get a pod, and the pods to delete, ``updated`` ones for an update."""

    created: Sequence[int] = ()
    deleted: Sequence[WorkloadPod] = ()
    updated: Sequence[WorkloadPod] = ()


def plan_actions(pods: StatefulPods) -> StatefulActions:
    """Return what one sync does: replicas come first, then surplus pods, then updates."""
    created: list[int] = []
    ended: list[WorkloadPod] = []
    for ordinal in pods.of.ordinals:
        pod = pods.pods.get(ordinal)
        if pod is None:
            created.append(ordinal)
        elif pod.finished and not pod.metadata.deleting:
            ended.append(pod)
        if pods.of.ordered and not pods.available(pod):
            return StatefulActions(created, ended)
    if ended:
        return StatefulActions(created, ended)
    if pods.condemned:
        return StatefulActions(created, _surplus(pods))
    return StatefulActions(created, updated=_outdated(pods) if pods.of.rolling else ())


def _surplus(pods: StatefulPods) -> Sequence[WorkloadPod]:
    """Return the surplus pods to delete; in order, an unavailable one blocks those below it."""
    condemned = pods.condemned
    if not pods.of.ordered:
        return [pod for pod in condemned if not pod.metadata.deleting]
    unavailable = [pod for pod in condemned if not pods.available(pod)]
    highest = condemned[0]
    blocked = highest in unavailable and highest is not unavailable[-1]
    return () if blocked or highest.metadata.deleting else [highest]


def _outdated(pods: StatefulPods) -> Sequence[WorkloadPod]:
    """Return the pods to delete for an update, so that no more than maxUnavailable are missing."""
    of, name = pods.of, pods.update.metadata.name
    most = max(
        1, floor_percent(of.spec.update_strategy.parameters.max_unavailable, of.spec.desired)
    )
    budget = most - sum(not pods.available(pods.pods.get(each)) for each in of.ordinals)
    present = (pods.pods.get(each) for each in reversed(of.ordinals) if each >= of.first_updated)
    old = [pod for pod in present if pod is not None and not pod.metadata.deleting]
    old = [pod for pod in old if revision_name(pod) != name]
    if of.ordered:
        return old[: max(0, budget)]
    unavailable = [pod for pod in old if not pods.available(pod)]
    return [*unavailable, *[pod for pod in old if pods.available(pod)][: max(0, budget)]]


def revision_name(pod: WorkloadPod) -> str:
    """Return the name of the revision of a pod."""
    return (pod.metadata.labels or {}).get(HASH_LABEL, "")


def new_status(pods: StatefulPods, actions: StatefulActions) -> StatefulSetStatus:
    """Return the status before the actions; a finished update makes its revision current."""
    of, found = pods.of, list(pods.pods.values())
    ready = [pod for pod in found if pod.ready and pod.status.phase == "Running"]
    seconds = of.spec.min_ready_seconds
    revisions = [revision_name(pod) for pod in found if not pod.metadata.deleting]
    current, update = pods.current.metadata.name, pods.update.metadata.name
    status = StatefulSetStatus(
        observed_generation=of.metadata.generation,
        replicas=len(found),
        ready_replicas=len(ready),
        available_replicas=sum(
            pod.seconds_until_available(seconds, pods.now_ns) == 0 for pod in ready
        ),
        current_replicas=revisions.count(current) - len(actions.updated),
        updated_replicas=revisions.count(update),
        current_revision=current,
        update_revision=update,
        collision_count=0,
    )
    counts = {status.replicas, status.ready_replicas, status.updated_replicas}
    if of.rolling and counts == {of.spec.desired}:
        updated = status.updated_replicas
        return replace(status, current_revision=update, current_replicas=updated)
    return status


def claim_name(of: StatefulSet, claim: ClaimTemplate, ordinal: int) -> str:
    """Return the name of a pod's PersistentVolumeClaim."""
    return f"{claim.metadata.name}-{of.metadata.name}-{ordinal}"


def stateful_pod(of: StatefulSet, revision: ControllerRevision, ordinal: int) -> dict[str, Any]:
    """Return the pod of an ordinal, with its name, labels, hostname and claims."""
    name, template = f"{of.metadata.name}-{ordinal}", revision.template
    claims = of.spec.volume_claim_templates or ()
    volumes: list[Any] = [
        {
            "name": claim.metadata.name,
            "persistentVolumeClaim": {"claimName": claim_name(of, claim, ordinal)},
        }
        for claim in claims
    ]
    claimed = [raw(claim.metadata.name) for claim in claims]
    own = msgspec.json.decode(template.spec.get("volumes", raw([])), type=list[Fields])
    volumes.extend(volume for volume in own if volume.get("name") not in claimed)
    spec: Fields = {**template.spec, "hostname": raw(name)}
    if of.spec.service_name:
        spec["subdomain"] = raw(of.spec.service_name)
    if volumes:
        spec["volumes"] = raw(volumes)
    labels = {POD_NAME_LABEL: name, INDEX_LABEL: str(ordinal), HASH_LABEL: revision.metadata.name}
    for key, value in labels.items():
        template = template.with_label(key, value)
    names = {"generateName": f"{of.metadata.name}-", "name": name}
    return pod_document(of, PodTemplate(template.metadata, spec), names)


class StatefulSetController:
    """The component ``statefulset``."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._recorder = context.events.recorder("statefulset-controller")
        self._caches = WorkloadCaches(context, STATEFUL_SET_KIND, WORKLOAD_PODS)
        self._history = RevisionHistory(context, STATEFUL_SET_KIND, "controller.kubernetes.io/hash")
        self.controller = Controller("statefulset", self._caches.queue, self._sync)

    async def run(self) -> None:
        """Reconcile StatefulSets until cancelled."""
        await self._history.wait_synced()
        await self._caches.start()
        await self.controller.run()

    async def _sync(self, key: str) -> float | None:
        of = self._caches.current(key)
        if of is None:
            return None
        pods = {
            ordinal: pod
            for pod in await self._caches.claim(of)
            if (ordinal := of.ordinal_of(pod)) is not None
        }
        update = await self._history.update_revision(of)
        known = {each.metadata.name: each for each in self._history.of(of)}
        current = known.get(of.status.current_revision, update)
        stateful = StatefulPods(of, current, update, pods, self._clock.now_ns())
        actions = StatefulActions() if of.metadata.deleting else plan_actions(stateful)
        status = new_status(stateful, actions)
        await self._apply(stateful, actions)
        if status != of.status:
            required = ("replicas", "availableReplicas", "collisionCount")
            await self._caches.write_status(of, status, required)
        live = {current.metadata.name, update.metadata.name, *map(revision_name, pods.values())}
        await self._history.truncate(of, live)
        seconds = of.spec.min_ready_seconds
        return seconds_until_next_available(pods.values(), seconds, self._clock.now_ns())

    async def _apply(self, stateful: StatefulPods, actions: StatefulActions) -> None:
        of = stateful.of
        for ordinal in actions.created:
            await self._create_claims(of, ordinal)
            pod = stateful_pod(of, stateful.revision_of_new(ordinal), ordinal)
            await self._create(of, pod, f"{of.metadata.name}-{ordinal}")
        for each in (*actions.deleted, *actions.updated):
            await self._caches.delete(each)
            message = (
                f"delete Pod {each.metadata.name} in StatefulSet {of.metadata.name} successful"
            )
            self._recorder.normal(of.reference, "SuccessfulDelete", message)

    async def _create(self, of: StatefulSet, pod: dict[str, Any], name: str) -> None:
        what = f"create Pod {name} in StatefulSet {of.metadata.name}"
        try:
            await self._caches.create(of, pod)
        except SYNC_ERRORS as error:
            message = f"{what} failed error: {error_message(error)}"
            self._recorder.warning(of.reference, "FailedCreate", message)
            raise
        self._recorder.normal(of.reference, "SuccessfulCreate", f"{what} successful")

    async def _create_claims(self, of: StatefulSet, ordinal: int) -> None:
        """Create the claims of a pod that do not exist yet."""
        selector, namespace = of.spec.selector, of.metadata.namespace
        for claim in of.spec.volume_claim_templates or ():
            selected = (selector and selector.matchLabels) or {}
            metadata = {
                "name": claim_name(of, claim, ordinal),
                "labels": {**(claim.metadata.labels or {}), **selected},
                "annotations": claim.metadata.annotations or {},
            }
            kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
            body = msgspec.json.encode({**kind, "metadata": metadata, "spec": claim.spec})
            try:
                path = PERSISTENT_VOLUME_CLAIMS.collection(namespace)
                await self._client.create(path, body, bytes)
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise
