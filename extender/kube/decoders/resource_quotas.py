"""ResourceQuotas, as far as they limit what pods request. The decoder raises ObjectError."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from extender.kube.decoders import core_v1_types
from extender.kube.decoders.typed_decoder import amounts_of, object_decoder
from policies.kubernetes.pod_requests import Amounts, is_extended
from policies.kubernetes.policy_objects import RESOURCE_QUOTA, ResourceQuota
from policies.kubernetes.quantity import milli, units

_REQUESTS = "requests."
_STANDARD = frozenset(("cpu", "memory", "ephemeral-storage"))


class ResourceQuotaSpecV1(Struct):
    """v1.ResourceQuotaSpec."""

    hard: core_v1_types.ResourceList | None = None
    scopes: list[str] | None = None
    scopeSelector: object = None


class ResourceQuotaV1(Struct):
    """v1.ResourceQuota."""

    metadata: core_v1_types.ObjectMetaV1
    spec: ResourceQuotaSpecV1 | None = None


def _resource_quota(shape: ResourceQuotaV1) -> ResourceQuota:
    meta, spec = shape.metadata, shape.spec or ResourceQuotaSpecV1()
    hard = amounts_of("spec.hard", spec.hard)
    scoped = spec.scopes or spec.scopeSelector is not None
    return ResourceQuota(
        meta.namespace or "default", meta.name, {} if scoped else _limits_of_requests(hard)
    )


def _limits_of_requests(hard: Amounts) -> Mapping[str, int]:
    """Return the limits of requests by resource; ``cpu`` and ``requests.cpu`` mean the same.

    Source: quota/v1/evaluator/core/pods.go in pkg, which counts limits, pods and objects as well.
    """
    found: dict[str, int] = {}
    for name, nanos in hard.items():
        resource = name.removeprefix(_REQUESTS)
        extended = resource != name and is_extended(resource)
        if extended or resource in _STANDARD or resource.startswith("hugepages-"):
            amount = milli(nanos) if resource == "cpu" else units(nanos)
            found[resource] = min(amount, found.get(resource, amount))
    return found


decode_resource_quota = object_decoder(RESOURCE_QUOTA, ResourceQuotaV1, _resource_quota)
