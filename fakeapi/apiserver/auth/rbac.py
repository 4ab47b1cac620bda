"""The RBAC authorizer: decides by the roles and bindings in the store.

A binding grants the rules of a role to its subjects (users, groups, service accounts): a
ClusterRoleBinding everywhere, a RoleBinding in its own namespace. Members of ``system:masters`` may
do everything. A role that does not exist grants nothing.

Sources: kubernetes/plugin/pkg/auth/authorizer/rbac (with bootstrappolicy/policy.go),
pkg/registry/rbac/validation/rule.go, pkg/apis/rbac/v1/evaluation_helpers.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fakeapi.apiserver.auth.authentication import SERVICE_ACCOUNT_PREFIX
from fakeapi.apiserver.auth.authorization import AuthorizationAttributes, ResourceRules
from fakeapi.apiserver.kinds import ResourceInfo, ResourceRegistry
from fakeapi.apiserver.store.dry_run import ObjectReader
from fakeapi.apiserver.store.object_store import Document, Entry
from fakeapi.apiserver.wire.errors import StatusError, format_value, not_found
from fakeapi.apiserver.wire.http_messages import User

MASTERS: Final = "system:masters"
GROUP: Final = "rbac.authorization.k8s.io"
_CACHE_SIZE: Final = 4_096
_ROLE_KINDS: Final = {"Role": "roles", "ClusterRole": "clusterroles"}

Rule = Mapping[str, Any]


class RbacAuthorizer:
    """Authorizes by the roles and bindings among ``objects``."""

    def __init__(self, objects: ObjectReader, kinds: ResourceRegistry) -> None:
        self._objects = objects
        self._kinds = kinds
        self._decoded: dict[bytes, Document] = {}

    def reason(self, attributes: AuthorizationAttributes) -> str | None:
        """Return the binding that allows the operation, or None."""
        if MASTERS in attributes.user.groups:
            return ""
        for detail, rule in self._rules(attributes.user, attributes.namespace, []):
            if _allows(rule, attributes):
                return f"RBAC: allowed by {detail}"
        return None

    def rules(self, user: User, namespace: str) -> ResourceRules:
        """Return the rules of all roles that are bound to the user."""
        found, _ = self.held_rules(user, namespace)
        return ResourceRules(
            [_pick_fields(r, _RESOURCE_PARTS) for r in found if r.get("resources")],
            [_pick_fields(r, _PATH_PARTS) for r in found if r.get("nonResourceURLs")],
        )

    def held_rules(self, user: User, namespace: str) -> tuple[list[Rule], list[str]]:
        """Return the rules of all roles that are bound to the user, and what was not found."""
        errors: list[str] = []
        return [rule for _, rule in self._rules(user, namespace, errors)], errors

    def _rules(self, user: User, namespace: str, errors: list[str]) -> Iterator[tuple[str, Rule]]:
        for binding in self._bindings("clusterrolebindings", ""):
            yield from self._bound_rules(user, binding, "", errors)
        if namespace:
            for binding in self._bindings("rolebindings", namespace):
                yield from self._bound_rules(user, binding, namespace, errors)

    def _bound_rules(
        self, user: User, binding: Document, namespace: str, errors: list[str]
    ) -> Iterator[tuple[str, Rule]]:
        subject = next(
            (s for s in _subjects(binding) if _matches_subject(s, user, namespace)), None
        )
        if subject is None:
            return
        detail = _describe(binding, subject, namespace)
        try:
            rules = self.role_rules(binding.get("roleRef") or {}, namespace)
        except StatusError as error:
            errors.append(error.message)
            return
        for rule in rules:
            yield detail, rule

    def role_rules(self, reference: Mapping[str, Any], namespace: str) -> list[Rule]:
        """Return the rules of the role that a binding refers to.

        Raise StatusError: 404 if it does not exist, 500 (as upstream) for another kind.
        """
        name, kind_name = reference.get("name", ""), reference.get("kind", "")
        kind = self._kind(_ROLE_KINDS.get(kind_name, ""))
        if kind is None:
            message = f"unsupported role reference kind: {format_value(kind_name)}"
            raise StatusError(500, "", message)
        entry = self._objects.get(kind, f"{namespace}/{name}" if kind.namespaced else name)
        if entry is None:
            raise not_found(kind, name)
        return [rule for rule in self._read(entry).get("rules") or [] if isinstance(rule, dict)]

    def _bindings(self, plural: str, namespace: str) -> list[Document]:
        kind = self._kind(plural)
        return [self._read(e) for e in self._objects.entries(kind, namespace)] if kind else []

    def _kind(self, plural: str) -> ResourceInfo | None:
        return self._kinds.at(GROUP, "v1", plural)

    def _read(self, entry: Entry) -> Document:
        """Return the decoded document of an entry, from a cache."""
        found = self._decoded.get(entry.raw)
        if found is None:
            if len(self._decoded) >= _CACHE_SIZE:
                self._decoded.clear()
            found = self._decoded[entry.raw] = entry.document()
        return found


_RESOURCE_PARTS: Final = ("verbs", "apiGroups", "resources", "resourceNames")
_PATH_PARTS: Final = ("verbs", "nonResourceURLs")


def _pick_fields(rule: Rule, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: rule[name] for name in names if rule.get(name)}


def _subjects(binding: Document) -> list[Mapping[str, Any]]:
    return [s for s in binding.get("subjects") or [] if isinstance(s, dict)]


def _matches_subject(subject: Mapping[str, Any], user: User, namespace: str) -> bool:
    name = subject.get("name", "")
    match subject.get("kind"):
        case "User":
            return bool(name == user.name)
        case "Group":
            return name in user.groups
        case "ServiceAccount":
            home = subject.get("namespace") or namespace
            return bool(home) and user.name == f"{SERVICE_ACCOUNT_PREFIX}{home}:{name}"
    return False


def _describe(binding: Document, subject: Mapping[str, Any], namespace: str) -> str:
    name, role = binding["metadata"]["name"], binding["roleRef"]
    what = f'RoleBinding "{name}/{namespace}"' if namespace else f'ClusterRoleBinding "{name}"'
    home = subject.get("namespace") or namespace
    account = subject.get("kind") == "ServiceAccount"
    named = f"{subject['name']}/{home}" if account else subject["name"]
    return f'{what} of {role.get("kind")} "{role.get("name")}" to {subject["kind"]} "{named}"'


def _allows(rule: Rule, attributes: AuthorizationAttributes) -> bool:
    if not _has(rule, "verbs", attributes.verb):
        return False
    if attributes.path:
        return any(_path_matches(url, attributes.path) for url in _texts(rule, "nonResourceURLs"))
    names = _texts(rule, "resourceNames")
    return (
        _has(rule, "apiGroups", attributes.group)
        and _resource_matches(rule, attributes)
        and (not names or attributes.name in names)
    )


def _resource_matches(rule: Rule, attributes: AuthorizationAttributes) -> bool:
    resource = "/".join(filter(None, (attributes.resource, attributes.subresource)))
    return not resource_patterns(resource).isdisjoint(_texts(rule, "resources"))


def resource_patterns(resource: str) -> frozenset[str]:
    """Return what matches a resource in a rule: ``*``, its name, and ``*/`` with a subresource."""
    _, slash, subresource = resource.partition("/")
    return frozenset(("*", resource, f"*/{subresource}" if slash else resource))


def _path_matches(url: str, path: str) -> bool:
    return url in ("*", path) or (url.endswith("*") and path.startswith(url.rstrip("*")))


def _has(rule: Rule, name: str, item: str) -> bool:
    values = _texts(rule, name)
    return "*" in values or item in values


def _texts(rule: Rule, name: str) -> list[str]:
    values = rule.get(name)
    return values if isinstance(values, list) else []
