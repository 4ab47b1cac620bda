"""Reflectors of kinds that a server may lack, forbid, or serve in an older version only.

Each kind is read in the first of its versions that the server has. A server that stops serving or
permitting a kind is tolerated as well: the store forgets its objects, so that decisions that need
them are not made on outdated ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Protocol, TypeVar

from extender.kube.informers.reflector import OptionalReflector, ReflectorContext, ReflectorStore
from extender.kube.rest.api_errors import ApiError, RequestError
from extender.kube.rest.client import EVERYTHING, Decode, Selection
from extender.kube.rest.resources import Resource

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

_DEVICES: Final = ("v1", "v1beta2", "v1beta1")
_GROUPS: Final = ("v1", "v1beta1", "v1alpha3", "v1alpha2")

VERSIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "resourceclaims": _DEVICES,
    "resourceslices": _DEVICES,
    "deviceclasses": _DEVICES,
    "devicetaintrules": ("v1", "v1beta2", "v1alpha3"),
    "podgroups": _GROUPS,
    "compositepodgroups": _GROUPS,
}
"""The versions that are read of kinds with several, by their plural, in order of preference."""


class OptionalStore(ReflectorStore[T_contra], Protocol[T_contra]):
    """A store of a kind that may become unavailable."""

    def unlist(self) -> None:
        """Forget all objects: they are no longer known."""
        ...


class OptionalKindReflector(OptionalReflector[T]):
    """Lists and watches one kind, by its name ``kind``."""

    def __init__(
        self,
        context: ReflectorContext,
        resource: Resource,
        kind: str,
        decode: Decode[T],
        store: OptionalStore[T],
        selection: Selection = EVERYTHING,
    ) -> None:
        super().__init__(context, resource, decode, store, selection)
        self._versions = VERSIONS.get(resource.plural, (resource.version,))
        self._kind = kind
        self._optional_store = store

    async def _list(self) -> None:
        for version in self._versions:
            self._resource = replace(self._resource, version=version)
            try:
                await super()._list()
            except ApiError as error:
                if error.status != 404 or version == self._versions[-1]:
                    raise
            else:
                return

    def _settle_unless_served(self, error: RequestError) -> None:
        super()._settle_unless_served(error)
        if self.refusal and self.synced:
            self._must_list = True
            self._synced.clear()
            self._optional_store.unlist()

    def _describe_refusal(self, error: ApiError) -> str:
        group, versions = self._resource.group, ", ".join(self._versions)
        api_version = f"{group}/{versions}" if group else versions
        reason = super()._describe_refusal(error)
        return f"{api_version} {self._kind} rejected by the server ({reason})"
