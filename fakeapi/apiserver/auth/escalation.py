"""Privilege escalation prevention: users grant by RBAC only permissions that they hold.

A write of a Role or ClusterRole must not contain rules that the user does not hold, unless the user
may ``escalate`` it. A binding must not refer to a role with such rules, unless the user may
``bind`` it. An aggregation rule can collect any rule, so it requires all permissions. Members of
``system:masters`` may do everything, and a write that changes only owners and finalizers passes.

Rules are compared one by one: a rule is broken down into rules of one group, resource, verb and
name, and each of them must be covered by one rule that the user holds.

    held      {Verbs: get list, Resources: pods}
    granted   {Verbs: get delete, Resources: pods}    missing: {Verbs: delete, Resources: pods}

Sources: kubernetes/pkg/registry/rbac (escalation_check.go, helpers.go, */policybased/storage.go,
validation/rule.go, policy_compact.go), k8s.io/component-helpers/auth/rbac/validation
(policy_comparator.go), v1.37.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any, Final

from fakeapi.apiserver.auth.authorization import (
    AuthorizationAttributes,
    Authorizer,
    forbidden_request,
)
from fakeapi.apiserver.auth.rbac import GROUP, MASTERS, RbacAuthorizer, Rule, resource_patterns
from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import StatusError, forbidden, format_value
from fakeapi.apiserver.wire.http_messages import User
from fakeapi.apiserver.wire.raw_json import json_equal

MAX_COMBINATIONS: Final = 100_000

_ROLES: Final = (f"roles.{GROUP}", f"clusterroles.{GROUP}")
_BINDINGS: Final = (f"rolebindings.{GROUP}", f"clusterrolebindings.{GROUP}")
_COLLECTED: Final = ("ownerReferences", "finalizers", "managedFields")
_EVERYTHING: Final[tuple[Rule, ...]] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
_ALL_RULES: Final = "must have cluster-admin privileges to use the aggregationRule"
_FIELDS: Final = {
    "apiGroups": "APIGroups",
    "resources": "Resources",
    "nonResourceURLs": "NonResourceURLs",
    "resourceNames": "ResourceNames",
    "verbs": "Verbs",
}


@dataclass(frozen=True, slots=True)
class WriteAuthorization:
    """What is authorized when the object of a write is known; ``attributes`` are the request's."""

    authorizer: Authorizer
    attributes: AuthorizationAttributes

    def check_create(self) -> None:
        """Check that an update or a patch may create its object; raise StatusError (403)."""
        attributes = replace(self.attributes, verb="create")
        if self.authorizer.reason(attributes) is None:
            raise forbidden_request(attributes)

    def check_grants(self, kind: ResourceInfo, document: Document, old: Document | None) -> None:
        """Check that a role or a binding grants only what the user may grant.

        Raise StatusError (403), or 404 for a binding to a role that does not exist.
        """
        authorizer, user = self.authorizer, self.attributes.user
        if kind.resource not in (*_ROLES, *_BINDINGS) or MASTERS in user.groups:
            return
        if not isinstance(authorizer, RbacAuthorizer):
            return
        grant = _Grant(authorizer, self.attributes, kind, document, old)
        if kind.resource in _ROLES:
            grant.check_role()
        else:
            grant.check_binding()


@dataclass(frozen=True, slots=True)
class _Grant:
    """A role or a binding that a user writes."""

    authorizer: RbacAuthorizer
    attributes: AuthorizationAttributes
    kind: ResourceInfo
    document: Document
    old: Document | None

    def check_role(self) -> None:
        if self._may("escalate", self.kind.plural, self.attributes.name) or self._unchanged():
            return
        self._check_rules(self.document.get("rules") or ())
        if _aggregates(self.document) or _aggregates(self.old or {}):
            try:
                self._check_rules(_EVERYTHING)
            except StatusError:
                raise self._forbidden(_ALL_RULES) from None

    def check_binding(self) -> None:
        reference = self.document.get("roleRef") or {}
        plural = f"{str(reference.get('kind', '')).lower()}s"
        if self._unchanged() or self._may("bind", plural, reference.get("name", "")):
            return
        self._check_rules(self.authorizer.role_rules(reference, self.attributes.namespace))

    def _may(self, verb: str, plural: str, name: str) -> bool:
        user, namespace = self.attributes.user, self.attributes.namespace
        attributes = AuthorizationAttributes(user, verb, GROUP, "*", plural, "", namespace, name)
        return self.authorizer.reason(attributes) is not None

    def _unchanged(self) -> bool:
        """Return whether an update changes only what the garbage collector changes."""
        if self.old is None:
            return False
        header = {name: self.document.get(name) for name in ("kind", "apiVersion")}
        return json_equal(_without_collected(self.document), header | _without_collected(self.old))

    def _check_rules(self, granted: Sequence[Rule]) -> None:
        user = self.attributes.user
        held, errors = self.authorizer.held_rules(user, self.attributes.namespace)
        size = sum(map(_combinations, granted))
        if size > MAX_COMBINATIONS:
            raise self._forbidden(
                f"the rules have {size} combinations of groups, resources, names and verbs; "
                f"expected at most {MAX_COMBINATIONS}"
            )
        missing = list(missing_rules(held, granted))
        if missing:
            detail = _escalation_message(user, missing)
            raise self._forbidden(
                detail + (f"; resolution errors: {_aggregate(errors)}" * bool(errors))
            )

    def _forbidden(self, detail: str) -> StatusError:
        return forbidden(self.kind, self.document["metadata"].get("name", ""), detail)


def missing_rules(held: Sequence[Rule], granted: Sequence[Rule]) -> Iterator[Rule]:
    """Yield the rules of one group, resource, verb and name that no held rule covers."""
    for rule in granted:
        for part in _broken_down(rule):
            if not any(_covers(owned, part) for owned in held):
                yield part


def compact(rules: Sequence[Rule]) -> list[str]:
    """Return rules as messages list them: sorted, the verbs of a resource together."""
    verbs: dict[tuple[str, str, str | None], list[str]] = {}
    texts = set()
    for rule in rules:
        if rule.get("nonResourceURLs"):
            texts.add(_describe(rule))
            continue
        [group], [resource], [name] = (
            rule["apiGroups"],
            rule["resources"],
            rule.get("resourceNames", [None]),
        )
        verbs.setdefault((group, resource, name), []).extend(rule["verbs"])
    for (group, resource, name), listed in verbs.items():
        named = {"resourceNames": [name]} if name is not None else {}
        rule = {"apiGroups": [group], "resources": [resource], **named, "verbs": listed}
        texts.add(_describe(rule))
    return sorted(texts)


def _escalation_message(user: User, missing: Sequence[Rule]) -> str:
    rules = "\n".join(compact(missing))
    return (
        f"user {format_value(user.name)} (groups={_quoted(user.groups)}) is attempting to grant "
        f"RBAC permissions not currently held:\n{rules}"
    )


def _describe(rule: Rule) -> str:
    parts = [f"{go}:{_quoted(rule[name])}" for name, go in _FIELDS.items() if rule.get(name)]
    return f"{{{', '.join(parts)}}}"


def _quoted(texts: Sequence[str]) -> str:
    return f"[{' '.join(map(format_value, texts))}]"


def _aggregate(errors: Sequence[str]) -> str:
    """Return errors as Go prints a list of one aggregate."""
    distinct = list(dict.fromkeys(errors))
    return f"[{distinct[0]}]" if len(distinct) == 1 else f"[[{', '.join(distinct)}]]"


def _broken_down(rule: Rule) -> Iterator[Rule]:
    names = rule.get("resourceNames") or [None]
    resources = (rule.get("apiGroups") or (), rule.get("resources") or ())
    for group, resource, verb, name in product(*resources, rule.get("verbs") or (), names):
        named = {"resourceNames": [name]} if name is not None else {}
        yield {"apiGroups": [group], "resources": [resource], "verbs": [verb], **named}
    for path, verb in product(rule.get("nonResourceURLs") or (), rule.get("verbs") or ()):
        yield {"nonResourceURLs": [path], "verbs": [verb]}


def _combinations(rule: Rule) -> int:
    sizes = {name: len(rule.get(name) or ()) for name in _FIELDS}
    names = max(sizes["resourceNames"], 1)
    resources = prod((sizes["apiGroups"], sizes["resources"], names))
    return (resources + sizes["nonResourceURLs"]) * sizes["verbs"]


def _covers(held: Rule, part: Rule) -> bool:
    """Return whether a held rule covers a rule of one group, resource, verb and name."""
    return (
        _contains(held, "verbs", part)
        and _contains(held, "apiGroups", part)
        and all(
            not resource_patterns(each).isdisjoint(held.get("resources") or ())
            for each in part.get("resources") or ()
        )
        and all(
            any(_covers_path(owned, path) for owned in held.get("nonResourceURLs") or ())
            for path in part.get("nonResourceURLs") or ()
        )
        and _covers_name(held.get("resourceNames") or (), part.get("resourceNames") or ())
    )


def _contains(held: Rule, name: str, part: Rule) -> bool:
    owned = held.get(name) or ()
    return "*" in owned or all(each in owned for each in part.get(name) or ())


def _covers_path(owned: str, path: str) -> bool:
    return owned == path or (owned.endswith("*") and path.startswith(owned.rstrip("*")))


def _covers_name(owned: Sequence[str], names: Sequence[str]) -> bool:
    return not owned or (bool(names) and all(name in owned for name in names))


def _aggregates(role: Mapping[str, Any]) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _without_collected(document: Document) -> Document:
    metadata = {n: v for n, v in document["metadata"].items() if n not in _COLLECTED and v}
    return {**{n: v for n, v in document.items() if v}, "metadata": metadata}
