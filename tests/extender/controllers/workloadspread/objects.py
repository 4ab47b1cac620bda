"""Definitions of the kinds that WorkloadSpreads refer to."""

from __future__ import annotations

from typing import Final

from tests.builders import Document, definitions


def definition(
    api_version: str, kind: str, scale: Document | None = None, **subresources: Document
) -> Document:
    """Define a kind whose objects may have any fields; ``scale`` are the paths of its scale."""
    below = {**subresources, **({} if scale is None else {"scale": scale})}
    return definitions.definition(api_version, kind, subresources=below)


CLONE_SET_DEFINITION: Final = definition("apps.kruise.io/v1alpha1", "CloneSet", status={})
