"""Builders: definitions of custom resources, and what they define.

definition(spec={"size": INTEGER})                   a definition whose objects have a spec
definition(versions=[version("v1"), version("v2")])  with several versions
widget("one", size=3)                                an object of it
"""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]

GROUP = "example.com"
NAME = f"widgets.{GROUP}"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/default/widgets"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"

INTEGER: Document = {"type": "integer"}
TEXT: Document = {"type": "string"}
ANYTHING: Document = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SCALE = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}


def record(**properties: Document) -> Document:
    """Return the schema of an object with these fields."""
    return {"type": "object", "properties": properties}


def version(name: str = "v1", schema: Document | None = None, **fields: Any) -> Document:
    """Return a version; the one called v1 is stored unless it says otherwise."""
    return {
        "name": name,
        "served": True,
        "storage": name == "v1",
        "schema": {"openAPIV3Schema": ANYTHING if schema is None else schema},
        **fields,
    }


def definition(
    *,
    spec: Document | None = None,
    versions: list[Document] | None = None,
    names: Document | None = None,
    plural: str = "widgets",
    **fields: Any,
) -> Document:
    """Return a definition; ``spec`` are the fields of its objects' specs."""
    schema = ANYTHING if spec is None else record(spec=record(**spec))
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": "Widget", **(names or {})},
            "versions": versions or [version(schema=schema)],
            **fields,
        },
    }


def widget(name: str = "one", *, api_version: str = "v1", **spec: Any) -> Document:
    """Return a custom resource."""
    return {
        "apiVersion": f"{GROUP}/{api_version}",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": spec,
    }
