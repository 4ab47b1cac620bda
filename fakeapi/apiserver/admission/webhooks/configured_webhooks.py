"""The configured webhooks, read from the store after each change of a configuration.

They are in the order of their configurations' names, and within a configuration in its own order.

Source: k8s.io/apiserver/pkg/admission/configuration (mutating_ and validating_webhook_manager.go).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.builtin import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from fakeapi.apiserver.kinds.structural_types import schema_of
from fakeapi.apiserver.objects.label_selectors import compile_label_selector
from fakeapi.apiserver.store.object_store import Store
from fakeapi.apiserver.wire.struct_decoder import StructDecodeError, decode_struct
from policies.kubernetes.selectors import LabelSelector, SelectorError

DEFAULT_SECONDS: Final = 10

Role = Literal["mutating", "validating"]
KINDS: Final[Mapping[Role, ResourceInfo]] = {
    "mutating": MUTATING_WEBHOOKS,
    "validating": VALIDATING_WEBHOOKS,
}


@dataclass(frozen=True, slots=True)
class WebhookRule:
    """The operations and resources that a webhook or an admission policy matches.

    ``names`` are those of the objects that a policy matches; empty: all of them.
    """

    operations: tuple[str, ...]
    groups: tuple[str, ...]
    versions: tuple[str, ...]
    resources: tuple[str, ...]
    scope: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Webhook:
    """A configured webhook; a selector that cannot be compiled is its error.

    ``key`` identifies it among all webhooks of its role: its configuration, its name, and the
    number of earlier webhooks of that name in the configuration.
    """

    key: tuple[str, str, int]
    role: Role
    name: str
    client: Mapping[str, Any]
    rules: tuple[WebhookRule, ...]
    namespaces: LabelSelector | SelectorError
    objects: LabelSelector | SelectorError
    versions: tuple[str, ...]
    side_effects: str
    timeout_seconds: int
    fails_open: bool
    equivalent: bool
    reinvoked: bool
    conditions: tuple[str, ...]


class WebhookConfigurations:
    """The configured webhooks of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: dict[Role, Sequence[Webhook]] = {}
        for kind in KINDS.values():
            store.listen(kind, self._read.clear)

    def of(self, role: Role) -> Sequence[Webhook]:
        """Return the webhooks of one role, in their order."""
        found = self._read.get(role)
        if found is None:
            found = self._read[role] = list(_webhooks(self._store, role))
        return found


def _webhooks(store: Store, role: Role) -> list[Webhook]:
    found: list[Webhook] = []
    for entry in store.entries(KINDS[role]):
        seen: dict[str, int] = {}
        configuration = entry.document()
        try:
            decode_struct(schema_of(KINDS[role]), configuration)
        except StructDecodeError:
            continue  # objects loaded without validation may not decode
        for document in configuration.get("webhooks") or ():
            name = document.get("name", "")
            found.append(_webhook((entry.key, name, seen.get(name, 0)), role, document))
            seen[name] = seen.get(name, 0) + 1
    return found


def _webhook(key: tuple[str, str, int], role: Role, document: Mapping[str, Any]) -> Webhook:
    return Webhook(
        key=key,
        role=role,
        name=key[1],
        client=document.get("clientConfig") or {},
        rules=tuple(compile_rule(rule) for rule in document.get("rules") or ()),
        namespaces=compile_selector(document.get("namespaceSelector") or {}),
        objects=compile_selector(document.get("objectSelector") or {}),
        versions=tuple(document.get("admissionReviewVersions") or ()),
        side_effects=document.get("sideEffects") or "",
        timeout_seconds=document.get("timeoutSeconds") or DEFAULT_SECONDS,
        fails_open=document.get("failurePolicy") == "Ignore",
        equivalent=document.get("matchPolicy", "Equivalent") == "Equivalent",
        reinvoked=document.get("reinvocationPolicy") == "IfNeeded",
        conditions=tuple(
            condition.get("expression", "").strip()
            for condition in document.get("matchConditions") or ()
        ),
    )


def compile_rule(rule: Mapping[str, Any]) -> WebhookRule:
    """Return a rule as it is matched."""
    return WebhookRule(
        operations=tuple(rule.get("operations") or ()),
        groups=tuple(rule.get("apiGroups") or ()),
        versions=tuple(rule.get("apiVersions") or ()),
        resources=tuple(rule.get("resources") or ()),
        scope=rule.get("scope") or "*",
        names=tuple(rule.get("resourceNames") or ()),
    )


def compile_selector(selector: Mapping[str, Any]) -> LabelSelector | SelectorError:
    """Return a label selector as it is matched; if that fails, return the error."""
    try:
        return compile_label_selector(selector)
    except SelectorError as error:
        return error
