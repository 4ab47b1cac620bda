"""Strategic merge patch of pods: the merge keys of a pod's lists.

Source: the ``patchStrategy`` and ``patchMergeKey`` tags of k8s.io/api/core/v1/types.go and
apimachinery's meta/v1/types.go, v1.37. A patch of a pod's status has no effect anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from extender.kube.strategic import PatchError, strategic_merge

_CONTAINER: Final = {
    "": "name",
    ".env": "name",
    ".ports": "containerPort",
    ".volumeDevices": "devicePath",
    ".volumeMounts": "mountPath",
}
_CONTAINERS: Final = ("containers", "ephemeralContainers", "initContainers")
_CLAIM: Final = ".spec.volumes.ephemeral.volumeClaimTemplate"

MERGE_KEYS: Final[Mapping[str, str]] = {
    **{f"{part}.metadata.finalizers": "" for part in ("", _CLAIM)},
    **{f"{part}.metadata.ownerReferences": "uid" for part in ("", _CLAIM)},
    **{f".spec.{each}{part}": key for each in _CONTAINERS for part, key in _CONTAINER.items()},
    ".spec.evictionResponders": "name",
    ".spec.hostAliases": "ip",
    ".spec.imagePullSecrets": "name",
    ".spec.resourceClaims": "name",
    ".spec.schedulingGates": "name",
    ".spec.topologySpreadConstraints": "topologyKey",
    ".spec.volumes": "name",
}
"""The merge key of each list, by path; "" for lists of scalars."""


class _PodPatchSchema:
    """A patch schema whose nodes are paths."""

    def child(self, shape: str, key: str) -> str:
        return f"{shape}.{key}"

    def element(self, shape: str) -> str:
        return shape

    def merge_key(self, shape: str) -> str | None:
        return MERGE_KEYS.get(shape)

    def replaces(self, shape: str, key: str) -> bool:  # noqa: ARG002 - no map of a pod is replaced
        return False


_POD_PATCH_SCHEMA: Final = _PodPatchSchema()


def strategic_merge_pod(pod: Mapping[str, Any], patch: object) -> dict[str, Any]:
    """Return a pod, or a pod template, with a patch merged in. Raise PatchError."""
    if not isinstance(patch, Mapping):
        raise PatchError("invalid JSON document")
    return strategic_merge(_POD_PATCH_SCHEMA, "", pod, patch)
