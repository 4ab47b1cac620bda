"""Hooks for schemathesis: a watch that it asks for ends after a second."""

from __future__ import annotations

from typing import Any

import schemathesis


@schemathesis.hook
def map_query(_context: Any, query: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the query with a time limit."""
    return {**query, "timeoutSeconds": "1"} if query and "watch" in query else query
