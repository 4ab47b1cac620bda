"""Kinds and objects that WorkloadSpreads speak of, as short as a table allows."""

from __future__ import annotations

from typing import Any, Final

from extender.kube.rest.resources import Resource
from tests.builders import definitions

Document = dict[str, Any]

SPREADS: Final = Resource("apps.kruise.io", "v1beta1", "workloadspreads", namespaced=True)
CLONE_SETS: Final = Resource("apps.kruise.io", "v1alpha1", "clonesets", namespaced=True)
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", namespaced=True)
JOBS: Final = Resource("batch", "v1", "jobs", namespaced=True)
DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
)


def definition(
    api_version: str, kind: str, scale: Document | None = None, **subresources: Document
) -> Document:
    """Define a kind whose objects may have any fields; ``scale`` are the paths of its scale."""
    below = {**subresources, **({} if scale is None else {"scale": scale})}
    return definitions.definition(api_version, kind, subresources=below)


CLONE_SET_DEFINITION: Final = definition("apps.kruise.io/v1alpha1", "CloneSet", status={})
