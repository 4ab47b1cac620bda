"""The doorway: the webhooks of WorkloadSpreads hear of pods that are played.

Pods that controllers make and delete pass the webhooks of themselves. Those that are played are put
into the store, past all admission; where WorkloadSpreads are attached they are shown to the
webhooks before. So a pod that comes is put into a subset anew (what it looks like stays as it was
recorded, as nobody can tell what of it was once injected), and one that goes is taken off the
count before anybody replaces it.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from inspect import isawaitable
from typing import Any, Final

import orjson

from extender.kube.workloadspread.pods import MATCHED
from fakeapi.api.outcalls import Hook
from fakeapi.controllers.spreadwebhooks.names import CREATE_POD, DELETE_POD
from fakeapi.controllers.spreadwebhooks.registration import MUTATING, NAME, VALIDATING
from fakeapi.replaying.objects import Document, Place
from fakeapi.replaying.subsets import with_subset

CONFIGURATIONS: Final = frozenset((str(MUTATING), str(VALIDATING)))

_ANNOTATIONS: Final = "/metadata/annotations"
_ANNOTATION: Final = f"{_ANNOTATIONS}/{MATCHED.replace('/', '~1')}"


class Doorway:
    """Shows pods to the webhooks of one API, whose ``hooks`` are given by their names."""

    def __init__(self, hooks: Mapping[str, Hook]) -> None:
        self._hooks = hooks
        self._known: set[str] = set()

    @property
    def open(self) -> bool:
        """Whether the API server knows the webhooks, so that whom it lets in has passed them."""
        return self._known == CONFIGURATIONS

    def note(self, place: Place) -> None:
        """Hear of an object that is there."""
        if place[0] in CONFIGURATIONS and place[1] == NAME:
            self._known.add(place[0])

    async def coming(self, pod: Document) -> Document:
        """Return a pod as it comes: in the subset that it is put into here."""
        bare = with_subset(pod, "")
        response = await self._ask(CREATE_POD, "CREATE", bare, None)
        if not response.get("allowed"):
            return pod
        return with_subset(pod, _annotation(response))

    async def leaving(self, pod: Document) -> None:
        """Tell of a pod that is about to go."""
        await self._ask(DELETE_POD, "DELETE", None, pod)

    async def _ask(
        self, name: str, operation: str, pod: Document | None, old: Document | None
    ) -> Document:
        hook = self._hooks.get(name)
        if hook is None:
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
        answered: Any = hook({**head, "request": request})
        review = await answered if isawaitable(answered) else answered
        response: Document = review.get("response") or {}
        return response


def _annotation(response: Document) -> str:
    """Read what a pod is to say of its subset, "" if nothing."""
    patch = response.get("patch")
    for operation in orjson.loads(b64decode(patch)) if patch else ():
        if operation["path"] == _ANNOTATION:
            return str(operation["value"])
        if operation["path"] == _ANNOTATIONS:
            return str(operation["value"].get(MATCHED, ""))
    return ""
