"""The objects of a cluster: from files, or listed from an API server.

A server lists the kinds that decisions read, as far as it serves them and permits it. Nodes and
pods are required. A kind that is not listed counts as unknown, as in files that do not have it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from extender.cluster.policy_objects import events_of_pods
from extender.kube.decoders.manifests import Manifest, ManifestError, read_manifests
from extender.kube.decoders.typed_decoder import identify_unreadable
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import EVERYTHING, Client, Selection
from extender.kube.rest.discovery import ServedResource, discover
from policies.kubernetes.policy_objects import AUTOSCALER_REASONS, EVENT, RESOURCE_QUOTA


@dataclass(frozen=True, slots=True)
class ClusterObjects:
    """The objects of a cluster.

    ``source`` is their origin, such as ``--cluster pods.yaml``. ``problems`` has one line for each
    kind that could not be listed.
    """

    manifests: Sequence[Manifest]
    source: str
    problems: Sequence[str] = ()

    def find(self, kind: str, key: str) -> Manifest | None:
        """Return the object ``namespace/name`` of a kind; the last one if files repeat it."""
        found = [each for each in self.manifests if each.kind == kind and manifest_key(each) == key]
        return found[-1] if found else None


_CORE: Final = frozenset({""})
_APPS: Final = frozenset({"apps"})
_STORAGE: Final = frozenset({"storage.k8s.io"})
_DEVICES: Final = frozenset({"resource.k8s.io"})
_SCHEDULING: Final = frozenset({"scheduling.k8s.io"})
_REQUIRED: Final = frozenset({"Node", "Pod"})

SCHEDULING_KINDS: Final[Mapping[str, Collection[str]]] = {
    **dict.fromkeys(("Node", "Pod", "Namespace", "Service", "ReplicationController"), _CORE),
    **dict.fromkeys(("PersistentVolumeClaim", "PersistentVolume", RESOURCE_QUOTA, EVENT), _CORE),
    "PodDisruptionBudget": frozenset({"policy"}),
    **dict.fromkeys(("PriorityClass", "PodGroup", "CompositePodGroup"), _SCHEDULING),
    **dict.fromkeys(("ReplicaSet", "StatefulSet"), _APPS),
    **dict.fromkeys(("StorageClass", "CSINode", "CSIDriver"), _STORAGE),
    **dict.fromkeys(("CSIStorageCapacity", "VolumeAttachment"), _STORAGE),
    **dict.fromkeys(("ResourceClaim", "ResourceSlice"), _DEVICES),
    **dict.fromkeys(("DeviceClass", "DeviceTaintRule"), _DEVICES),
}
"""The kinds that preemption reads, with their groups."""

REPLICA_KINDS: Final = {kind: SCHEDULING_KINDS[kind] for kind in ("Pod", "ReplicaSet")}
"""The kinds that a scale-down reads, with their groups."""

EVICTION_KINDS: Final = {kind: SCHEDULING_KINDS[kind] for kind in ("Node", "Pod", "PriorityClass")}
"""The kinds that an eviction by the kubelet reads, with their groups."""

_KRUISE: Final = frozenset({"apps.kruise.io"})
SPREAD_KINDS: Final[Mapping[str, Collection[str]]] = {
    **SCHEDULING_KINDS,
    "Deployment": _APPS,
    "Job": frozenset({"batch"}),
    **dict.fromkeys(("WorkloadSpread", "CloneSet", "UnitedDeployment"), _KRUISE),
    "StatefulSet": _APPS | _KRUISE,
    "CustomResourceDefinition": frozenset({"apiextensions.k8s.io"}),
    "ConfigMap": _CORE,
}
"""The kinds that WorkloadSpreads read, with their groups."""

_SELECTIONS: Final = {
    "ConfigMap": (Selection(namespace="kruise-system"),),
    EVENT: tuple(events_of_pods(reason) for reason in AUTOSCALER_REASONS),
}
"""Of these kinds, only the objects that one of the selections has are listed."""


WarnAboutFields = Callable[[Iterable[Manifest]], None]
"""Prints a warning for each field of the objects that their kind does not have."""


def no_warnings(_manifests: Iterable[Manifest]) -> None:
    """Print nothing."""


def read_objects(paths: Iterable[str], warn: WarnAboutFields = no_warnings) -> ClusterObjects:
    """Read all files as one cluster. Raise ManifestError."""
    paths = list(paths)
    manifests = [manifest for path in paths for manifest in read_manifests(path)]
    warn(manifests)
    return ClusterObjects(manifests, f"--cluster {', '.join(paths)}")


async def list_objects(
    client: Client, source: str, kinds: Mapping[str, Collection[str]]
) -> ClusterObjects:
    """List the objects of the kinds that a server serves.

    Raise ApiError, MalformedError and TransportError, also if a required kind cannot be listed.
    """
    served = await discover(client)
    manifests: list[Manifest] = []
    problems = [f"{group}: {problem}" for group, problem in served.failures.items()]
    for each in served.resources:
        if each.resource.group not in kinds.get(each.kind, ()) or "list" not in each.verbs:
            continue
        try:
            manifests.extend(await _list_kind(client, source, each))
        except ApiError as error:
            if each.kind in _REQUIRED:
                raise
            problems.append(f"{each.resource.plural} count as unknown: {error}")
    return ClusterObjects(manifests, source, problems)


async def _list_kind(client: Client, source: str, served: ServedResource) -> list[Manifest]:
    """List the objects of one kind. Items of a list have no kind and apiVersion of their own."""
    header = msgspec.json.encode({"apiVersion": served.api_version, "kind": served.kind})[:-1]
    items: list[bytes] = []
    for selection in _SELECTIONS.get(served.kind, (EVERYTHING,)):
        items += (await client.list(served.resource, bytes, selection)).items
    plural = served.resource.plural
    return [
        Manifest(served.kind, b"%b,%b" % (header, raw.lstrip()[1:]), f"{plural}[{i}] of {source}")
        for i, raw in enumerate(items)
    ]


def manifest_key(manifest: Manifest) -> str:
    """Return ``namespace/name`` of an object, even if the rest of it cannot be decoded."""
    named = identify_unreadable(manifest.kind, manifest.raw, "")
    return f"{named.namespace or 'default'}/{named.name}"


class _ObjectMeta(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    generateName: str = ""  # noqa: N815 - the key as Kubernetes writes it


class _PodTemplate(msgspec.Struct):
    spec: msgspec.Raw
    metadata: dict[str, msgspec.Raw] = {}


class _TemplateSpec(msgspec.Struct):
    template: _PodTemplate


class _Workload(msgspec.Struct):
    spec: _TemplateSpec
    metadata: _ObjectMeta = _ObjectMeta()


class _JobTemplateSpec(msgspec.Struct):
    jobTemplate: _Workload  # noqa: N815 - the key as Kubernetes writes it


class _CronJob(msgspec.Struct):
    spec: _JobTemplateSpec
    metadata: _ObjectMeta = _ObjectMeta()


_WORKLOAD_KINDS: Final = frozenset(
    {"CloneSet", "CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet"}
    | {"ReplicationController", "StatefulSet"}
)


def find_pod(text: str, objects: ClusterObjects, warn: WarnAboutFields = no_warnings) -> Manifest:
    """Return the pod that ``--pod`` names: in a file, or ``NAMESPACE/NAME`` in the cluster.

    A file holds exactly one pod or workload, of which the pod template is used. Raise
    ManifestError.
    """
    namespace, _, name = text.partition("/")
    found = objects.find("Pod", text) if namespace and name else None
    if found is not None:
        return found
    try:
        manifests = read_manifests(text)
    except ManifestError as error:
        if not namespace or not name or "/" in name:
            raise
        raise ManifestError(f"{error}; and no pod {text!r} in {objects.source}") from None
    return only_pod(manifests, text, warn)


def only_pod(
    manifests: Iterable[Manifest], source: str, warn: WarnAboutFields = no_warnings
) -> Manifest:
    """Return the only pod of a file or text, or that of its only workload's template.

    Raise ManifestError; ``source`` is the name in its text.
    """
    manifests = list(manifests)
    pods = [each for each in manifests if each.kind == "Pod"]
    written = pods or [each for each in manifests if each.kind in _WORKLOAD_KINDS]
    if len(written) != 1:
        raise ManifestError(
            f"{source}: holds {len(pods)} pods and {len(written) - len(pods)} workloads; "
            "expected exactly one"
        )
    warn(written)
    return written[0] if pods else _pod_of_workload(written[0])


def _pod_of_workload(manifest: Manifest) -> Manifest:
    """Return a pod from the template of a workload, with the workload's name and namespace."""
    try:
        if manifest.kind == "CronJob":
            job = msgspec.json.decode(manifest.raw, type=_CronJob)
            owner, template = job.metadata, job.spec.jobTemplate.spec.template
        else:
            workload = msgspec.json.decode(manifest.raw, type=_Workload)
            owner, template = workload.metadata, workload.spec.template
    except msgspec.ValidationError as error:
        raise ManifestError(f"{manifest.source}: no pod template: {error}") from None
    named = {"name": owner.name or owner.generateName, "namespace": owner.namespace or "default"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**template.metadata, **named},
        "spec": template.spec,
    }
    return Manifest("Pod", msgspec.json.encode(pod), f"the pod template of {manifest.source}")
