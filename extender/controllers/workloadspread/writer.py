"""Write the result of a reconciliation of a WorkloadSpread.

Several pods are patched concurrently. The first error is raised after all workers have ended; the
next sync does the rest.

A status is written onto the version that it was calculated from. If another process (a webhook) has
written in between, the server answers with a conflict, and the WorkloadSpread is synced again.
Webhooks of the same process take the same lock, and start from our writes as we start from theirs.

The version of each write is recorded, so that the next sync waits until the caches show it.

Source: openkruise/kruise pkg/controller/workloadspread/workloadspread_controller.go
(patchFavoriteSubsetMetadataToPod, UpdateWorkloadSpreadStatus), update_pod_deletion_cost.go,
reschedule.go (cleanupUnscheduledPods).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from extender.controllers.workloadspread.assumed_statuses import AssumedStatuses
from extender.controllers.workloadspread.types import WORKLOAD_SPREAD
from extender.kube.controller_runtime.event_recorder import EventRecorder, ObjectReference
from extender.kube.decoders.object_meta import decode_partial
from extender.kube.decoders.typed_decoder import ObjectError
from extender.kube.informers.consistency_store import ConsistencyStore
from extender.kube.rest.api_errors import ApiError, MalformedError
from extender.kube.rest.client import Client, PatchType, response_decoder
from extender.kube.rest.resources import PODS, Resource
from extender.kube.rest.transport import TransportError
from extender.kube.workloadspread.pod_injection import adoption_patch, cost_patch
from extender.kube.workloadspread.spreads import (
    StoredWorkloadSpread,
    decode_workloadspread,
    encode_status,
)
from extender.kube.workloadspread.version_conversion import V1BETA1, convert
from policies.workloadspread.model import WorkloadSpread, WorkloadSpreadStatus
from policies.workloadspread.reconcile import PodToDelete, ReconcileResult, delete_failed_event
from policies.workloadspread.reschedule import WARNING, Event

CONCURRENT_REQUESTS: Final = 8
"""How many pods are patched concurrently."""

T = TypeVar("T")

_metadata = response_decoder("an object", lambda raw: decode_partial(raw).metadata)


class ResultWriter:
    """Writes the results of WorkloadSpreads; all methods raise the client's errors."""

    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        writes: ConsistencyStore,
        assumed_statuses: AssumedStatuses,
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._writes = writes
        self._assumed = assumed_statuses

    async def adopt(self, written: StoredWorkloadSpread, outcome: ReconcileResult) -> None:
        """Annotate the pods that were matched to a subset."""
        patches = {
            name: adoption_patch(written, subset.name)
            for name, subset in outcome.groups.adopted.items()
        }
        await self._patch_pods(written.spread, patches)

    async def set_costs(self, spread: WorkloadSpread, outcome: ReconcileResult) -> None:
        """Write the deletion costs that pods do not have yet."""
        patches = {name: cost_patch(cost) for name, cost in outcome.cost_changes.items()}
        await self._patch_pods(spread, patches)

    async def write_status(
        self, resource: Resource, written: StoredWorkloadSpread, status: WorkloadSpreadStatus
    ) -> None:
        """Write a status onto the version it was calculated from; 409 if there is a newer one.

        The caller must hold the WorkloadSpread's lock.
        """
        spread = written.spread
        document = {**written.document, "status": encode_status(status)}
        body = msgspec.json.encode(convert(document, f"{resource.group}/{resource.version}"))
        path = resource.object(spread.name, spread.namespace).subresource("status")
        now = await self._client.update(path, body, _spread)
        self._assumed.record_write(now)
        self._writes.wrote(spread.key, spread.uid, resource, now.spread.resource_version)

    async def delete(self, spread: WorkloadSpread, pods: Collection[PodToDelete]) -> None:
        """Delete the pods to reschedule, and record Events of those that cannot be deleted."""

        async def delete(each: PodToDelete) -> None:
            pod = each.pod
            try:
                await self._client.delete(PODS.object(pod.name, pod.namespace), uid=pod.uid)
            except (ApiError, MalformedError, TransportError) as error:
                if isinstance(error, ApiError) and error.status in (404, 409):
                    return  # gone, or replaced by another pod
                self.record_events(spread, (delete_failed_event(spread, each),))
                raise

        await _for_each(pods, delete)

    def record_events(self, spread: WorkloadSpread, events: Iterable[Event]) -> None:
        """Record Events about a WorkloadSpread."""
        about = reference(spread)
        for event in events:
            record = self._recorder.warning if event.type == WARNING else self._recorder.normal
            record(about, event.reason, event.message)

    async def _patch_pods(
        self, spread: WorkloadSpread, patches: Mapping[str, Mapping[str, Any]]
    ) -> None:
        async def patch(name: str) -> None:
            path, body = PODS.object(name, spread.namespace), msgspec.json.encode(patches[name])
            meta = await self._client.patch(path, PatchType.STRATEGIC, body, _metadata)
            self._writes.wrote(spread.key, spread.uid, PODS, meta.resource_version)

        await _for_each(patches, patch)


def reference(spread: WorkloadSpread) -> ObjectReference:
    """Return the object reference of Events about a WorkloadSpread."""
    place = spread.namespace, spread.name, spread.uid
    return ObjectReference(V1BETA1, WORKLOAD_SPREAD[1], *place, spread.resource_version)


async def _for_each(items: Collection[T], apply: Callable[[T], Awaitable[None]]) -> None:
    """Run ``apply`` for each item, several concurrently; raise the first error at the end."""
    left = iter(items)

    async def work() -> None:
        for item in left:
            await apply(item)

    workers = min(CONCURRENT_REQUESTS, len(items))  # most syncs have nothing to do
    if not workers:
        return
    outcomes = await asyncio.gather(*(work() for _ in range(workers)), return_exceptions=True)
    for outcome in outcomes:
        if outcome is not None:
            raise outcome


def _spread(raw: msgspec.Raw | bytes) -> StoredWorkloadSpread:
    try:
        return decode_workloadspread(bytes(raw))
    except ObjectError as error:
        raise MalformedError(f"not a WorkloadSpread: {error}") from error
