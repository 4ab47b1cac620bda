"""Resources as data: their paths, names, schemas and strategies."""

from __future__ import annotations

from fakeapi.kinds.builtin import BUILTIN
from fakeapi.kinds.kind import Kind, Kinds, SelectableField

__all__ = ["BUILTIN", "Kind", "Kinds", "SelectableField"]
