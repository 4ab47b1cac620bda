"""Builders of CustomResourceDefinitions, and of the objects that they define.

definition(spec={"size": INTEGER})                      the kind Widget, whose objects have a spec
definition(versions=[version("v1"), version("v2")])     with several versions
definition("apps.kruise.io/v1alpha1", "CloneSet")       another kind, whose objects have any fields
widget("one", size=3)                                   an object of the kind Widget
"""

from __future__ import annotations

from typing import Any

from tests.builders.manifests import Document, manifest

GROUP = "example.com"
NAME = f"widgets.{GROUP}"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/default/widgets"

INTEGER: Document = {"type": "integer"}
TEXT: Document = {"type": "string"}
ANYTHING: Document = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SCALE = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}


def record(**properties: Document) -> Document:
    """Build the schema of an object with these fields."""
    return {"type": "object", "properties": properties}


def version(
    name: str = "v1",
    schema: Document | None = None,
    *,
    storage: bool | None = None,
    **fields: Any,
) -> Document:
    """Build a version; the default storage version is v1, the default schema allows any fields."""
    return {
        "name": name,
        "served": True,
        "storage": name == "v1" if storage is None else storage,
        "schema": {"openAPIV3Schema": ANYTHING if schema is None else schema},
        **fields,
    }


def definition(
    api_version: str = f"{GROUP}/v1",
    kind: str = "Widget",
    *,
    spec: Document | None = None,
    subresources: Document | None = None,
    versions: list[Document] | None = None,
    names: Document | None = None,
    plural: str = "",
    **fields: Any,
) -> Document:
    """Build a definition; ``spec`` are the properties of its objects' specs.

    ``versions`` replace the one version of ``api_version``; ``fields`` are those of the definition.
    """
    group, _, served = api_version.partition("/")
    plural = plural or f"{kind.lower()}s"
    schema = ANYTHING if spec is None else record(spec=record(**spec))
    below = {} if subresources is None else {"subresources": subresources}
    own = {
        "group": group,
        "scope": "Namespaced",
        "names": {"plural": plural, "kind": kind, **(names or {})},
        "versions": versions or [version(served, schema, storage=True, **below)],
        **fields,
    }
    return manifest("CustomResourceDefinition", f"{plural}.{group}", spec=own)


def widget(name: str = "one", *, api_version: str = "v1", **spec: Any) -> Document:
    """Build an object of the kind Widget."""
    return manifest("Widget", name, version=f"{GROUP}/{api_version}", namespace="", spec=spec)
