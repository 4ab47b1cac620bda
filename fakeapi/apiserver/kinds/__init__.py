"""Resources as data: their paths, names, schemas and strategies."""

from __future__ import annotations

from fakeapi.apiserver.kinds.builtin import BUILTIN
from fakeapi.apiserver.kinds.resource_info import ResourceInfo, ResourceRegistry, SelectableField

__all__ = ["BUILTIN", "ResourceInfo", "ResourceRegistry", "SelectableField"]
