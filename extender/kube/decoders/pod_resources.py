"""Resource requests and limits of a pod, and how the API server defaults them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from extender.kube.decoders import core_v1_types
from extender.kube.decoders.typed_decoder import amounts_of, reported_amounts
from policies.kubernetes.pod_requests import Amounts, ContainerRequests, PodResources

_INFEASIBLE: Final = "Infeasible"


def pod_resources(spec: core_v1_types.PodSpecV1, status: core_v1_types.PodStatusV1) -> PodResources:
    """Read the resources that a pod requests, and validate its limits. Raise FieldError."""
    reported = {s.name: s for s in status.initContainerStatuses or ()}
    reported |= {s.name: s for s in status.containerStatuses or ()}
    of_pod, in_force = spec.resources or core_v1_types.ResourceRequirementsV1(), status.resources
    return PodResources(
        containers=tuple(_containers("spec.containers", spec.containers, reported)),
        init_containers=tuple(_containers("spec.initContainers", spec.initContainers, reported)),
        overhead=amounts_of("spec.overhead", spec.overhead),
        pod_level=_requests("spec.resources", of_pod),
        pod_actuated=reported_amounts("status.resources", in_force.requests if in_force else None),
        pod_allocated=reported_amounts("status.allocatedResources", status.allocatedResources),
        resize_infeasible=_is_resize_infeasible(status.conditions or ()),
        resize_status_infeasible=status.resize == _INFEASIBLE,
    )


def mentioned_resources(spec: core_v1_types.PodSpecV1) -> Iterator[str]:
    """List every resource that a container requests or limits, even to zero."""
    for container in _all_containers(spec):
        amounts = container.resources or core_v1_types.ResourceRequirementsV1()
        yield from amounts.requests or ()
        yield from amounts.limits or ()


class PodResourceFields(Protocol):
    """The fields of a pod spec that list its containers."""

    containers: list[core_v1_types.ContainerV1] | None
    initContainers: list[core_v1_types.ContainerV1] | None


def default_requests(spec: PodResourceFields) -> None:
    """Set each container's missing requests to its limits, in place.

    Source: SetDefaults_Pod in pkg/apis/core/v1/defaults.go.
    """
    for container in _all_containers(spec):
        amounts = container.resources
        if amounts is not None and amounts.limits:
            amounts.requests = {**amounts.limits, **(amounts.requests or {})}


def _all_containers(spec: PodResourceFields) -> Iterable[core_v1_types.ContainerV1]:
    return (*(spec.initContainers or ()), *(spec.containers or ()))


def _is_resize_infeasible(conditions: Iterable[core_v1_types.PodConditionV1]) -> bool:
    pending = next((c for c in conditions if c.type == "PodResizePending"), None)
    return pending is not None and pending.reason == _INFEASIBLE


def _containers(
    path: str,
    containers: Sequence[core_v1_types.ContainerV1] | None,
    reported: dict[str, core_v1_types.ContainerStatusV1],
) -> Iterator[ContainerRequests]:
    for index, container in enumerate(containers or ()):
        resources = container.resources or core_v1_types.ResourceRequirementsV1()
        status = reported.get(container.name, core_v1_types.ContainerStatusV1())
        in_force = status.resources
        yield ContainerRequests(
            spec=_requests(f"{path}[{index}].resources", resources),
            allocated=reported_amounts("status.allocatedResources", status.allocatedResources),
            actuated=reported_amounts(
                "status.resources.requests", in_force.requests if in_force else None
            ),
            reported=in_force is not None,
            restartable=container.restartPolicy == "Always",
        )


def _requests(path: str, resources: core_v1_types.ResourceRequirementsV1) -> Amounts:
    # No decision reads limits, but Go rejects a pod with malformed limits, so it is unreadable.
    amounts_of(f"{path}.limits", resources.limits)
    return amounts_of(f"{path}.requests", resources.requests)
