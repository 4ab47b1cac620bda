"""Label selectors of objects: ``matchLabels`` and ``matchExpressions``, compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policies.kubernetes.selectors import LabelSelector, equals_all, label_requirement


def compile_label_selector(selector: Mapping[str, Any]) -> LabelSelector:
    """Compile a label selector; raise SelectorError if it is invalid."""
    requirements = [
        label_requirement(e.get("key", ""), e.get("operator", ""), e.get("values") or ())
        for e in selector.get("matchExpressions") or ()
    ]
    return LabelSelector((*equals_all(selector.get("matchLabels") or {}), *requirements))
