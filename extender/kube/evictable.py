"""v1.Pod as the kubelet's eviction manager reads it; requests are summed as its release does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from extender.kube import shapes
from extender.kube.asking import default_requests
from extender.kube.decoding import amounts_of, decoded
from extender.kube.pods import toleration_of
from policies.eviction.pods import Container, EvictablePod, Volume
from policies.eviction.releases import EvictionRelease
from policies.eviction.requests import (
    Claims,
    is_best_effort,
    limited,
    pod_request,
    requested,
)
from policies.eviction.signals import Resource
from policies.eviction.values import NOTHING, Quantity, quantity
from policies.quantity import units
from policies.requests import ContainerRequests, PodResources
from policies.spelling import format_of, spell

_SOURCE = "kubernetes.io/config.source"
_MIRROR = "kubernetes.io/config.mirror"
_HASH = "kubernetes.io/config.hash"
_DEFAULT_GRACE_SECONDS = 30


class _Meta(shapes.Meta):
    annotations: dict[str, str] | None = None
    generation: int | None = None


class _EmptyDir(Struct, rename="camel"):
    medium: str | None = None
    size_limit: shapes.Quantity | None = None


class _Volume(Struct, rename="camel"):
    name: str = ""
    empty_dir: _EmptyDir | None = None
    host_path: object = None
    git_repo: object = None
    config_map: object = None


class _Spec(Struct):
    containers: list[shapes.Container] | None = None
    initContainers: list[shapes.Container] | None = None  # noqa: N815 - as Kubernetes writes it
    overhead: shapes.ResourceList | None = None
    resources: shapes.Amounts | None = None
    tolerations: list[shapes.TolerationShape] | None = None
    volumes: list[_Volume] | None = None
    priority: shapes.Int32 | None = None
    terminationGracePeriodSeconds: int | None = None  # noqa: N815


class _Status(Struct, rename={"quality": "qosClass"}):
    quality: str | None = None


class _Pod(Struct):
    metadata: _Meta
    spec: _Spec
    status: _Status | None = None


_pods = msgspec.json.Decoder(_Pod)


def decode_evictable(raw: bytes, release: EvictionRelease) -> EvictablePod:
    """Decode a v1.Pod. Raise ObjectError."""
    return decoded("Pod", _pods, raw, lambda shape: _pod(shape, release))


def decode_written_evictable(raw: bytes, release: EvictionRelease) -> EvictablePod:
    """Decode a v1.Pod that no API server has defaulted yet. Raise ObjectError."""

    def convert(shape: _Pod) -> EvictablePod:
        default_requests(shape.spec)
        if shape.spec.terminationGracePeriodSeconds is None:
            shape.spec.terminationGracePeriodSeconds = _DEFAULT_GRACE_SECONDS
        return _pod(shape, release)

    return decoded("Pod", _pods, raw, convert)


def static_uid(raw: bytes) -> str:
    """Return the UID under which a kubelet knows the static pod of a mirror pod; else ""."""
    annotations = _pods.decode(raw).metadata.annotations or {}
    return annotations.get(_HASH, "") if _MIRROR in annotations else ""


def _pod(shape: _Pod, release: EvictionRelease) -> EvictablePod:
    meta, spec = shape.metadata, shape.spec
    annotations = meta.annotations or {}
    claims = _claims(spec)
    quality = shape.status.quality if shape.status is not None else None
    whole = (spec.resources or shapes.Amounts()).requests or {}
    return EvictablePod(
        namespace=meta.namespace or "default",
        name=meta.name,
        uid=meta.uid or "",
        priority=spec.priority or 0,
        source=annotations.get(_SOURCE),
        mirror=_MIRROR in annotations,
        best_effort=quality == "BestEffort" if quality else is_best_effort(claims, release),
        tolerations=tuple(map(toleration_of, spec.tolerations or ())),
        grace_seconds=spec.terminationGracePeriodSeconds,
        generation=meta.generation or 0,
        memory_request=units(requested(claims, Resource.MEMORY, release)),
        storage_request=units(requested(claims, Resource.STORAGE, release)),
        pod_memory_request=(
            _quantity(whole[Resource.MEMORY]) if pod_request(claims, release) else None
        ),
        storage_limit=_storage_limit(claims, spec),
        containers=tuple(_containers(spec, release)),
        volumes=tuple(_volumes(spec.volumes or ())),
    )


def _claims(spec: _Spec) -> Claims:
    whole = spec.resources or shapes.Amounts()
    overhead = amounts_of("spec.overhead", spec.overhead)

    def of(kind: str) -> PodResources:
        return PodResources(
            tuple(_asked("spec.containers", spec.containers, kind)),
            tuple(_asked("spec.initContainers", spec.initContainers, kind)),
            overhead,
            amounts_of(f"spec.resources.{kind}", _listed(whole, kind)),
        )

    return Claims(of("requests"), of("limits"))


def _asked(
    path: str, containers: Iterable[shapes.Container] | None, kind: str
) -> Iterator[ContainerRequests]:
    for index, container in enumerate(containers or ()):
        listed = _listed(container.resources or shapes.Amounts(), kind)
        yield ContainerRequests(
            spec=amounts_of(f"{path}[{index}].resources.{kind}", listed),
            restartable=_restarts(container),
        )


def _containers(spec: _Spec, release: EvictionRelease) -> Iterator[Container]:
    """Return the containers of eviction messages; of init containers, only sidecars have limits."""
    for container in spec.containers or ():
        yield _container(container, _limit(container))
    if release.tells_init_containers:
        for container in spec.initContainers or ():
            limits = release.limits_sidecars and _restarts(container)
            yield _container(container, _limit(container) if limits else None)


def _container(container: shapes.Container, limit: Quantity | None) -> Container:
    asked = (container.resources or shapes.Amounts()).requests or {}
    return Container(
        container.name,
        _quantity(asked.get(Resource.MEMORY)),
        _quantity(asked.get(Resource.STORAGE)),
        limit,
    )


def _limit(container: shapes.Container) -> Quantity | None:
    limits = (container.resources or shapes.Amounts()).limits or {}
    return _quantity(limits[Resource.STORAGE]) if Resource.STORAGE in limits else None


def _storage_limit(claims: Claims, spec: _Spec) -> Quantity | None:
    """Return the sum of the limits, in the format of the first that is not zero."""
    total = limited(claims)
    if total is None:
        return None
    largest = max(_limits_at_once(spec), key=lambda limits: sum(each.nanos for each in limits))
    first = next((limit for limit in largest if limit.nanos), NOTHING)
    return Quantity(total, spell(total, format_of(first.text)))


def _limits_at_once(spec: _Spec) -> list[list[Quantity]]:
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


def _volumes(volumes: Iterable[_Volume]) -> Iterator[Volume]:
    for index, volume in enumerate(volumes):
        held = volume.empty_dir
        on_disk = held is not None and not held.medium
        others = (volume.host_path, volume.git_repo, volume.config_map)
        yield Volume(
            volume.name,
            local=on_disk or any(each is not None for each in others),
            size_limit=None if held is None else _size_limit(f"spec.volumes[{index}]", held),
            in_memory=held is not None and held.medium == "Memory",
        )


def _size_limit(path: str, held: _EmptyDir) -> Quantity | None:
    if held.size_limit is None:
        return None
    amounts_of(f"{path}.emptyDir", {"sizeLimit": held.size_limit})
    return _quantity(held.size_limit)


def _quantity(given: shapes.Quantity | None) -> Quantity:
    """Parse an amount that was already validated as a quantity."""
    return NOTHING if given is None else quantity(str(given).strip())


def _listed(amounts: shapes.Amounts, kind: str) -> shapes.ResourceList | None:
    return amounts.requests if kind == "requests" else amounts.limits


def _restarts(container: shapes.Container) -> bool:
    return container.restartPolicy == "Always"
