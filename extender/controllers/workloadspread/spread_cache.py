"""The WorkloadSpreads of a cluster, followed once their CustomResourceDefinition exists.

While the kind is not defined nothing is followed, which is logged once. A WorkloadSpread that
cannot be decoded is logged once and ignored, also by the pod webhooks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from extender.controllers.workloadspread.assumed_statuses import AssumedStatuses
from extender.controllers.workloadspread.controller_finder import OwnerChain
from extender.controllers.workloadspread.types import (
    DEFINITIONS,
    CachedObject,
    CachedRawObject,
    decode_cached_document,
    decode_spread,
)
from extender.kube.informers.indexer import BY_NAMESPACE, Indexer, namespace_of
from extender.kube.informers.shared_informer import SharedInformer, SharedInformerFactory
from extender.kube.rest.client import Selection
from extender.kube.rest.rate_limited_log import OnceLog
from extender.kube.rest.resources import Resource
from extender.kube.workloadspread.spreads import StoredWorkloadSpread
from policies.workloadspread.object_references import KRUISE, ObjectKey

WORKLOAD_SPREADS: Final = Resource(KRUISE, "v1beta1", "workloadspreads", namespaced=True)
DEFINITION: Final = f"{WORKLOAD_SPREADS.plural}.{WORKLOAD_SPREADS.group}"

_BY_TARGET: Final = "spreading/target"
_DEFINITION_SELECTION: Final = Selection(field_selector=f"metadata.name={DEFINITION}")


class WorkloadSpreadIndex:
    """Indexes the decoded WorkloadSpreads by namespace and by target, sorted by name."""

    def __init__(self, objects: Indexer[CachedObject[StoredWorkloadSpread]]) -> None:
        self._objects = objects
        objects.add_index(BY_NAMESPACE, namespace_of)
        objects.add_index(_BY_TARGET, _target_keys)

    def get(self, namespace: str, name: str) -> StoredWorkloadSpread | None:
        """Return a WorkloadSpread; None if it does not exist or cannot be decoded."""
        found = self._objects.get(f"{namespace}/{name}")
        return None if found is None else found.value

    def has_any(self, namespace: str) -> bool:
        """Return whether a namespace has any WorkloadSpreads."""
        return bool(self._objects.by(BY_NAMESPACE, namespace))

    def of_namespace(self, namespace: str) -> list[StoredWorkloadSpread]:
        """Return the WorkloadSpreads of a namespace."""
        return _decoded(self._objects.by(BY_NAMESPACE, namespace))

    def targeting(self, namespace: str, chain: OwnerChain) -> list[StoredWorkloadSpread]:
        """Return the WorkloadSpreads that may apply to a pod with this chain of owners.

        They target one of the owners. If an owner is missing, all of the namespace are returned:
        each would reject the pod for it.
        """
        if not chain.complete:
            return self.of_namespace(namespace)
        keys = [_target_key(namespace, link) for link in chain.links]
        return _decoded(each for key in keys for each in self._objects.by(_BY_TARGET, key))


class WorkloadSpreadCache:
    """Caches WorkloadSpreads, and drops ``assumed_statuses`` that the cache shows.

    ``definition`` is the informer of their CustomResourceDefinition.
    """

    def __init__(
        self, informers: SharedInformerFactory, assumed_statuses: AssumedStatuses, log: OnceLog
    ) -> None:
        self._informers = informers
        self._handler = _WorkloadSpreadCacheHandler(assumed_statuses, log)
        self._log = log
        self._followed: SharedInformer[CachedObject[StoredWorkloadSpread]] | None = None
        self._index = WorkloadSpreadIndex(Indexer())
        self.definition = informers.of(DEFINITIONS, decode_cached_document, _DEFINITION_SELECTION)
        self.definition.objects.add_handler(_DefinitionEventHandler(self))

    @property
    def defined(self) -> bool:
        """Whether the definition has been observed and its kind is followed."""
        return self._followed is not None

    @property
    def synced(self) -> bool:
        """Whether the kind is defined and its informer has synced."""
        return self._followed is not None and self._followed.reflector.synced

    @property
    def index(self) -> WorkloadSpreadIndex:
        """The index of WorkloadSpreads; empty while the kind is not defined."""
        return self._index

    async def wait_definition_synced(self) -> None:
        """Wait until it is known whether the kind is defined."""
        await self.definition.wait_synced()

    async def wait_synced(self) -> None:
        """Wait until it is known whether the kind is defined and, if it is, until it has synced."""
        await self.wait_definition_synced()
        if self._followed is None:
            why = "no WorkloadSpread is watched until this CustomResourceDefinition exists"
            self._log.warning("workloadspreads_not_defined", DEFINITION, why=why)
        else:
            await self._followed.wait_synced()

    def follow(self) -> None:
        """Start to follow WorkloadSpreads; their kind is defined."""
        self._followed = self._informers.join(WORKLOAD_SPREADS, decode_spread)
        self._index = WorkloadSpreadIndex(self._followed.objects)
        self._followed.objects.add_handler(self._handler)

    def unfollow(self) -> None:
        """Stop following WorkloadSpreads; their kind is no longer defined."""
        self._followed, self._index = None, WorkloadSpreadIndex(Indexer())
        self._informers.leave(WORKLOAD_SPREADS, decode_spread, handlers=(self._handler,))


class _DefinitionEventHandler:
    """Handles events of the CustomResourceDefinition."""

    def __init__(self, cache: WorkloadSpreadCache) -> None:
        self._cache = cache

    def added(self, item: CachedRawObject) -> None:  # noqa: ARG002 - a handler's form
        self._cache.follow()

    def updated(self, old: CachedRawObject, new: CachedRawObject) -> None:
        """Ignore updates of the definition."""

    def removed(self, item: CachedRawObject) -> None:  # noqa: ARG002 - a handler's form
        self._cache.unfollow()


class _WorkloadSpreadCacheHandler:
    """Handles events of WorkloadSpreads."""

    def __init__(self, assumed_statuses: AssumedStatuses, log: OnceLog) -> None:
        self._assumed = assumed_statuses
        self._log = log

    def added(self, item: CachedObject[StoredWorkloadSpread]) -> None:
        if item.value is None:
            self._log.warning("workloadspread_ignored", item.metadata.key, why=item.problem)
        else:
            self._assumed.observe(item.value)

    def updated(
        self, old: CachedObject[StoredWorkloadSpread], new: CachedObject[StoredWorkloadSpread]
    ) -> None:
        if old.value and new.value:
            self._assumed.observe_update(old.value, new.value)
        else:
            self.added(new)

    def removed(self, item: CachedObject[StoredWorkloadSpread]) -> None:
        self._assumed.forget(item.metadata.uid)


def _decoded(items: Iterable[CachedObject[StoredWorkloadSpread]]) -> list[StoredWorkloadSpread]:
    found = [item.value for item in items if item.value is not None]
    return sorted(found, key=lambda each: each.spread.name)


def _target_keys(item: CachedObject[StoredWorkloadSpread]) -> Iterator[str]:
    target = None if item.value is None else item.value.spread.target
    if target is not None:
        yield _target_key(item.metadata.namespace, target.lenient_identity)


def _target_key(namespace: str, target: ObjectKey) -> str:
    return f"{namespace}/{target.group}/{target.kind}/{target.name}"
