"""Webhooks for tests: configurations in one line, and functions that answer reviews.

api.load([configuration("mutating", webhook("label.example.com", rules=[rule("pods")]))])
api.webhooks.hooks["label.example.com"] = answering(patch=[add("/metadata/labels/seen", "yes")])
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable
from typing import Any

import orjson

Review = dict[str, Any]
Hook = Callable[[Review], Review]

GROUP = "/apis/admissionregistration.k8s.io/v1"
CONFIGURATIONS = {
    "mutating": f"{GROUP}/mutatingwebhookconfigurations",
    "validating": f"{GROUP}/validatingwebhookconfigurations",
}
KINDS = {"mutating": "MutatingWebhookConfiguration", "validating": "ValidatingWebhookConfiguration"}
URL = "https://hooks.example.com/review"


def rule(*resources: str, **fields: Any) -> dict[str, Any]:
    """Build a rule about every operation on resources of every group."""
    anything = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"]}
    return {**anything, "resources": list(resources), **fields}


def webhook(name: str, *resources: str, **fields: Any) -> dict[str, Any]:
    """Build a webhook that wants to see everything that is done to resources (config maps)."""
    return {
        "name": name,
        "clientConfig": {"url": URL},
        "rules": [rule(*(resources or ("configmaps",)))],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **fields,
    }


def configuration(role: str, *webhooks: dict[str, Any], name: str = "") -> dict[str, Any]:
    """Build a configuration; unless it has a name it is called as its role."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": KINDS[role],
        "metadata": {"name": name or role},
        "webhooks": list(webhooks),
    }


def answered(review: Review, **response: Any) -> Review:
    """Answer a review: allowed, unless specified otherwise."""
    header = {name: review[name] for name in ("apiVersion", "kind")}
    return {**header, "response": {"uid": review["request"]["uid"], "allowed": True, **response}}


def patching(*operations: dict[str, Any]) -> dict[str, Any]:
    """Build the part of a response that holds a JSON patch."""
    encoded = b64encode(orjson.dumps(list(operations))).decode()
    return {"patch": encoded, "patchType": "JSONPatch"}


def add(path: str, value: Any) -> dict[str, Any]:
    """Build an operation of a JSON patch."""
    return {"op": "add", "path": path, "value": value}


def answering(**response: Any) -> Hook:
    """Return a hook that always answers the same."""
    return lambda review: answered(review, **response)


class Recorder:
    """A hook that remembers the requests it has seen, and answers as another one."""

    def __init__(self, answer: Hook | None = None) -> None:
        self.requests: list[Any] = []
        self._answer = answer or answering()

    def __call__(self, review: Review) -> Review:
        self.requests.append(review["request"])
        return self._answer(review)

    def seen(self, *members: str) -> list[Any]:
        """Return members of the requests, several as tuples."""
        values: Iterable[Any] = ([r.get(m) for m in members] for r in self.requests)
        return [v[0] if len(v) == 1 else tuple(v) for v in values]
