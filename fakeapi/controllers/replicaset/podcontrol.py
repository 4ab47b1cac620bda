"""Pods made, deleted and patched for a ReplicaSet; people are told of what is made and deleted.

The version of what was written is noted, so that the next look waits until the copies show it.

Source: controller_utils.go (RealPodControl).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from extender.kube.api_error import MalformedError
from extender.kube.client import Client, PatchType
from extender.kube.consistency import ConsistencyStore
from extender.kube.controller import RetryError
from extender.kube.events import EventRecorder
from extender.kube.metadata import OwnerReference
from extender.kube.resources import PODS
from fakeapi.controllers.replicaset.judging import controller_reference
from fakeapi.controllers.replicaset.shapes import ReplicaSet
from fakeapi.controllers.replicaset.trouble import (
    TROUBLES,
    has_status,
    namespace_terminates,
    words,
)


class _WrittenMeta(Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    owner_references: list[OwnerReference] | None = None


class _Written(Struct):
    """What is read of a pod that a server has just written."""

    metadata: _WrittenMeta = field(default_factory=_WrittenMeta)


class _TemplateMeta(Struct):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None


class _Template(Struct):
    metadata: _TemplateMeta | None = None
    spec: msgspec.Raw = msgspec.Raw(b"{}")


class _Spec(Struct):
    template: _Template = field(default_factory=_Template)


class _Document(Struct):
    spec: _Spec = field(default_factory=_Spec)


_written = msgspec.json.Decoder(_Written)
_documents = msgspec.json.Decoder(_Document)


def pod_from_template(replica_set: ReplicaSet) -> bytes:
    """Write the pod that a ReplicaSet makes; all pods of one template are the same.

    Of the template's metadata its labels, annotations and finalizers count. Raises RetryError if
    the template has no labels, or such as its selector does not match: no server lets such a
    ReplicaSet through, and it would make and release pods for ever.
    """
    if not replica_set.template_labels:
        raise RetryError("unable to create pods, no labels")
    if replica_set.selector is None or not replica_set.selector.matches(
        replica_set.template_labels
    ):
        raise RetryError("unable to create pods, `selector` does not match template `labels`")
    try:
        template = _documents.decode(replica_set.document).spec.template
    except msgspec.ValidationError as error:
        raise RetryError(f"unable to create pods, {error}") from None
    own = template.metadata or _TemplateMeta()
    metadata: dict[str, Any] = {
        "generateName": f"{replica_set.metadata.name}-",
        "labels": own.labels,
        "annotations": own.annotations,
        "finalizers": own.finalizers,
        "ownerReferences": [controller_reference(replica_set)],
    }
    given = {name: value for name, value in metadata.items() if value}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": given, "spec": template.spec}
    return msgspec.json.encode(pod)


class PodControl:
    """What is done to the pods of ReplicaSets; all methods raise one of ``TROUBLES``."""

    def __init__(self, client: Client, recorder: EventRecorder, writes: ConsistencyStore) -> None:
        self._client = client
        self._recorder = recorder
        self._writes = writes

    async def create(self, replica_set: ReplicaSet, pod: bytes) -> None:
        """Make a pod, and tell of it or of why not; a namespace that ends is no news."""
        about, meta = replica_set.reference, replica_set.metadata
        try:
            made = await self._client.create(PODS.collection(meta.namespace), pod, _decode)
        except TROUBLES as trouble:
            if not namespace_terminates(trouble):
                told = f"Error creating: {words(trouble)}"
                self._recorder.warning(about, "FailedCreate", told)
            raise
        self._writes.wrote(meta.key, meta.uid, PODS, made.resource_version)
        self._recorder.normal(about, "SuccessfulCreate", f"Created pod: {made.name}")

    async def delete(self, replica_set: ReplicaSet, name: str) -> None:
        """Delete a pod by its name, and tell of it or of why not; one that has gone is no news."""
        about = replica_set.reference
        try:
            await self._client.delete(PODS.object(name, about.namespace))
        except TROUBLES as trouble:
            if has_status(trouble, 404):
                raise
            told = f"Error deleting: {words(trouble)}"
            self._recorder.warning(about, "FailedDelete", told)
            raise RetryError(f"unable to delete pods: {words(trouble)}") from trouble
        self._recorder.normal(about, "SuccessfulDelete", f"Deleted pod: {name}")

    async def patch(self, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        """Patch a pod; nobody is told."""
        path, body = PODS.object(name, namespace), msgspec.json.encode(patch)
        changed = await self._client.patch(path, PatchType.STRATEGIC, body, _decode)
        controller = next((o for o in changed.owner_references or () if o.controller), None)
        if controller is not None:
            key = f"{namespace}/{controller.name}"
            self._writes.wrote(key, controller.uid, PODS, changed.resource_version)


def _decode(raw: msgspec.Raw) -> _WrittenMeta:
    try:
        return _written.decode(raw).metadata
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedError(f"not a pod: {error}") from error
