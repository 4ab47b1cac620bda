"""Create, delete and patch pods for a workload, with Events for creations and deletions.

The version of each write is recorded, so that the next sync waits until the caches show it.

Source: controller_utils.go (RealPodControl).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct, field

from extender.controllers.replicaset.types import PodOwner, ReplicaSet, controller_reference
from extender.kube.controller_runtime.controller import RetryError
from extender.kube.controller_runtime.event_recorder import EventRecorder
from extender.kube.decoders.object_meta import OwnerReference
from extender.kube.informers.consistency_store import ConsistencyStore
from extender.kube.rest.api_errors import ApiError, MalformedError
from extender.kube.rest.client import Client, PatchType, response_decoder
from extender.kube.rest.resources import PODS
from extender.kube.rest.transport import TransportError

SyncError: TypeAlias = ApiError | MalformedError | RetryError | TransportError
SYNC_ERRORS: Final = (ApiError, MalformedError, RetryError, TransportError)
"""Errors that make a sync fail; it is retried."""

_NAMESPACE_TERMINATING: Final = "NamespaceTerminating"


def error_message(error: SyncError) -> str:
    """Return the message of the server's Status, or the text of a client-side error."""
    return error.message if isinstance(error, ApiError) else str(error)


def has_status(error: SyncError, *statuses: int) -> bool:
    """Return whether the server answered with one of these HTTP statuses."""
    return isinstance(error, ApiError) and error.status in statuses


def is_namespace_terminating(error: SyncError) -> bool:
    """Return whether a create was rejected because the namespace is terminating."""
    return isinstance(error, ApiError) and _NAMESPACE_TERMINATING in error.causes


def aggregate_messages(messages: Sequence[str]) -> str:
    """Join several messages as upstream's NewAggregate does, each distinct message once."""
    each = list(dict.fromkeys(messages))
    return each[0] if len(each) == 1 else f"[{', '.join(each)}]"


class _WriteResponseMeta(Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    owner_references: list[OwnerReference] | None = None


class _WriteResponse(Struct):
    """The fields that are read of a pod in the server's response to a write."""

    metadata: _WriteResponseMeta = field(default_factory=_WriteResponseMeta)


class _CopiedTemplateMeta(Struct):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None


class _CopiedTemplate(Struct):
    metadata: _CopiedTemplateMeta | None = None
    spec: msgspec.Raw = msgspec.Raw(b"{}")


class _ReplicaSetDocumentSpec(Struct):
    template: _CopiedTemplate = field(default_factory=_CopiedTemplate)


class _ReplicaSetDocument(Struct):
    spec: _ReplicaSetDocumentSpec = field(default_factory=_ReplicaSetDocumentSpec)


_write_responses = msgspec.json.Decoder(_WriteResponse)
_decode = response_decoder("a pod", lambda raw: _write_responses.decode(raw).metadata)
_documents = msgspec.json.Decoder(_ReplicaSetDocument)


def pod_from_template(replica_set: ReplicaSet) -> bytes:
    """Return the JSON of the pod that a ReplicaSet creates; all its pods are the same.

    Of the template's metadata, labels, annotations and finalizers are used. Raises RetryError if
    the template has no labels, or labels that the selector does not match: no API server accepts
    such a ReplicaSet, and it would create and release pods for ever.
    """
    if not replica_set.template_labels:
        raise RetryError("unable to create pods, no labels")
    selector = replica_set.selector
    if selector is None or not selector.matches(replica_set.template_labels):
        raise RetryError("unable to create pods, `selector` does not match template `labels`")
    try:
        template = _documents.decode(replica_set.document).spec.template
    except msgspec.ValidationError as error:
        raise RetryError(f"unable to create pods, {error}") from None
    own = template.metadata or _CopiedTemplateMeta()
    metadata: dict[str, Any] = {
        "generateName": f"{replica_set.metadata.name}-",
        "labels": own.labels,
        "annotations": own.annotations,
        "finalizers": own.finalizers,
        "ownerReferences": [controller_reference(replica_set)],
    }
    metadata = {name: value for name, value in metadata.items() if value}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.spec}
    return msgspec.json.encode(pod)


class PodControl:
    """Writes the pods of workloads; all methods raise one of ``SYNC_ERRORS``."""

    def __init__(self, client: Client, recorder: EventRecorder, writes: ConsistencyStore) -> None:
        self._client = client
        self._recorder = recorder
        self._writes = writes

    async def create(self, owner: PodOwner, pod: bytes) -> None:
        """Create a pod and record an Event, unless the namespace rejects it as terminating."""
        about, meta = owner.reference, owner.metadata
        try:
            made = await self._client.create(PODS.collection(meta.namespace), pod, _decode)
        except SYNC_ERRORS as error:
            if not is_namespace_terminating(error):
                message = f"Error creating: {error_message(error)}"
                self._recorder.warning(about, "FailedCreate", message)
            raise
        self._writes.wrote(meta.key, meta.uid, PODS, made.resource_version)
        self._recorder.normal(about, "SuccessfulCreate", f"Created pod: {made.name}")

    async def delete(self, owner: PodOwner, name: str) -> None:
        """Delete a pod by name and record an Event, except if the pod is not found."""
        about = owner.reference
        try:
            await self._client.delete(PODS.object(name, about.namespace))
        except SYNC_ERRORS as error:
            if has_status(error, 404):
                raise
            message = error_message(error)
            self._recorder.warning(about, "FailedDelete", f"Error deleting: {message}")
            raise RetryError(f"unable to delete pods: {message}") from error
        self._recorder.normal(about, "SuccessfulDelete", f"Deleted pod: {name}")

    async def delete_if_present(self, owner: PodOwner, name: str) -> None:
        """Delete a pod by name and record an Event, or do nothing if the pod is not found."""
        try:
            await self.delete(owner, name)
        except SYNC_ERRORS as error:
            if not has_status(error, 404):
                raise

    async def patch(self, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        """Patch a pod; no Event is recorded."""
        path, body = PODS.object(name, namespace), msgspec.json.encode(patch)
        changed = await self._client.patch(path, PatchType.STRATEGIC, body, _decode)
        controller = next((o for o in changed.owner_references or () if o.controller), None)
        if controller is not None:
            key = f"{namespace}/{controller.name}"
            self._writes.wrote(key, controller.uid, PODS, changed.resource_version)
