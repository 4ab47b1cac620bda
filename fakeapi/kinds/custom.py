"""What a CustomResourceDefinition says of one version of its resource, as data.

Source: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/types.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A column of Tables; ``path`` is a JSONPath, ``priority`` 1 is shown in wide output only."""

    name: str
    type: str
    path: str
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where a custom resource holds what a Scale shows, as simple JSON paths (``.spec.size``)."""

    spec: str
    status: str
    selector: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Custom:
    """One version of a custom resource; compared by identity, so what it compiles to can be kept.

    ``definition`` is the definition's name, ``schema`` its OpenAPI schema (empty: anything goes),
    ``versions`` are all that it has.
    ``conversion`` is the definition's ``spec.conversion``. ``terminating``: the definition is being
    deleted, and nothing can be created any more.
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
