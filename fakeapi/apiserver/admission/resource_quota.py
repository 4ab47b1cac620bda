"""ResourceQuota admission: a write must fit the quotas of its namespace, and is charged to them.

It is the last plugin: the object is complete and valid, and all webhooks have allowed it. The
charges are written right after the object, in the same step of the server, so no other write comes
between, and a write that fails or is a dry run charges nothing. A deletion is counted by the
controller ``resourcequota``, as are writes that bypass admission.

Source: k8s.io/apiserver/pkg/admission/plugin/resourcequota, v1.37.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.store.object_store import Document, Entry
from fakeapi.apiserver.wire.errors import forbidden
from fakeapi.quota.accounting import (
    QuotaExceededError,
    QuotaWrite,
    is_charged,
    is_counted,
    new_usage,
)
from fakeapi.quota.evaluators import evaluator_of
from fakeapi.quota.resource_list import Object, ResourceList, written


@dataclass(frozen=True, slots=True)
class QuotaCharge:
    """The usage of a quota after a write."""

    namespace: str
    quota: str
    used: ResourceList

    def applied(self, document: Document) -> Document:
        """Return the quota with this usage."""
        return {**document, "status": {**document["status"], "used": written(self.used)}}


def charges_of(
    quotas: Iterable[Entry],
    kind: ResourceInfo,
    subresource: str,
    document: Document,
    old: Object | None,
    now: int,
) -> list[QuotaCharge]:
    """Return what a write charges to quotas; raise StatusError (403) if it exceeds one.

    ``now`` is in seconds since the epoch.
    """
    evaluator = evaluator_of(kind.resource)
    if evaluator is None:
        return []
    write = QuotaWrite(evaluator, subresource, document, old, now)
    if not is_charged(write):
        return []
    try:
        return list(_charges([entry.document() for entry in quotas], write))
    except QuotaExceededError as error:
        raise forbidden(kind, document["metadata"].get("name", ""), str(error)) from None


def _charges(quotas: Iterable[Document], write: QuotaWrite) -> Iterator[QuotaCharge]:
    counting = [quota for quota in quotas if is_counted(quota, write)]
    for quota in counting:
        used = new_usage(quota, write)
        if used is not None:
            metadata = quota["metadata"]
            yield QuotaCharge(metadata["namespace"], metadata["name"], used)
