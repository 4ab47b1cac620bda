"""Update the status of a ReplicaSet, with one retry on the server's current version.

Source: replica_set_utils.go (updateReplicaSetStatus).
"""

from __future__ import annotations

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from extender.kube.api_error import MalformedError
from extender.kube.client import Client
from extender.kube.resources import REPLICA_SETS
from fakeapi.controllers.replicaset.shapes import (
    API_VERSION,
    KIND,
    ReplicaSet,
    ReplicaSetStatus,
    decode_replica_set,
)
from fakeapi.controllers.replicaset.status import status_differs, status_document
from fakeapi.controllers.replicaset.trouble import SYNC_ERRORS


class _UnchangedFields(Struct):
    """The fields that are sent back unchanged; list items do not state their kind."""

    metadata: msgspec.Raw
    spec: msgspec.Raw = msgspec.Raw(b"{}")


_unchanged_fields = msgspec.json.Decoder(_UnchangedFields)


async def write_status(
    client: Client, replica_set: ReplicaSet, status: ReplicaSetStatus
) -> ReplicaSet:
    """Write a status if it differs, and return the ReplicaSet as stored afterwards.

    observedGeneration is the generation that the status was calculated for, even if the status is
    written onto a newer one. After any error the ReplicaSet is read from the server and the status
    is written once more; a second error, one of ``SYNC_ERRORS``, is raised.
    """
    if not status_differs(replica_set, status):
        return replica_set
    status = replace(status, observed_generation=replica_set.metadata.generation)
    try:
        return await _put(client, replica_set, status)
    except SYNC_ERRORS:
        meta = replica_set.metadata
        path = REPLICA_SETS.object(meta.name, meta.namespace)
        return await _put(client, await client.get(path, _decode), status)


async def _put(client: Client, replica_set: ReplicaSet, status: ReplicaSetStatus) -> ReplicaSet:
    meta, parts = replica_set.metadata, _unchanged_fields.decode(replica_set.document)
    body = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": parts.metadata,
        "spec": parts.spec,
        "status": status_document(status),
    }
    path = REPLICA_SETS.object(meta.name, meta.namespace).subresource("status")
    return await client.update(path, msgspec.json.encode(body), _decode)


def _decode(raw: msgspec.Raw) -> ReplicaSet:
    try:
        return decode_replica_set(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedError(f"not a {KIND}: {error}") from error
