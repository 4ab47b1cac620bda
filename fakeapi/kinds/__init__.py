"""Kinds of object as data: where they are served and what makes each one special."""

from __future__ import annotations

from fakeapi.kinds.builtin import BUILTIN
from fakeapi.kinds.kind import Kind, Kinds, SelectableField

__all__ = ["BUILTIN", "Kind", "Kinds", "SelectableField"]
