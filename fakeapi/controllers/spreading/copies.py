"""The WorkloadSpreads of a cluster, followed once their CustomResourceDefinition exists.

While the kind is not defined nothing is followed, which is logged once. A WorkloadSpread that
cannot be decoded is logged once and ignored, also by the pod webhooks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from extender.kube.client import Selection
from extender.kube.indexer import Indexer
from extender.kube.indexes import BY_NAMESPACE, namespace_of
from extender.kube.informers import Informers, Shared
from extender.kube.logs import OnceLog
from extender.kube.resources import Resource
from extender.kube.workloadspread.spreads import WrittenSpread
from fakeapi.controllers.spreading.items import (
    DEFINITIONS,
    Item,
    Registered,
    decode_registered,
    decode_spread,
)
from fakeapi.controllers.spreading.workloads import Chain
from fakeapi.controllers.spreading.written import Written
from policies.spreading.references import KRUISE, Identity

SPREADS: Final = Resource(KRUISE, "v1beta1", "workloadspreads", namespaced=True)
DEFINITION: Final = f"{SPREADS.plural}.{SPREADS.group}"

_BY_TARGET: Final = "spreading/target"
_THE_ONE: Final = Selection(field_selector=f"metadata.name={DEFINITION}")


class SpreadIndex:
    """Indexes the decoded WorkloadSpreads by namespace and by target, sorted by name."""

    def __init__(self, objects: Indexer[Item[WrittenSpread]]) -> None:
        self._objects = objects
        objects.add_index(BY_NAMESPACE, namespace_of)
        objects.add_index(_BY_TARGET, _targets)

    def get(self, namespace: str, name: str) -> WrittenSpread | None:
        """Return a WorkloadSpread; None if it does not exist or cannot be decoded."""
        found = self._objects.get(f"{namespace}/{name}")
        return None if found is None else found.value

    def any_in(self, namespace: str) -> bool:
        """Return whether a namespace has any WorkloadSpreads."""
        return bool(self._objects.by(BY_NAMESPACE, namespace))

    def of_namespace(self, namespace: str) -> list[WrittenSpread]:
        """Return the WorkloadSpreads of a namespace."""
        return _readable(self._objects.by(BY_NAMESPACE, namespace))

    def concerned(self, namespace: str, chain: Chain) -> list[WrittenSpread]:
        """Return the WorkloadSpreads that may apply to a pod with this chain of owners.

        They target one of the owners. If an owner is missing, all of the namespace are returned:
        each would reject the pod for it.
        """
        if not chain.whole:
            return self.of_namespace(namespace)
        keys = [_targeted(namespace, link) for link in chain.links]
        return _readable(each for key in keys for each in self._objects.by(_BY_TARGET, key))


class SpreadCopies:
    """Caches WorkloadSpreads, and drops ``assumed_statuses`` that the cache shows.

    ``definition`` is the informer of their CustomResourceDefinition.
    """

    def __init__(self, informers: Informers, written: Written, log: OnceLog) -> None:
        self._informers = informers
        self._handler = _Spreads(written, log)
        self._log = log
        self._followed: Shared[Item[WrittenSpread]] | None = None
        self._index = SpreadIndex(Indexer())
        self.definition = informers.of(DEFINITIONS, decode_registered, _THE_ONE)
        self.definition.objects.add_handler(_Definitions(self))

    @property
    def defined(self) -> bool:
        """Whether the definition has been observed and its kind is followed."""
        return self._followed is not None

    @property
    def synced(self) -> bool:
        """Whether the kind is defined and its informer has synced."""
        return self._followed is not None and self._followed.informer.synced

    @property
    def index(self) -> SpreadIndex:
        """The index of WorkloadSpreads; empty while the kind is not defined."""
        return self._index

    async def wait_defined_or_not(self) -> None:
        """Wait until it is known whether the kind is defined."""
        await self.definition.wait_synced()

    async def wait_synced(self) -> None:
        """Wait until it is known whether the kind is defined and, if it is, until it has synced."""
        await self.wait_defined_or_not()
        if self._followed is None:
            why = "no WorkloadSpread is followed until this CustomResourceDefinition is there"
            self._log.warning("workloadspreads_not_defined", DEFINITION, why=why)
        else:
            await self._followed.wait_synced()

    def follow(self) -> None:
        """Start to follow WorkloadSpreads; their kind is defined."""
        self._followed = self._informers.join(SPREADS, decode_spread)
        self._index = SpreadIndex(self._followed.objects)
        self._followed.objects.add_handler(self._handler)

    def drop(self) -> None:
        """Stop following WorkloadSpreads; their kind is no longer defined."""
        self._followed, self._index = None, SpreadIndex(Indexer())
        self._informers.leave(SPREADS, decode_spread, handlers=(self._handler,))


class _Definitions:
    """Handles events of the CustomResourceDefinition."""

    def __init__(self, copies: SpreadCopies) -> None:
        self._copies = copies

    def added(self, item: Registered) -> None:  # noqa: ARG002 - a handler's form
        self._copies.follow()

    def updated(self, old: Registered, new: Registered) -> None:
        """Ignore updates of the definition."""

    def removed(self, item: Registered) -> None:  # noqa: ARG002 - a handler's form
        self._copies.drop()


class _Spreads:
    """Handles events of WorkloadSpreads."""

    def __init__(self, written: Written, log: OnceLog) -> None:
        self._written = written
        self._log = log

    def added(self, item: Item[WrittenSpread]) -> None:
        if item.value is None:
            self._log.warning("workloadspread_ignored", item.metadata.key, why=item.problem)
        else:
            self._written.shown(item.value)

    def updated(self, old: Item[WrittenSpread], new: Item[WrittenSpread]) -> None:
        if old.value and new.value:
            self._written.moved(old.value, new.value)
        else:
            self.added(new)

    def removed(self, item: Item[WrittenSpread]) -> None:
        self._written.forget(item.metadata.uid)


def _readable(copies: Iterable[Item[WrittenSpread]]) -> list[WrittenSpread]:
    found = [copy.value for copy in copies if copy.value is not None]
    return sorted(found, key=lambda each: each.spread.name)


def _targets(copy: Item[WrittenSpread]) -> Iterator[str]:
    target = None if copy.value is None else copy.value.spread.target
    if target is not None:
        yield _targeted(copy.metadata.namespace, target.presumed)


def _targeted(namespace: str, target: Identity) -> str:
    return f"{namespace}/{target.group}/{target.kind}/{target.name}"
