"""Workloads, the kinds between them and their pods, and the list of kinds that may be targeted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import msgspec

from extender.kube.decoders.typed_decoder import (
    FieldError,
    ObjectError,
    decode_object,
    label_selector_of,
    object_decoder,
)
from extender.kube.workloadspread import types
from extender.kube.workloadspread.types import controller_of, uid_or_placeholder, without_empty
from policies.kubernetes.selectors import LabelSelector, SelectorError, parse_label_selector
from policies.workloadspread.object_references import (
    CLONE_SET,
    DEPLOYMENT,
    JOB,
    KRUISE,
    NATIVE_KINDS,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    ApiVersionError,
    ObjectKey,
    parse_group_version,
)
from policies.workloadspread.targets import PathError, nested_integer
from policies.workloadspread.workload_versions import TEMPLATE_HASH
from policies.workloadspread.workloads import AllowedKind, AllowedKinds, Scale, TargetWorkload

CONFIGURATION: Final = "kruise-configuration"
WHITELIST_KEY: Final = "WorkloadSpread_Watch_Custom_Workload_WhiteList"
REVISION: Final = "deployment.kubernetes.io/revision"

_DEFAULT_API_VERSIONS: Final = {
    CLONE_SET: f"{KRUISE}/v1alpha1",
    DEPLOYMENT: "apps/v1",
    JOB: "batch/v1",
    REPLICA_SET: "apps/v1",
    REPLICATION_CONTROLLER: "v1",
    STATEFUL_SET: "apps/v1",
}
"""The apiVersion of the items of a typed list, which may omit it."""

_workloads = msgspec.json.Decoder(types.TargetWorkload)
_others = msgspec.json.Decoder(types.ObjectOfAnyKind)
_documents = msgspec.json.Decoder(dict[str, Any])


class ScaledKind(NamedTuple):
    """A kind with a scale subresource, and the paths of its scale fields."""

    group: str
    kind: str
    replicas_path: str
    selector_path: str


def decode_workload(kind: str, raw: bytes, scaled: Iterable[ScaledKind] = ()) -> TargetWorkload:
    """Decode an object of any kind that may own pods. Raise ObjectError.

    ``scaled`` are custom kinds with a scale subresource.
    """
    meta = decode_object(kind, _others, raw, lambda shape: shape.metadata)
    try:
        document = _documents.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ObjectError(f"{kind} {meta.name}: {error}") from None
    try:
        group, version = parse_group_version(
            document.get("apiVersion") or _DEFAULT_API_VERSIONS.get(kind, "")
        )
    except ApiVersionError as error:
        raise ObjectError(f"{kind} {meta.name}: apiVersion: {error}") from None
    workload = TargetWorkload(
        identity=ObjectKey(group, kind, meta.name),
        namespace=meta.namespace or "default",
        version=version,
        uid=uid_or_placeholder(meta.uid, kind, meta.name),
        labels=meta.labels or {},
        generation=meta.generation or 0,
        terminating=meta.deletionTimestamp is not None,
        controller=controller_of(meta.ownerReferences),
        deployment_revision=(meta.annotations or {}).get(REVISION, ""),
        document=document,
    )
    if group in NATIVE_KINDS.get(kind, ()):
        return decode_object(kind, _workloads, raw, lambda shape: _with_known(workload, shape))
    paths = next((each for each in scaled if (each.group, each.kind) == (group, kind)), None)
    return workload if paths is None else replace(workload, scale=_scale(paths, document))


def _with_known(workload: TargetWorkload, shape: types.TargetWorkload) -> TargetWorkload:
    spec = shape.spec or types.TargetWorkloadSpec()
    status = shape.status or types.TargetWorkloadStatus()
    return replace(
        workload,
        selector=label_selector_of("spec.selector", spec.selector),
        replicas=1 if spec.replicas is None else spec.replicas,
        parallelism=1 if spec.parallelism is None else spec.parallelism,
        template=_comparable(spec.template),
        observed_generation=status.observed_generation or 0,
        update_revision=status.update_revision or "",
        current_revision=status.current_revision or "",
    )


def _comparable(template: object) -> object:
    """Return a pod template without its hash and without empty fields."""
    compared = without_empty(template)
    if not isinstance(compared, dict) or not isinstance(compared.get("metadata"), dict):
        return compared
    labels = compared["metadata"].get("labels")
    if isinstance(labels, dict):
        labels.pop(TEMPLATE_HASH, None)
    return without_empty(compared)


def _scale(paths: ScaledKind, document: Mapping[str, Any]) -> Scale:
    """Compute the scale of an object, as an API server does."""
    try:
        replicas = nested_integer(document, paths.replicas_path.strip(".").split("."))
    except PathError:
        replicas = 0
    return Scale(replicas, _scale_selector(paths.selector_path, document))


def _scale_selector(path: str, document: object) -> LabelSelector | None:
    found = document
    for step in path.strip(".").split(".") if path else ():
        found = found.get(step) if isinstance(found, dict) else None
    if not path or not isinstance(found, str) or not found:
        return None
    try:
        return parse_label_selector(found)
    except SelectorError:
        return None


def scaled_kinds(shape: types.CustomResourceDefinitionV1) -> list[ScaledKind]:
    """Return the kind of a definition with its first scale subresource, if it has one."""
    spec = shape.spec or types.CrdSpec()
    scales = [
        version.subresources.scale
        for version in spec.versions or ()
        if version.subresources is not None and version.subresources.scale is not None
    ]
    return [
        ScaledKind(
            spec.group, spec.names.kind, scale.spec_replicas_path, scale.label_selector_path or ""
        )
        for scale in scales[:1]
    ]


decode_scaled_kinds = object_decoder(
    "CustomResourceDefinition", types.CustomResourceDefinitionV1, scaled_kinds
)
"""Decodes the scale subresource of a CustomResourceDefinition; raises ObjectError."""


def _allowed_kinds(shape: types.ConfigMapV1) -> AllowedKinds:
    text = (shape.data or {}).get(WHITELIST_KEY)
    if text is None:
        return AllowedKinds()
    try:
        written = _with_folded_keys(_documents.decode(text)).get("workloads") or []
        return AllowedKinds(tuple(_allowed(_with_folded_keys(each)) for each in written))
    except (msgspec.DecodeError, RecursionError, AttributeError, TypeError):
        problem = 'expected JSON such as {"workloads": [{"Group": …, "Kind": …}]}'
        raise FieldError(f"data.{WHITELIST_KEY}", problem) from None


decode_allowed_kinds = object_decoder("ConfigMap", types.ConfigMapV1, _allowed_kinds)
"""Decodes the kinds that OpenKruise's configuration allows as targets; raises ObjectError.

Keys are case-insensitive, as in Go's decoder.
"""


def _allowed(written: Mapping[str, Any]) -> AllowedKind:
    below = [_with_folded_keys(each) for each in written.get("subresources") or ()]
    return AllowedKind(
        group=written.get("group") or "",
        version=written.get("version") or "",
        kind=written.get("kind") or "",
        replicas_path=written.get("replicaspath") or "",
        intermediate_kinds=tuple(
            (each.get("group") or "", each.get("kind") or "") for each in below
        ),
    )


def _with_folded_keys(written: Mapping[str, Any]) -> dict[str, Any]:
    return {key.casefold(): value for key, value in written.items()}
