"""Aggregated ClusterRoles: their rules are those of the ClusterRoles that they select.

kube-controller-manager does this in a cluster. Here the API server does, because RBAC without the
rules of ``admin`` or ``edit`` is of little use, and because it takes no time.

Roles are read in the order of their names, and a rule is listed once. A role that is selected may
be aggregated itself, so the roles are reconciled until none of them changes.

Source: kubernetes/pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fakeapi.apiserver.kinds.builtin import CLUSTER_ROLES
from fakeapi.apiserver.managedfields import AppliedConfiguration
from fakeapi.apiserver.objects.label_selectors import compile_label_selector
from fakeapi.apiserver.registry.generic_registry import Registry, Target
from fakeapi.apiserver.store.object_store import Document, Entry, Store
from policies.kubernetes.selectors import SelectorError

MANAGER: Final = "clusterrole-aggregation-controller"


class ClusterRoleAggregation:
    """Reconciles the aggregated ClusterRoles in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._is_stale = False
        store.listen(CLUSTER_ROLES, self._mark_stale)

    def reconcile(self, registry: Registry) -> None:
        """Update the rules of all aggregated roles, if any role has changed."""
        passes = 0
        while self._is_stale and passes <= len(self._aggregated()):
            self._is_stale = False
            passes += 1
            for entry in self._aggregated():
                self._reconcile_role(registry.with_field_manager(MANAGER), entry)
        self._is_stale = False

    def _mark_stale(self) -> None:
        self._is_stale = True

    def _aggregated(self) -> list[Entry]:
        entries = self._store.entries(CLUSTER_ROLES)
        return [entry for entry in entries if b'"aggregationRule"' in entry.raw]

    def _reconcile_role(self, registry: Registry, entry: Entry) -> None:
        role = entry.document()
        try:
            rules = list(self._selected_rules(role, entry.key))
        except SelectorError:
            return
        if "aggregationRule" not in role or rules == (role.get("rules") or []):
            return
        header = {"apiVersion": CLUSTER_ROLES.api_version, "kind": CLUSTER_ROLES.kind}
        config = {**header, "metadata": {"name": entry.key}, "rules": rules}
        target = Target(CLUSTER_ROLES, name=entry.key)
        registry.apply(target, AppliedConfiguration(config, force=True))

    def _selected_rules(self, role: Document, name: str) -> Iterator[Document]:
        seen: list[Document] = []
        for document in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ():
            selector = compile_label_selector(document)
            for entry in self._store.entries(CLUSTER_ROLES):
                if entry.key == name or not selector.matches(entry.labels):
                    continue
                for rule in entry.document().get("rules") or ():
                    if rule not in seen:
                        seen.append(rule)
                        yield rule
