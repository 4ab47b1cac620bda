"""Immutable fields, with upstream's messages.

Only images, deadlines and additional tolerations of a pod may change, only the size of a claim, and
never a selector. Upstream adds a Go diff to some of these messages; it is left out here.

Sources: pkg/apis/core/validation (ValidatePodUpdate, ValidatePersistentVolumeClaimUpdate,
ValidateSecretUpdate, ValidateConfigMapUpdate), pkg/apis/*/validation, v1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from typing import Any, Final

from fakeapi.apiserver.defaulting.service_cluster_ips import cluster_ips_of, has_cluster_ips
from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.field_limits import IMMUTABLE
from fakeapi.apiserver.kinds.structural_types import schema_of
from fakeapi.apiserver.schema.crds.definition_validation import immutable_field_errors
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.validation.devices import claim_changes, slice_changes
from fakeapi.apiserver.validation.pod_groups import (
    composite_pod_group_changes,
    pod_group_changes,
    workload_changes,
)
from fakeapi.apiserver.validation.quotas import quota_changes
from fakeapi.apiserver.wire.errors import Cause, forbidden_field, invalid_value
from fakeapi.apiserver.wire.raw_json import json_equal
from fakeapi.apiserver.wire.struct_decoder import StructDecodeError, decode_struct

Object = Mapping[str, Any]
Rule = Callable[[Object, Object], Iterator[Cause]]

_FIELD: Final = "field is immutable"
_IMMUTABLE_DATA: Final = "field is immutable when `immutable` is set"
_POD: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)
_CLAIM: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName "
    "for bound claims"
)


def immutable_field_changes(kind: ResourceInfo, document: Document, old: Object) -> Iterator[Cause]:
    """Yield the errors of an update that changes immutable fields.

    ``old`` may have been loaded in another spelling; differences of spelling are ignored.
    """
    if any(_change_errors(kind, document, old)):
        yield from _change_errors(kind, document, _decoded_copy(kind, old))


def _decoded_copy(kind: ResourceInfo, old: Object) -> Document:
    spelled = deepcopy(dict(old))
    with suppress(StructDecodeError):
        decode_struct(schema_of(kind), spelled)
    return spelled


def _change_errors(kind: ResourceInfo, document: Object, old: Object) -> Iterator[Cause]:
    yield from _fixed_field_errors(kind, document, old)
    rule = _RULES.get(kind.resource)
    if rule is not None:
        yield from rule(document, old)


def _fixed_field_errors(kind: ResourceInfo, document: Object, old: Object) -> Iterator[Cause]:
    for path in IMMUTABLE.get(kind.resource, ()):
        now, before = _at(document, path), _at(old, path)
        if before is not None and not json_equal(now, before):
            yield invalid_value(path, now, _FIELD)


def _at(document: Any, path: str) -> Any:
    for step in path.split("."):
        document = document.get(step) if isinstance(document, Mapping) else None
    return document


def _pod(pod: Object, old: Object) -> Iterator[Cause]:
    now, before = pod.get("spec") or {}, old.get("spec") or {}
    if now == before:
        return
    for group in ("initContainers", "containers"):
        if _names(now, group) != _names(before, group):
            rule = "pod updates may not add or remove containers"
            yield forbidden_field(f"spec.{group}", rule)
            return
    added = list(now.get("tolerations") or ())
    if any(t not in added for t in before.get("tolerations") or ()):
        rule = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden_field("spec.tolerations", rule)
    if _immutable_pod_fields(now, before) != _immutable_pod_fields(before, before):
        yield forbidden_field("spec", _POD)


def _names(spec: Object, group: str) -> list[Any]:
    return [container.get("name") for container in spec.get(group) or ()]


def _immutable_pod_fields(spec: Object, before: Object) -> dict[str, Any]:
    """Return the immutable fields of a pod's spec; ``before`` is the previous spec."""
    mutable = {"activeDeadlineSeconds", "tolerations", "containers", "initContainers"}
    mutable |= {"ephemeralContainers", "schedulingGates", "priority", "preemptionPolicy"}
    if before.get("schedulingGates"):
        mutable |= {"nodeSelector", "affinity"}
    if before.get("terminationGracePeriodSeconds", 0) < 0:
        mutable.add("terminationGracePeriodSeconds")
    kept = {name: value for name, value in spec.items() if name not in mutable}
    for group in ("containers", "initContainers"):
        kept[group] = [{**c, "image": ""} for c in spec.get(group) or ()]
    return kept


def _config_map(config_map: Object, old: Object) -> Iterator[Cause]:
    yield from _immutable_data_errors(config_map, old, "data", "binaryData")


def _secret(secret: Object, old: Object) -> Iterator[Cause]:
    yield from _immutable_data_errors(secret, old, "data")


def _immutable_data_errors(document: Object, old: Object, *names: str) -> Iterator[Cause]:
    if not old.get("immutable"):
        return
    if not document.get("immutable"):
        yield forbidden_field("immutable", _IMMUTABLE_DATA)
    for name in names:
        if document.get(name) != old.get(name):
            yield forbidden_field(name, _IMMUTABLE_DATA)


def _role_ref(binding: Object, old: Object) -> Iterator[Cause]:
    reference = binding.get("roleRef") or {}
    if reference != old.get("roleRef"):
        formatted = {f"{name[:1].upper()}{name[1:]}": value for name, value in reference.items()}
        formatted["APIGroup"] = formatted.pop("ApiGroup", "")
        yield invalid_value("roleRef", formatted, _FIELD)


def _service(service: Object, old: Object) -> Iterator[Cause]:
    now, before = service.get("spec") or {}, old.get("spec") or {}
    kept, requested = cluster_ips_of(before), cluster_ips_of(now)
    if has_cluster_ips(now) and has_cluster_ips(before) and kept[:1] != requested[:1] and kept:
        yield invalid_value("spec.clusterIPs[0]", requested, "may not change once set")


def _claim(claim: Object, old: Object) -> Iterator[Cause]:
    now, before = dict(claim.get("spec") or {}), dict(old.get("spec") or {})
    for spec in (now, before):
        spec.pop("volumeAttributesClassName", None)
        spec["resources"] = {**(spec.get("resources") or {}), "requests": {}}
    if "volumeName" not in before:  # binding a claim sets its volume
        now.pop("volumeName", None)
    if now != before:
        yield forbidden_field("spec", _CLAIM)


def _storage_class(storage_class: Object, old: Object) -> Iterator[Cause]:
    if storage_class.get("parameters") != old.get("parameters"):
        yield forbidden_field("parameters", "updates to parameters are forbidden.")
    if storage_class.get("provisioner") != old.get("provisioner"):
        yield invalid_value("provisioner", None, _FIELD)
    for name in ("reclaimPolicy", "volumeBindingMode"):
        if storage_class.get(name) != old.get(name):
            yield invalid_value(name, storage_class.get(name), _FIELD)


_RULES: Final[Mapping[str, Rule]] = {
    "clusterrolebindings.rbac.authorization.k8s.io": _role_ref,
    "compositepodgroups.scheduling.k8s.io": composite_pod_group_changes,
    "configmaps": _config_map,
    "customresourcedefinitions.apiextensions.k8s.io": immutable_field_errors,
    "persistentvolumeclaims": _claim,
    "podgroups.scheduling.k8s.io": pod_group_changes,
    "pods": _pod,
    "resourceclaims.resource.k8s.io": claim_changes,
    "resourcequotas": quota_changes,
    "resourceslices.resource.k8s.io": slice_changes,
    "rolebindings.rbac.authorization.k8s.io": _role_ref,
    "secrets": _secret,
    "services": _service,
    "storageclasses.storage.k8s.io": _storage_class,
    "workloads.scheduling.k8s.io": workload_changes,
}
