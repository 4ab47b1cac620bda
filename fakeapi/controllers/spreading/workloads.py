"""Targets and owners of pods, and chains of owners.

An object is read from an informer's cache if its kind is followed and the cache has it; otherwise
it is read from the server, so that new objects are found and missing ones are known to be missing.
A kind is followed once one of its objects has been found. Scale subresources are not read here,
because no webhook needs them.

Source: openkruise/kruise pkg/util/workloadspread/workloadspread.go (getParentNameAndKind; its
client also caches the kinds that it is asked for).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from extender.kube.api_error import ApiError, MalformedError
from extender.kube.client import Client
from extender.kube.discovery import resource_of_kind
from extender.kube.informers import Informers, Shared
from extender.kube.resources import REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS, Resource
from extender.kube.transport import TransportError
from fakeapi.controllers.spreading.items import Item, workload_decoder
from policies.spreading.owners import Owners
from policies.spreading.references import (
    APPS,
    CLONE_SET,
    DEPLOYMENT,
    JOB,
    KRUISE,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    ApiVersionError,
    Identity,
    Reference,
)
from policies.spreading.workloads import Whitelist, Workload

_KNOWN: Final = {
    (KRUISE, CLONE_SET): Resource(KRUISE, "v1alpha1", "clonesets", namespaced=True),
    (KRUISE, STATEFUL_SET): Resource(KRUISE, "v1beta1", "statefulsets", namespaced=True),
    (APPS, DEPLOYMENT): Resource(APPS, "v1", "deployments", namespaced=True),
    (APPS, REPLICA_SET): REPLICA_SETS,
    (APPS, STATEFUL_SET): STATEFUL_SETS,
    ("batch", JOB): Resource("batch", "v1", "jobs", namespaced=True),
    ("", REPLICATION_CONTROLLER): REPLICATION_CONTROLLERS,
}
_NOT_FOUND: Final = 404


class UnreadError(Exception):
    """An object could not be read, so its existence is unknown; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The owners of a pod, from controller to controller, as far as they are followed.

    ``links`` are their keys; the last one may not have been found. ``complete`` is false if the
    last owner is missing and could have had an owner itself.
    """

    owners: Owners
    links: tuple[Identity, ...] = ()
    whole: bool = True


class Workloads:
    """Finds the objects that may own pods or be targeted."""

    def __init__(self, client: Client, informers: Informers) -> None:
        self._client = client
        self.informers = informers
        self._copies: dict[Resource, Shared[Item[Workload]]] = {}
        self._served: dict[str, Resource] = {}

    async def get(self, reference: Reference, namespace: str) -> Workload | None:
        """Return an object; None if it does not exist. Raises UnreadError."""
        try:
            resource = await self._resource(reference)
            if resource is None or not reference.name:
                return None
            copy = self._copy(resource, f"{namespace}/{reference.name}")
            if copy is None:
                copy = await self._ask(resource, reference, namespace)
        except (ApiError, MalformedError, TransportError) as error:
            raise UnreadError(f"{reference}: {error}") from None
        if copy is not None and copy.value is None:
            raise UnreadError(copy.problem)
        return None if copy is None else copy.value

    async def chain(
        self, controller: Reference | None, namespace: str, whitelist: Whitelist
    ) -> Chain:
        """Return the chain of owners of a pod with this controller."""
        found: dict[Identity, Workload] = {}
        unread: set[Identity] = set()
        links: list[Identity] = []
        missing = False
        while controller is not None:
            try:
                identity = controller.identity
            except ApiVersionError:
                return Chain(Owners(found, frozenset(unread), whitelist), tuple(links), whole=False)
            if identity in found:
                break
            links.append(identity)
            if not whitelist.supports(identity.group, identity.kind):
                break
            try:
                owner = await self.get(controller, namespace)
            except UnreadError:
                unread.add(identity)
                break
            if owner is None:
                missing = True
                break
            found[identity], controller = owner, owner.controller
        return Chain(Owners(found, frozenset(unread), whitelist), tuple(links), whole=not missing)

    async def _resource(self, reference: Reference) -> Resource | None:
        """Return the resource that serves an object's kind; None if there is none.

        Raises ApiError, MalformedError or TransportError.
        """
        identity = reference.presumed
        known = _KNOWN.get((identity.group, identity.kind))
        if known is not None:
            return known
        named = f"{reference.api_version} {reference.kind}"
        served = self._served.get(named)
        if served is None:
            try:
                found = await resource_of_kind(self._client, reference.api_version, reference.kind)
            except ApiError as error:
                if error.status == _NOT_FOUND:
                    return None
                raise
            if found is None or not found.namespaced:
                return None
            served = self._served[named] = found
        return served

    def _copy(self, resource: Resource, key: str) -> Item[Workload] | None:
        copies = self._copies.get(resource)
        return None if copies is None else copies.objects.get(key)

    async def _ask(
        self, resource: Resource, reference: Reference, namespace: str
    ) -> Item[Workload] | None:
        decode = workload_decoder(reference.kind, ())
        try:
            copy = await self._client.get(resource.object(reference.name, namespace), decode)
        except ApiError as error:
            if error.status == _NOT_FOUND:
                return None
            raise
        # The informer may have been dropped elsewhere together with the kind, which is served
        # again.
        self._copies[resource] = self.informers.of(resource, decode)
        return copy
