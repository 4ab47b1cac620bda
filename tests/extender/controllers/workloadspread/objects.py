"""Definitions of kinds that WorkloadSpreads may target."""

from __future__ import annotations

from typing import Any, Final

Document = dict[str, Any]

_ANYTHING: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(
    api_version: str, kind: str, scale: Document | None = None, **subresources: Document
) -> Document:
    """Define a kind whose objects may have any fields; ``scale`` are the paths of its scale."""
    group, _, version = api_version.partition("/")
    plural = f"{kind.lower()}s"
    below = {**subresources, **({} if scale is None else {"scale": scale})}
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _ANYTHING},
        "subresources": below,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [served],
        },
    }


CLONE_SET_DEFINITION: Final = definition("apps.kruise.io/v1alpha1", "CloneSet", status={})
