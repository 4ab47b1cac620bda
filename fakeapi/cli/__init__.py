"""The whole ``reprieve`` command."""

from __future__ import annotations

from fakeapi.cli.root_command import main

__all__ = ["main"]
