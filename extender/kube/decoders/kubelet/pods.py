"""v1.Pod as the kubelet's eviction manager reads it; requests are summed as its release does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from extender.kube.decoders import core_v1_types
from extender.kube.decoders.pod_resources import default_requests
from extender.kube.decoders.pod_specs import toleration_of
from extender.kube.decoders.typed_decoder import amounts_of, decode_object
from policies.eviction.kubelet_releases import EvictionRelease
from policies.eviction.pods import (
    Container,
    EvictablePod,
    KubeletRequests,
    Volume,
    is_best_effort,
    reports_pod_memory_request,
    requested_nanos,
    storage_limit_nanos,
)
from policies.eviction.signals import ZERO_QUANTITY, Quantity, Resource, read_quantity
from policies.kubernetes.pod_requests import ContainerRequests, PodResources
from policies.kubernetes.quantity import format_quantity, quantity_format, units

_SOURCE = "kubernetes.io/config.source"
_MIRROR = "kubernetes.io/config.mirror"
_HASH = "kubernetes.io/config.hash"
_DEFAULT_GRACE_SECONDS = 30


class _KubeletPodMeta(core_v1_types.ObjectMetaV1):
    annotations: dict[str, str] | None = None
    generation: int | None = None


class _EmptyDirVolume(Struct, rename="camel"):
    medium: str | None = None
    size_limit: core_v1_types.Quantity | None = None


class _KubeletVolume(Struct, rename="camel"):
    name: str = ""
    empty_dir: _EmptyDirVolume | None = None
    host_path: object = None
    git_repo: object = None
    config_map: object = None


class _KubeletPodSpec(Struct):
    containers: list[core_v1_types.ContainerV1] | None = None
    initContainers: list[core_v1_types.ContainerV1] | None = None
    overhead: core_v1_types.ResourceList | None = None
    resources: core_v1_types.ResourceRequirementsV1 | None = None
    tolerations: list[core_v1_types.TolerationV1] | None = None
    volumes: list[_KubeletVolume] | None = None
    priority: core_v1_types.Int32 | None = None
    terminationGracePeriodSeconds: int | None = None


class _KubeletPodStatus(Struct, rename={"quality": "qosClass"}):
    quality: str | None = None


class _KubeletPod(Struct):
    metadata: _KubeletPodMeta
    spec: _KubeletPodSpec
    status: _KubeletPodStatus | None = None


_pods = msgspec.json.Decoder(_KubeletPod)


def decode_evictable_pod(raw: bytes, release: EvictionRelease) -> EvictablePod:
    """Decode a v1.Pod. Raise ObjectError."""
    return decode_object("Pod", _pods, raw, lambda shape: _pod(shape, release))


def decode_undefaulted_evictable_pod(raw: bytes, release: EvictionRelease) -> EvictablePod:
    """Decode a v1.Pod that no API server has defaulted yet. Raise ObjectError."""

    def convert(shape: _KubeletPod) -> EvictablePod:
        default_requests(shape.spec)
        if shape.spec.terminationGracePeriodSeconds is None:
            shape.spec.terminationGracePeriodSeconds = _DEFAULT_GRACE_SECONDS
        return _pod(shape, release)

    return decode_object("Pod", _pods, raw, convert)


def static_pod_uid(raw: bytes) -> str:
    """Return the UID under which a kubelet knows the static pod of a mirror pod; else ""."""
    annotations = _pods.decode(raw).metadata.annotations or {}
    return annotations.get(_HASH, "") if _MIRROR in annotations else ""


def _pod(shape: _KubeletPod, release: EvictionRelease) -> EvictablePod:
    meta, spec = shape.metadata, shape.spec
    annotations = meta.annotations or {}
    resources = _kubelet_requests(spec)
    quality = shape.status.quality if shape.status is not None else None
    whole = (spec.resources or core_v1_types.ResourceRequirementsV1()).requests or {}
    return EvictablePod(
        namespace=meta.namespace or "default",
        name=meta.name,
        uid=meta.uid or "",
        priority=spec.priority or 0,
        source=annotations.get(_SOURCE),
        mirror=_MIRROR in annotations,
        best_effort=quality == "BestEffort" if quality else is_best_effort(resources, release),
        tolerations=tuple(map(toleration_of, spec.tolerations or ())),
        grace_seconds=spec.terminationGracePeriodSeconds,
        generation=meta.generation or 0,
        memory_request=units(requested_nanos(resources, Resource.MEMORY, release)),
        storage_request=units(requested_nanos(resources, Resource.STORAGE, release)),
        pod_memory_request=(
            _quantity(whole[Resource.MEMORY])
            if reports_pod_memory_request(resources, release)
            else None
        ),
        storage_limit=_storage_limit(resources, spec),
        containers=tuple(_containers(spec, release)),
        volumes=tuple(_volumes(spec.volumes or ())),
    )


def _kubelet_requests(spec: _KubeletPodSpec) -> KubeletRequests:
    whole = spec.resources or core_v1_types.ResourceRequirementsV1()
    overhead = amounts_of("spec.overhead", spec.overhead)

    def of(kind: str) -> PodResources:
        return PodResources(
            tuple(_container_requests("spec.containers", spec.containers, kind)),
            tuple(_container_requests("spec.initContainers", spec.initContainers, kind)),
            overhead,
            amounts_of(f"spec.resources.{kind}", _listed(whole, kind)),
        )

    return KubeletRequests(of("requests"), of("limits"))


def _container_requests(
    path: str, containers: Iterable[core_v1_types.ContainerV1] | None, kind: str
) -> Iterator[ContainerRequests]:
    for index, container in enumerate(containers or ()):
        listed = _listed(container.resources or core_v1_types.ResourceRequirementsV1(), kind)
        yield ContainerRequests(
            spec=amounts_of(f"{path}[{index}].resources.{kind}", listed),
            restartable=_restarts(container),
        )


def _containers(spec: _KubeletPodSpec, release: EvictionRelease) -> Iterator[Container]:
    """Return the containers of eviction messages; of init containers, only sidecars have limits."""
    for container in spec.containers or ():
        yield _container(container, _limit(container))
    if release.reports_init_containers:
        for container in spec.initContainers or ():
            limits = release.limits_sidecars and _restarts(container)
            yield _container(container, _limit(container) if limits else None)


def _container(container: core_v1_types.ContainerV1, limit: Quantity | None) -> Container:
    requests = (container.resources or core_v1_types.ResourceRequirementsV1()).requests or {}
    return Container(
        container.name,
        _quantity(requests.get(Resource.MEMORY)),
        _quantity(requests.get(Resource.STORAGE)),
        limit,
    )


def _limit(container: core_v1_types.ContainerV1) -> Quantity | None:
    limits = (container.resources or core_v1_types.ResourceRequirementsV1()).limits or {}
    return _quantity(limits[Resource.STORAGE]) if Resource.STORAGE in limits else None


def _storage_limit(resources: KubeletRequests, spec: _KubeletPodSpec) -> Quantity | None:
    """Return the sum of the limits, in the format of the first that is not zero."""
    total = storage_limit_nanos(resources)
    if total is None:
        return None
    largest = max(_limits_at_once(spec), key=lambda limits: sum(each.nanos for each in limits))
    first = next((limit for limit in largest if limit.nanos), ZERO_QUANTITY)
    return Quantity(total, format_quantity(total, quantity_format(first.text)))


def _limits_at_once(spec: _KubeletPodSpec) -> list[list[Quantity]]:
    """List the limits that apply together: of running containers, and with each init container."""
    sidecars: list[Quantity] = []
    starting = []
    for container in spec.initContainers or ():
        own = [limit] if (limit := _limit(container)) is not None else []
        starting.append([*own, *sidecars])
        if _restarts(container):
            sidecars.extend(own)
    limits = map(_limit, spec.containers or ())
    running = [limit for limit in limits if limit is not None]
    return [[*running, *sidecars], *starting]


def _volumes(volumes: Iterable[_KubeletVolume]) -> Iterator[Volume]:
    for index, volume in enumerate(volumes):
        empty_dir = volume.empty_dir
        on_disk = empty_dir is not None and not empty_dir.medium
        others = (volume.host_path, volume.git_repo, volume.config_map)
        yield Volume(
            volume.name,
            local=on_disk or any(each is not None for each in others),
            size_limit=_size_limit(f"spec.volumes[{index}].emptyDir", empty_dir),
            in_memory=empty_dir is not None and empty_dir.medium == "Memory",
        )


def _size_limit(path: str, empty_dir: _EmptyDirVolume | None) -> Quantity | None:
    if empty_dir is None or empty_dir.size_limit is None:
        return None
    amounts_of(path, {"sizeLimit": empty_dir.size_limit})
    return _quantity(empty_dir.size_limit)


def _quantity(amount: core_v1_types.Quantity | None) -> Quantity:
    """Parse an amount that was already validated as a quantity."""
    return ZERO_QUANTITY if amount is None else read_quantity(str(amount).strip())


def _listed(
    amounts: core_v1_types.ResourceRequirementsV1, kind: str
) -> core_v1_types.ResourceList | None:
    return amounts.requests if kind == "requests" else amounts.limits


def _restarts(container: core_v1_types.ContainerV1) -> bool:
    return container.restartPolicy == "Always"
