"""Calls the WorkloadSpread webhooks for pods that are played.

The API server calls the webhooks for pods that controllers create and delete. Played pods are
written to the store without admission, so with ``workloadspread`` attached this module calls the
webhooks first. A created pod is assigned to a subset again (its other fields stay as recorded,
because injected fields cannot be distinguished), and a deleted pod is subtracted from the counts
before it is replaced.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from inspect import isawaitable
from typing import Any, Final

import orjson

from extender.controllers.webhooks.registration import (
    CREATE_POD,
    DELETE_POD,
    MUTATING,
    NAME,
    VALIDATING,
)
from extender.kube.workloadspread.spread_pods import MATCHED_WORKLOADSPREAD
from fakeapi.apiserver.webhooks.calls import WebhookFunction
from fakeapi.replay.object_fields import Document, ObjectLocation, with_subset

CONFIGURATIONS: Final = frozenset((str(MUTATING), str(VALIDATING)))

_ANNOTATIONS: Final = "/metadata/annotations"
_ANNOTATION: Final = f"{_ANNOTATIONS}/{MATCHED_WORKLOADSPREAD.replace('/', '~1')}"


class PodWebhookCaller:
    """Calls the pod webhooks of one API; ``hooks`` are its in-process webhooks by name."""

    def __init__(self, hooks: Mapping[str, WebhookFunction]) -> None:
        self._hooks = hooks
        self._configurations: set[str] = set()

    @property
    def is_registered(self) -> bool:
        """Whether both webhook configurations exist, so that the API server calls the webhooks."""
        return self._configurations == CONFIGURATIONS

    def record_object(self, place: ObjectLocation) -> None:
        """Record that an object exists."""
        if place[0] in CONFIGURATIONS and place[1] == NAME:
            self._configurations.add(place[0])

    async def review_creation(self, pod: Document) -> Document:
        """Return a pod to create, with the subset that the webhook assigns here."""
        bare = with_subset(pod, "")
        response = await self._review(CREATE_POD, "CREATE", bare, None)
        if not response.get("allowed"):
            return pod
        return with_subset(pod, _annotation(response))

    async def review_deletion(self, pod: Document) -> None:
        """Call the webhook for a pod that is about to be deleted."""
        await self._review(DELETE_POD, "DELETE", None, pod)

    async def _review(
        self, name: str, operation: str, pod: Document | None, old: Document | None
    ) -> Document:
        handler = self._hooks.get(name)
        if handler is None:
            return {}
        metadata = (pod or old or {})["metadata"]
        request = {
            "uid": str(metadata.get("uid", "")),
            "operation": operation,
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": metadata.get("namespace", ""),
            "name": metadata["name"],
            "object": pod,
            "oldObject": old,
        }
        head = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        answer: Any = handler({**head, "request": request})
        review = await answer if isawaitable(answer) else answer
        response: Document = review.get("response") or {}
        return response


def _annotation(response: Document) -> str:
    """Return the subset annotation in a response's patch; "" if there is none."""
    patch = response.get("patch")
    for operation in orjson.loads(b64decode(patch)) if patch else ():
        if operation["path"] == _ANNOTATION:
            return str(operation["value"])
        if operation["path"] == _ANNOTATIONS:
            return str(operation["value"].get(MATCHED_WORKLOADSPREAD, ""))
    return ""
