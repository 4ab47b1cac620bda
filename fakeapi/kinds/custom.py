"""Data of a CustomResourceDefinition about one version of its resource.

Source: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/types.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A Table column; ``path`` is a JSONPath, ``priority`` 1 is shown in wide output only."""

    name: str
    type: str
    path: str
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """The paths of a Scale's fields in a custom resource, as simple JSON paths (``.spec.size``)."""

    spec: str
    status: str
    selector: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class CustomResourceInfo:
    """One version of a custom resource; compared by identity, so the compiled schema can be cached.

    ``definition`` is the definition's name, ``schema`` the version's OpenAPI schema (empty: any
    object is valid), ``versions`` are all versions of the definition.
    ``conversion`` is the definition's ``spec.conversion``. ``terminating``: the definition is being
    deleted, so objects cannot be created.
    """

    definition: str
    schema: Mapping[str, Any]
    versions: tuple[str, ...]
    storage_version: str
    list_kind: str
    columns: tuple[PrinterColumn, ...]
    scale: ScalePaths | None
    conversion: Mapping[str, Any]
    terminating: bool
