"""Cluster IPs and IP families of a Service: defaulting and validation.

The cluster has one range of addresses, of IPv4, so no Service has two addresses. A Service without
an address is headless ("None"); a Service of type ExternalName has none of these fields.

Sources: pkg/registry/core/service (normalizeClusterIPs and patchAllocatedValues in
storage/storage.go, initIPFamilyFields in storage/alloc.go, dropTypeDependentFields in strategy.go),
pkg/apis/core/validation (ValidateServiceClusterIPsRelatedFields), v1.37.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv6Address, ip_address
from typing import Any, Final

from fakeapi.apiserver.wire.errors import Cause, duplicate, invalid_value, unsupported_value

Spec = dict[str, Any]
PreviousSpec = Mapping[str, Any]

NONE: Final = "None"

_CLUSTER_IPS: Final = "spec.clusterIPs"
_POLICY: Final = "spec.ipFamilyPolicy"
_CLUSTER_FAMILY: Final = "IPv4"
_OTHER_FAMILY: Final = {"IPv4": "IPv6", "IPv6": "IPv4"}
_SINGLE: Final = "SingleStack"
_BOTH: Final = "RequireDualStack"
_POLICIES: Final = ("PreferDualStack", _BOTH, _SINGLE)


def has_cluster_ips(spec: PreviousSpec) -> bool:
    """Return whether Services of this type have cluster IPs ("None" included)."""
    return spec.get("type") != "ExternalName"


def cluster_ips_of(spec: PreviousSpec) -> list[str]:
    """Return a Service's cluster IPs; ``clusterIP`` counts if ``clusterIPs`` is not set."""
    alone = spec.get("clusterIP")
    return list(spec.get("clusterIPs") or ([alone] if alone else ()))


def normalize_cluster_ips(spec: Spec, before: PreviousSpec) -> None:
    """Keep fields that an update omits, and set ``clusterIPs`` from ``clusterIP``.

    ``before`` is the previous spec; it is empty for a new Service.
    """
    old = cluster_ips_of(before)
    if old and has_cluster_ips(spec) and has_cluster_ips(before):
        spec["clusterIP"] = spec.get("clusterIP") or old[0]
        spec["clusterIPs"] = spec.get("clusterIPs") or old
    alone, was = spec.get("clusterIP") or "", old[0] if old else ""
    several = spec.get("clusterIPs") or []
    if alone == was and not several:
        _set(spec, "clusterIPs", old)
    elif alone != was and several == old:
        _set(spec, "clusterIPs", [alone] if alone else [])


def _set(spec: Spec, name: str, values: list[str]) -> None:
    spec.pop(name, None)
    if values:
        spec[name] = values


def drop_type_dependent_fields(spec: Spec, before: PreviousSpec) -> None:
    """Drop from an ExternalName the fields of its previous type, unless the client changed them."""
    spec.pop("internalTrafficPolicy", None)
    if not has_cluster_ips(before):
        return
    old = cluster_ips_of(before)
    if old and [spec.get("clusterIP"), spec.get("clusterIPs")] == [old[0], old]:
        del spec["clusterIP"], spec["clusterIPs"]
    for name in ("ipFamilies", "ipFamilyPolicy"):
        if name in spec and spec[name] == before.get(name):
            del spec[name]


def init_ip_families(spec: Spec, before: PreviousSpec) -> list[Cause]:
    """Set the IP families of a Service that has addresses, and return the errors."""
    if spec.get("ipFamilyPolicy") is None:
        usual = _BOTH if _is_headless_without_selector(spec) else _SINGLE
        spec["ipFamilyPolicy"] = before.get("ipFamilyPolicy") or usual
    if faults := list(_field_errors(spec)):
        return faults
    families, old = list(spec.get("ipFamilies") or ()), list(before.get("ipFamilies") or ())
    if spec["ipFamilyPolicy"] == _SINGLE and families == old:
        families = families[:1]
    if faults := list(_count_errors(spec, families, old)):
        return faults
    families = families or [_CLUSTER_FAMILY]
    if _is_headless_without_selector(spec):
        if spec["ipFamilyPolicy"] != _SINGLE and len(families) == 1:
            families.append(_OTHER_FAMILY[families[0]])
    elif faults := list(_cluster_errors(spec, families)):
        return faults
    spec["ipFamilies"] = families
    return []


def _is_headless_without_selector(spec: PreviousSpec) -> bool:
    """Return whether a Service is headless without a selector: any families are valid then."""
    return spec.get("clusterIP") == NONE and not spec.get("selector")


def _field_errors(spec: PreviousSpec) -> Iterator[Cause]:
    """Yield the errors that do not depend on the families of the cluster."""
    alone, several = spec.get("clusterIP") or "", list(spec.get("clusterIPs") or ())
    families = list(spec.get("ipFamilies") or ())
    if several and not alone:
        yield invalid_value(
            _CLUSTER_IPS, several, "must be empty when `clusterIP` is not specified"
        )
    elif several and several[0] != alone:
        yield invalid_value(_CLUSTER_IPS, several, "first value must match `clusterIP`")
    for index, family in enumerate(families):
        if family not in _OTHER_FAMILY:
            yield unsupported_value(f"spec.ipFamilies[{index}]", family, tuple(_OTHER_FAMILY))
        if family in families[:index]:
            yield duplicate(f"spec.ipFamilies[{index}]", family)
    if spec["ipFamilyPolicy"] not in _POLICIES:
        yield unsupported_value(_POLICY, spec["ipFamilyPolicy"], _POLICIES)
    wrong = list(_address_errors(several))
    yield from wrong
    if several[2:]:
        yield invalid_value(_CLUSTER_IPS, several, "may only hold up to 2 values")
    if not wrong and several[:1] != [NONE]:
        yield from _family_mismatch_errors(several, families)


def _family_mismatch_errors(several: list[str], families: list[str]) -> Iterator[Cause]:
    """Yield the errors of addresses that do not match their families."""
    if several[1:] and len(set(map(_family, several))) == 1:
        rule = "may specify no more than one IP for each IP family"
        yield invalid_value(_CLUSTER_IPS, several, rule)
    for index, (address, family) in enumerate(zip(several, families, strict=False)):
        if family in _OTHER_FAMILY and _family(address) != family:
            rule = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            yield invalid_value(f"{_CLUSTER_IPS}[{index}]", address, rule)


def _address_errors(several: list[str]) -> Iterator[Cause]:
    for index, address in enumerate(several):
        if index == 0 and address == NONE:
            if len(several) > 1:
                yield invalid_value(
                    _CLUSTER_IPS, several, "'None' must be the first and only value"
                )
        elif not _is_address(address):
            rule = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            yield invalid_value(f"{_CLUSTER_IPS}[{index}]", address, rule)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _family(address: str) -> str:
    return "IPv6" if isinstance(ip_address(address), IPv6Address) else "IPv4"


def _count_errors(spec: PreviousSpec, families: list[str], old: list[str]) -> Iterator[Cause]:
    """Yield the errors of more or fewer addresses or families than the policy allows."""
    policy, several = spec["ipFamilyPolicy"], list(spec.get("clusterIPs") or ())
    if policy != _SINGLE and families and len(families) < len(old):
        rule = "must be 'SingleStack' to release the secondary IP family"
        yield invalid_value(_POLICY, policy, rule)
    for what, values in (("cluster IPs", several), ("IP families", families)):
        if policy == _SINGLE and len(values) > 1:
            rule = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are"
            yield invalid_value(_POLICY, policy, f"{rule} specified")
    for index in range(len(families), len(several)):
        if several[index] != NONE and _family(several[index]) != _CLUSTER_FAMILY:
            rule = f"{_family(several[index])} is not configured on this cluster"
            yield invalid_value(f"{_CLUSTER_IPS}[{index}]", several, rule)


def _cluster_errors(spec: PreviousSpec, families: list[str]) -> Iterator[Cause]:
    """Yield the errors of families that the cluster does not have."""
    if spec["ipFamilyPolicy"] == _BOTH:
        rule = "this cluster is not configured for dual-stack services"
        yield invalid_value(_POLICY, _BOTH, rule)
    for index, family in enumerate(families):
        if family != _CLUSTER_FAMILY:
            yield invalid_value(
                f"spec.ipFamilies[{index}]", family, "not configured on this cluster"
            )
