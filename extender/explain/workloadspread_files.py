"""WorkloadSpreads from files, with their targets, pods, owners and nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TypeVar

import msgspec

from extender.cluster.object_stores import ObjectStore
from extender.explain.cluster_objects import ClusterObjects, manifest_key
from extender.kube.decoders.cluster_objects import decode_node
from extender.kube.decoders.manifests import Manifest
from extender.kube.decoders.typed_decoder import (
    Decode,
    ObjectError,
    Unreadable,
    tolerant_decoder,
)
from extender.kube.workloadspread.pod_injection import is_as_patched
from extender.kube.workloadspread.spread_pods import decode_spread_pod
from extender.kube.workloadspread.spreads import StoredWorkloadSpread, decode_workloadspread
from extender.kube.workloadspread.workloads import (
    CONFIGURATION,
    ScaledKind,
    decode_allowed_kinds,
    decode_scaled_kinds,
    decode_workload,
)
from policies.kubernetes.input_error import InputError
from policies.kubernetes.snapshot import Node
from policies.workloadspread.model import SpreadPod, Subset, WorkloadSpread
from policies.workloadspread.object_references import REPLICA_SET, ObjectKey, WorkloadReference
from policies.workloadspread.pod_groups import GroupingContext
from policies.workloadspread.spread_lookup import OwnerLookup
from policies.workloadspread.targets import Target
from policies.workloadspread.workloads import NO_ALLOWED_KINDS, AllowedKinds, TargetWorkload

T = TypeVar("T")

_SPREAD = "WorkloadSpread"
_KRUISE_NAMESPACE = "kruise-system"


class SpreadFileError(InputError, ValueError):
    """A WorkloadSpread is not found or cannot be decoded; the text names it and its source."""


class WorkloadSpreadFiles:
    """The objects of some files, as far as WorkloadSpreads refer to them.

    Objects are decoded on demand. One that cannot be decoded is skipped with one warning.
    """

    def __init__(self, objects: ClusterObjects) -> None:
        self._manifests = objects.manifests
        self._source = objects.source

    def spread(self, key: str) -> StoredWorkloadSpread:
        """Return the WorkloadSpread ``namespace/name``. Raise SpreadFileError."""
        named = [manifest for manifest in self._of_kind(_SPREAD) if manifest_key(manifest) == key]
        if not named:
            raise SpreadFileError(f"no WorkloadSpread {key!r} in {self._source}")
        return decode_spread_manifest(named[-1])

    @cached_property
    def spreads(self) -> Mapping[str, StoredWorkloadSpread]:
        """All WorkloadSpreads that can be decoded, by key."""
        return self._decoded_by_key(_SPREAD, decode_workloadspread, lambda each: each.spread.key)

    def spreads_of(self, namespace: str) -> list[StoredWorkloadSpread]:
        """Return the WorkloadSpreads of a namespace, sorted by name."""
        found = [each for each in self.spreads.values() if each.spread.namespace == namespace]
        return sorted(found, key=lambda each: each.spread.name)

    def target(self, spread: WorkloadSpread) -> Target:
        """Return the target of a WorkloadSpread with the ReplicaSets and pods of its namespace."""
        return Target(
            self.workload_of(spread),
            tuple(self._workloads(REPLICA_SET, spread.namespace)),
            tuple(pod for pod in self._pods.values() if pod.namespace == spread.namespace),
            self.whitelist,
        )

    def workload_of(self, spread: WorkloadSpread) -> TargetWorkload | None:
        """Return the target workload of a WorkloadSpread; None if it is not found."""
        if spread.target is None:
            return None
        return self.workload(spread.target.lenient_identity, spread.namespace)

    def workload(self, identity: ObjectKey, namespace: str) -> TargetWorkload | None:
        """Return an object that may own pods; None if it is not found."""
        candidates = self._workloads(identity.kind, namespace, identity.name)
        return next((each for each in candidates if each.identity == identity), None)

    def owners(self, pod: SpreadPod) -> OwnerLookup:
        """Return a pod's owners, from controller to controller."""
        found: dict[ObjectKey, TargetWorkload] = {}
        reference: WorkloadReference | None = pod.controller
        while reference is not None and reference.lenient_identity not in found:
            owner = self.workload(reference.lenient_identity, pod.namespace)
            if owner is None:
                break
            found[reference.lenient_identity] = owner
            reference = owner.controller
        return OwnerLookup(found, allowed_kinds=self.whitelist)

    def grouping_context(self, spread: StoredWorkloadSpread) -> GroupingContext:
        """Return the grouping context: the nodes, and whether a pod matches a subset's patch."""

        def patched(pod: SpreadPod, subset: Subset) -> bool:
            document = msgspec.json.decode(self._written_pods[f"{pod.namespace}/{pod.name}"])
            return is_as_patched(document, spread.subset(subset.name))

        return GroupingContext(self._nodes, patched)

    @cached_property
    def whitelist(self) -> AllowedKinds:
        """The kinds that OpenKruise's configuration allows. Raises SpreadFileError."""
        for manifest in self._of_kind("ConfigMap"):
            if manifest_key(manifest) == f"{_KRUISE_NAMESPACE}/{CONFIGURATION}":
                return _read(manifest, decode_allowed_kinds)
        return NO_ALLOWED_KINDS

    @cached_property
    def _nodes(self) -> Mapping[str, Node]:
        return self._decoded_by_key("Node", decode_node, lambda node: node.name)

    @cached_property
    def _pods(self) -> Mapping[str, SpreadPod]:
        return self._decoded_by_key(
            "Pod", decode_spread_pod, lambda pod: f"{pod.namespace}/{pod.name}"
        )

    @cached_property
    def _written_pods(self) -> Mapping[str, bytes]:
        return {manifest_key(manifest): manifest.raw for manifest in self._of_kind("Pod")}

    @cached_property
    def _scaled(self) -> list[ScaledKind]:
        defined = self._decoded("CustomResourceDefinition", decode_scaled_kinds)
        return [each for kinds in defined if not isinstance(kinds, Unreadable) for each in kinds]

    def _workloads(self, kind: str, namespace: str, name: str = "") -> Iterator[TargetWorkload]:
        for manifest in self._of_kind(kind):
            own_namespace, _, own_name = manifest_key(manifest).partition("/")
            if own_namespace == namespace and name in ("", own_name):
                yield _read(manifest, lambda raw: decode_workload(kind, raw, self._scaled))

    def _of_kind(self, kind: str) -> Iterator[Manifest]:
        return (manifest for manifest in self._manifests if manifest.kind == kind)

    def _decoded(self, kind: str, decode: Decode[T]) -> list[T | Unreadable]:
        read = tolerant_decoder(kind, decode)
        return [read(manifest.raw) for manifest in self._of_kind(kind)]

    def _decoded_by_key(
        self, kind: str, decode: Decode[T], key: Callable[[T], str]
    ) -> Mapping[str, T]:
        store: ObjectStore[T] = ObjectStore(key)
        store.replace(self._decoded(kind, decode))
        return store.by_key


def decode_spread_manifest(manifest: Manifest) -> StoredWorkloadSpread:
    """Decode a WorkloadSpread. Raise SpreadFileError."""
    return _read(manifest, decode_workloadspread)


def _read(manifest: Manifest, decode: Decode[T]) -> T:
    try:
        return decode(manifest.raw)
    except ObjectError as error:
        raise SpreadFileError(f"{manifest.source}: {error}") from None
