"""Conditions: entries of ``status.conditions``, one for each type.

Source: kubernetes/pkg/api/pod/util.go (UpdatePodCondition), k8s.io/apimachinery/pkg/api/meta.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def find_condition(status: Mapping[str, Any], type_: str) -> Mapping[str, Any]:
    """Return the condition of a type, or an empty one."""
    return next((c for c in _conditions(status) if c.get("type") == type_), {})


def set_condition(status: dict[str, Any], condition: Mapping[str, Any], now: str) -> None:
    """Replace the condition of the same type, or append a new one.

    ``lastTransitionTime`` becomes ``now`` unless the condition had the same status before.
    """
    conditions = _conditions(status)
    before = find_condition(status, condition["type"])
    same = before.get("status") == condition["status"]
    changed = (before.get("lastTransitionTime") if same else None) or now
    stamped = {**condition, "lastTransitionTime": changed}
    if before:
        status["conditions"] = [
            stamped if c.get("type") == condition["type"] else c for c in conditions
        ]
    else:
        status["conditions"] = [*conditions, stamped]


def _conditions(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    listed = status.get("conditions")
    return [c for c in listed if isinstance(c, dict)] if isinstance(listed, list) else []
