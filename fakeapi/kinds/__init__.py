"""Resources as data: their paths, names, schemas and strategies."""

from __future__ import annotations

from fakeapi.kinds.builtin import BUILTIN
from fakeapi.kinds.kind import ResourceInfo, ResourceRegistry, SelectableField

__all__ = ["BUILTIN", "ResourceInfo", "ResourceRegistry", "SelectableField"]
