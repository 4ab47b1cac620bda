"""API priority and fairness: which FlowSchema and priority level a request belongs to.

Requests are classified, but neither queued nor rejected. As upstream, FlowSchemas are tried in the
order of their precedence and their names; one whose priority level does not exist is not used, and
its condition ``Dangling`` reports it. A request that none matches belongs to ``catch-all``.

Sources: k8s.io/apiserver/pkg/util/flowcontrol (rule.go, apf_controller.go),
pkg/server/filters/priority-and-fairness.go, v1.37.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import msgspec

from fakeapi.apiserver.auth.authorization import AuthorizationAttributes, authorization_attributes
from fakeapi.apiserver.kinds.builtin import FLOW_SCHEMAS, PRIORITY_LEVELS
from fakeapi.apiserver.managedfields import AppliedConfiguration
from fakeapi.apiserver.objects.conditions import find_condition
from fakeapi.apiserver.registry.generic_registry import Registry, Target
from fakeapi.apiserver.store.object_store import Document, Entry, Store
from fakeapi.apiserver.wire.errors import StatusError
from fakeapi.apiserver.wire.http_messages import Request, User

MANAGER: Final = "api-priority-and-fairness-config-consumer-v1"

_CATCH_ALL: Final = "catch-all"
_UNTRACKED: Final = ("attach", "exec", "log", "portforward", "proxy")
_ACCOUNT_PREFIX: Final = "system:serviceaccount:"
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class _Part(msgspec.Struct, rename="camel", frozen=True):
    """A part of a FlowSchema."""


class _Name(_Part, frozen=True):
    name: str = ""
    namespace: str = ""


class _Subject(_Part, frozen=True):
    kind: str
    user: _Name | None = None
    group: _Name | None = None
    service_account: _Name | None = None

    def matches(self, user: User) -> bool:
        if self.kind == "User" and self.user is not None:
            return self.user.name in ("*", user.name)
        if self.kind == "Group" and self.group is not None:
            return self.group.name == "*" or self.group.name in user.groups
        if self.kind == "ServiceAccount" and self.service_account is not None:
            account = self.service_account
            prefix = f"{_ACCOUNT_PREFIX}{account.namespace}:"
            if account.name == "*":
                return user.name.startswith(prefix)
            return user.name == prefix + account.name
        return False


class _ResourceRule(_Part, frozen=True):
    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    cluster_scope: bool = False
    namespaces: tuple[str, ...] | None = None

    def matches(self, asked: AuthorizationAttributes) -> bool:
        resource = "/".join(filter(None, (asked.resource, asked.subresource)))
        if not (
            _lists(self.verbs, asked.verb)
            and _lists(self.resources, resource)
            and _lists(self.api_groups, asked.group)
        ):
            return False
        if not asked.namespace:
            return self.cluster_scope
        return _lists(self.namespaces or (), asked.namespace)


class _NonResourceRule(_Part, frozen=True):
    verbs: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")

    def matches(self, asked: AuthorizationAttributes) -> bool:
        return _lists(self.verbs, asked.verb) and any(
            url in ("*", asked.path) or asked.path.startswith(_prefix(url))
            for url in self.non_resource_urls
        )


class _Rule(_Part, frozen=True):
    subjects: tuple[_Subject, ...] = ()
    resource_rules: tuple[_ResourceRule, ...] | None = None
    non_resource_rules: tuple[_NonResourceRule, ...] | None = None

    def matches(self, asked: AuthorizationAttributes) -> bool:
        if not any(subject.matches(asked.user) for subject in self.subjects):
            return False
        rules = self.non_resource_rules if asked.path else self.resource_rules
        return any(rule.matches(asked) for rule in rules or ())


class _Spec(_Part, frozen=True):
    priority_level_configuration: _Name
    matching_precedence: int = 1000
    rules: tuple[_Rule, ...] | None = None


class _Metadata(_Part, frozen=True):
    name: str
    uid: str = ""


class _Object(_Part, frozen=True):
    metadata: _Metadata


class _FlowSchema(_Object, frozen=True):
    spec: _Spec


@dataclass(frozen=True, slots=True)
class _Flow:
    """A FlowSchema in use, and the headers of its responses."""

    schema: _FlowSchema
    headers: Mapping[str, str]


class FlowControl:
    """Classifies requests by the FlowSchemas of a store, and writes their conditions."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._flows: Sequence[_Flow] | None = None
        self._is_stale = False
        for kind in (FLOW_SCHEMAS, PRIORITY_LEVELS):
            store.listen(kind, self._forget)

    def response_headers(self, request: Request) -> Mapping[str, str]:
        """Return the headers with the UIDs of a request's FlowSchema and priority level."""
        if self._flows is None:
            self._flows = self._read_flows()
        if not self._flows:
            return _NO_HEADERS
        asked = authorization_attributes(request, request.impersonated or request.user)
        if asked.subresource in _UNTRACKED:
            return _NO_HEADERS
        for flow in self._flows:
            if any(rule.matches(asked) for rule in flow.schema.spec.rules or ()):
                return flow.headers
        last = (flow for flow in self._flows if flow.schema.metadata.name == _CATCH_ALL)
        return next((flow.headers for flow in last), _NO_HEADERS)

    def reconcile(self, registry: Registry) -> None:
        """Write the condition of every FlowSchema whose priority level has come or gone."""
        if not self._is_stale:
            return
        levels = {entry.key for entry in self._store.entries(PRIORITY_LEVELS)}
        for entry in self._store.entries(FLOW_SCHEMAS):
            self._write_condition(registry.with_field_manager(MANAGER), entry, levels)
        self._is_stale = False

    def _forget(self) -> None:
        self._flows = None
        self._is_stale = True

    def _read_flows(self) -> Sequence[_Flow]:
        levels = {
            entry.key: msgspec.json.decode(entry.raw, type=_Object).metadata.uid
            for entry in self._store.entries(PRIORITY_LEVELS)
        }
        found = []
        for entry in self._store.entries(FLOW_SCHEMAS):
            try:
                schema = msgspec.json.decode(entry.raw, type=_FlowSchema)
            except msgspec.ValidationError:
                continue  # a loaded object that the API would refuse
            level = schema.spec.priority_level_configuration.name
            if level in levels:
                headers = {
                    "X-Kubernetes-PF-FlowSchema-UID": schema.metadata.uid,
                    "X-Kubernetes-PF-PriorityLevel-UID": levels[level],
                }
                found.append(_Flow(schema, MappingProxyType(headers)))
        return sorted(
            found,
            key=lambda flow: (flow.schema.spec.matching_precedence, flow.schema.metadata.name),
        )

    def _write_condition(self, registry: Registry, entry: Entry, levels: set[str]) -> None:
        document = entry.document()
        spec = document.get("spec") or {}
        level = (spec.get("priorityLevelConfiguration") or {}).get("name", "")
        wanted = _dangling(level, is_found=level in levels)
        present = find_condition(document.get("status") or {}, "Dangling")
        if all(present.get(field) == value for field, value in wanted.items()):
            return
        condition = {**wanted, "lastTransitionTime": registry.sources.timestamp(0)}
        config = {
            "apiVersion": FLOW_SCHEMAS.api_version,
            "kind": FLOW_SCHEMAS.kind,
            "metadata": {"name": entry.key},
            "status": {"conditions": [condition]},
        }
        target = Target(FLOW_SCHEMAS, name=entry.key, subresource="status")
        with suppress(StatusError):  # a loaded object that the API would refuse
            registry.apply(target, AppliedConfiguration(config, force=True))


def _dangling(level: str, *, is_found: bool) -> Document:
    reference = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}" '
    return {
        "type": "Dangling",
        "status": "False" if is_found else "True",
        "reason": "Found" if is_found else "NotFound",
        "message": reference + ("and it exists" if is_found else "but there is no such object"),
    }


def _prefix(url: str) -> str:
    prefix = url.removesuffix("*")
    return prefix if prefix.endswith("/") else f"{prefix}/"


def _lists(allowed: Sequence[str], value: str) -> bool:
    return value in allowed or tuple(allowed) == ("*",)
