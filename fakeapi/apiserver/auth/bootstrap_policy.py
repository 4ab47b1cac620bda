"""The roles and bindings that kube-apiserver creates when it starts.

:mod:`fakeapi.apiserver.auth.generate_bootstrap_policy` generates the file. The rules of aggregated
roles, which kube-controller-manager fills in, are those of the roles that their selectors match.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import orjson

FILE: Final = Path(__file__).with_name("data") / "bootstrap_policy.json.xz"

Document = dict[str, Any]


def read_bootstrap_policy() -> list[Document]:
    """Return the roles and bindings, the rules of aggregated roles included."""
    import lzma  # imported on use: start-up time

    objects: list[Document] = orjson.loads(lzma.decompress(FILE.read_bytes()))
    roles = [role for role in objects if role["kind"] == "ClusterRole"]
    for role in roles:
        role["rules"] = role["rules"] or _aggregated_rules(role, roles)
    return objects


def _aggregated_rules(role: Mapping[str, Any], roles: list[Document]) -> list[Document]:
    """Return the rules of an aggregated role; a role that it selects may be aggregated, too."""
    rules: list[Document] = []
    for other in _selected_roles(role, roles):
        for rule in other["rules"] or _aggregated_rules(other, roles):
            if rule not in rules:
                rules.append(rule)
    return rules


def _selected_roles(role: Mapping[str, Any], roles: list[Document]) -> Iterator[Document]:
    for selector in role["aggregationRule"]["clusterRoleSelectors"]:
        for other in roles:
            labels = other["metadata"].get("labels") or {}
            if other is not role and selector["matchLabels"].items() <= labels.items():
                yield other
