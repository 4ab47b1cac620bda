"""The WorkloadSpreads of a cluster, from the day that their kind is defined.

While there is no such kind there is nothing to follow, which is said once. One that cannot be read
is named once, and left alone: pods pass it by.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from extender.kube.client import Selection
from extender.kube.decoding import ObjectError
from extender.kube.indexes import BY_NAMESPACE, namespace_of
from extender.kube.informers import Informers, Shared
from extender.kube.logs import OnceLog
from extender.kube.metadata import ObjectMeta, PartialObject, decode_partial
from extender.kube.resources import Resource
from extender.kube.workloadspread.spreads import WrittenSpread, decode_spread
from fakeapi.controllers.spreading.written import Written
from policies.spreading.references import KRUISE, Identity

SPREADS: Final = Resource(KRUISE, "v1beta1", "workloadspreads", namespaced=True)
DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
)
DEFINITION: Final = f"{SPREADS.plural}.{SPREADS.group}"

_BY_TARGET: Final = "spreading/target"
_THE_ONE: Final = Selection(field_selector=f"metadata.name={DEFINITION}")


@dataclass(frozen=True, slots=True)
class SpreadCopy:
    """A WorkloadSpread as it was seen; without ``written`` if it cannot be read: a ``problem``."""

    metadata: ObjectMeta
    written: WrittenSpread | None
    problem: str = ""


def decode_copy(raw: bytes) -> SpreadCopy:
    """Read a WorkloadSpread, whatever it is like."""
    whole = bytes(raw)
    metadata = decode_partial(whole).metadata
    try:
        return SpreadCopy(metadata, decode_spread(whole))
    except ObjectError as error:
        return SpreadCopy(metadata, None, str(error))


class SpreadCopies:
    """The WorkloadSpreads; what ``written`` remembers is forgotten as they show it."""

    def __init__(self, informers: Informers, written: Written, log: OnceLog) -> None:
        self._informers = informers
        self._written = written
        self._log = log
        self._followed: Shared[SpreadCopy] | None = None
        self._definitions = informers.of(DEFINITIONS, decode_partial, _THE_ONE)
        self._definitions.objects.add_handler(_Definitions(self))

    @property
    def defined(self) -> bool:
        """Whether the server has such a kind, as far as is known."""
        return self._followed is not None

    async def wait_defined_or_not(self) -> None:
        """Return once it is known whether the kind is there."""
        await self._definitions.wait_synced()

    async def wait_synced(self) -> None:
        """Return once it is known whether the kind is there, and what there is of it."""
        await self.wait_defined_or_not()
        if self._followed is None:
            why = "no WorkloadSpread is followed until this CustomResourceDefinition is there"
            self._log.warning("workloadspreads_not_defined", DEFINITION, why=why)
        else:
            await self._followed.wait_synced()

    def get(self, namespace: str, name: str) -> WrittenSpread | None:
        """Give a WorkloadSpread; None if it is not there or cannot be read."""
        found = self._followed and self._followed.objects.get(f"{namespace}/{name}")
        return found.written if found else None

    def of_namespace(self, namespace: str) -> list[WrittenSpread]:
        """Give the WorkloadSpreads of a namespace, by name."""
        return self._found(BY_NAMESPACE, namespace)

    def of_target(self, namespace: str, target: Identity) -> list[WrittenSpread]:
        """Give those that target an object, by name."""
        return self._found(_BY_TARGET, _targeted(namespace, target))

    def any_in(self, namespace: str) -> bool:
        """Tell whether there are any in a namespace."""
        return self._followed is not None and bool(
            self._followed.objects.by(BY_NAMESPACE, namespace)
        )

    def follow(self) -> None:
        """Begin to follow: the kind is there."""
        self._followed = self._informers.of(SPREADS, decode_copy)
        objects = self._followed.objects
        objects.add_index(BY_NAMESPACE, namespace_of)
        objects.add_index(_BY_TARGET, _targets)
        objects.add_handler(_Spreads(self._written, self._log))

    def drop(self) -> None:
        """Stop following: the kind has gone."""
        self._followed = None
        self._informers.drop(SPREADS, decode_copy)

    def _found(self, index: str, value: str) -> list[WrittenSpread]:
        if self._followed is None:
            return []
        copies = self._followed.objects.by(index, value)
        found = [copy.written for copy in copies if copy.written is not None]
        return sorted(found, key=lambda each: each.spread.name)


class _Definitions:
    """What follows from the definition that comes and goes."""

    def __init__(self, copies: SpreadCopies) -> None:
        self._copies = copies

    def added(self, item: PartialObject) -> None:  # noqa: ARG002 - a handler's form
        self._copies.follow()

    def updated(self, old: PartialObject, new: PartialObject) -> None:
        """Nothing follows from a definition that changes."""

    def removed(self, item: PartialObject) -> None:  # noqa: ARG002 - a handler's form
        self._copies.drop()


class _Spreads:
    """What follows from WorkloadSpreads that come, change and go."""

    def __init__(self, written: Written, log: OnceLog) -> None:
        self._written = written
        self._log = log

    def added(self, item: SpreadCopy) -> None:
        if item.written is None:
            self._log.warning("workloadspread_ignored", item.metadata.key, why=item.problem)
        else:
            self._written.shown(item.written)

    def updated(self, old: SpreadCopy, new: SpreadCopy) -> None:  # noqa: ARG002 - a handler's form
        self.added(new)

    def removed(self, item: SpreadCopy) -> None:
        self._written.forget(item.metadata.uid)


def _targets(copy: SpreadCopy) -> Iterator[str]:
    target = None if copy.written is None else copy.written.spread.target
    if target is not None:
        yield _targeted(copy.metadata.namespace, target.presumed)


def _targeted(namespace: str, target: Identity) -> str:
    return f"{namespace}/{target.group}/{target.kind}/{target.name}"
