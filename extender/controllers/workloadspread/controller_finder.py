"""Targets and owners of pods, chains of owners, and the kinds that may be targeted.

An object is read from an informer's cache if its kind is followed and the cache has it; otherwise
it is read from the server, so that new objects are found and missing ones are known to be missing.
A kind is followed once one of its objects has been found. Scale subresources are not read here,
because no webhook needs them.

The allowed kinds are in a ConfigMap in OpenKruise's own namespace. Without it no additional kinds
are allowed; one that cannot be decoded is logged once, and allows none.

Source: openkruise/kruise pkg/util/workloadspread/workloadspread.go (getParentNameAndKind; its
client also caches the kinds that it is asked for).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from extender.controllers.workloadspread.types import (
    CONFIG_MAPS,
    CONFIGURATION_KEY,
    CONFIGURATION_SELECTION,
    CachedObject,
    decode_configuration,
    workload_decoder,
)
from extender.kube.informers.shared_informer import SharedInformer, SharedInformerFactory
from extender.kube.rest.api_errors import ApiError, MalformedError
from extender.kube.rest.client import Client
from extender.kube.rest.discovery import resource_of_kind
from extender.kube.rest.rate_limited_log import OnceLog
from extender.kube.rest.resources import (
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Resource,
)
from extender.kube.rest.transport import TransportError
from policies.workloadspread.object_references import (
    APPS,
    CLONE_SET,
    DEPLOYMENT,
    JOB,
    KRUISE,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    ApiVersionError,
    ObjectKey,
    WorkloadReference,
)
from policies.workloadspread.spread_lookup import OwnerLookup
from policies.workloadspread.workloads import NO_ALLOWED_KINDS, AllowedKinds, TargetWorkload

_KNOWN_RESOURCES: Final = {
    (KRUISE, CLONE_SET): Resource(KRUISE, "v1alpha1", "clonesets", namespaced=True),
    (KRUISE, STATEFUL_SET): Resource(KRUISE, "v1beta1", "statefulsets", namespaced=True),
    (APPS, DEPLOYMENT): Resource(APPS, "v1", "deployments", namespaced=True),
    (APPS, REPLICA_SET): REPLICA_SETS,
    (APPS, STATEFUL_SET): STATEFUL_SETS,
    ("batch", JOB): Resource("batch", "v1", "jobs", namespaced=True),
    ("", REPLICATION_CONTROLLER): REPLICATION_CONTROLLERS,
}


class WorkloadReadError(Exception):
    """An object could not be read, so its existence is unknown; the text is the reason."""


@dataclass(frozen=True, slots=True)
class OwnerChain:
    """The owners of a pod, from controller to controller, as far as they are followed.

    ``links`` are their keys; the last one may not have been found. ``complete`` is false if the
    last owner is missing and could have had an owner itself.
    """

    owners: OwnerLookup
    links: tuple[ObjectKey, ...] = ()
    complete: bool = True


class ControllerFinder:
    """Finds the objects that may own pods or be targeted."""

    def __init__(self, client: Client, informers: SharedInformerFactory) -> None:
        self._client = client
        self.informers = informers
        self._followed: dict[Resource, SharedInformer[CachedObject[TargetWorkload]]] = {}
        self._served: dict[str, Resource] = {}

    async def get(self, reference: WorkloadReference, namespace: str) -> TargetWorkload | None:
        """Return an object; None if it does not exist. Raises WorkloadReadError."""
        try:
            resource = await self._resource(reference)
            if resource is None or not reference.name:
                return None
            found = self._cached(resource, f"{namespace}/{reference.name}")
            if found is None:
                found = await self._fetch(resource, reference, namespace)
        except (ApiError, MalformedError, TransportError) as error:
            raise WorkloadReadError(f"{reference}: {error}") from None
        if found is not None and found.value is None:
            raise WorkloadReadError(found.problem)
        return None if found is None else found.value

    async def owner_chain(
        self, controller: WorkloadReference | None, namespace: str, allowed_kinds: AllowedKinds
    ) -> OwnerChain:
        """Return the chain of owners of a pod with this controller."""
        found: dict[ObjectKey, TargetWorkload] = {}
        unread: set[ObjectKey] = set()
        links: list[ObjectKey] = []
        missing = False
        while controller is not None:
            try:
                identity = controller.identity
            except ApiVersionError:
                missing = True
                break
            if identity in found:
                break
            links.append(identity)
            if not allowed_kinds.supports(identity.group, identity.kind):
                break
            try:
                owner = await self.get(controller, namespace)
            except WorkloadReadError:
                unread.add(identity)
                break
            if owner is None:
                missing = True
                break
            found[identity], controller = owner, owner.controller
        owners = OwnerLookup(found, frozenset(unread), allowed_kinds)
        return OwnerChain(owners, tuple(links), complete=not missing)

    async def _resource(self, reference: WorkloadReference) -> Resource | None:
        """Return the resource that serves an object's kind; None if there is none.

        Raises ApiError, MalformedError or TransportError.
        """
        identity = reference.lenient_identity
        known = _KNOWN_RESOURCES.get((identity.group, identity.kind))
        if known is not None:
            return known
        named = f"{reference.api_version} {reference.kind}"
        served = self._served.get(named)
        if served is None:
            try:
                found = await resource_of_kind(self._client, reference.api_version, reference.kind)
            except ApiError as error:
                if error.status == 404:
                    return None
                raise
            if found is None or not found.namespaced:
                return None
            served = self._served[named] = found
        return served

    def _cached(self, resource: Resource, key: str) -> CachedObject[TargetWorkload] | None:
        informer = self._followed.get(resource)
        return None if informer is None else informer.objects.get(key)

    async def _fetch(
        self, resource: Resource, reference: WorkloadReference, namespace: str
    ) -> CachedObject[TargetWorkload] | None:
        decode = workload_decoder(reference.kind, ())
        found = await self._client.find(resource.object(reference.name, namespace), decode)
        if found is None:
            return None
        # The informer may have been dropped elsewhere together with the kind, which is served
        # again.
        self._followed[resource] = self.informers.of(resource, decode)
        return found


class KruiseConfiguration:
    """Caches OpenKruise's configuration."""

    def __init__(self, informers: SharedInformerFactory, log: OnceLog) -> None:
        self._shared = informers.join(CONFIG_MAPS, decode_configuration, CONFIGURATION_SELECTION)
        self._log = log

    @property
    def synced(self) -> bool:
        """Whether the informer of the configuration has synced."""
        return self._shared.reflector.synced

    async def wait_synced(self) -> None:
        """Wait until the informer of the configuration has synced."""
        await self._shared.wait_synced()

    @property
    def allowed_kinds(self) -> AllowedKinds:
        """The kinds that the configuration allows."""
        found = self._shared.objects.get(CONFIGURATION_KEY)
        if found is None:
            return NO_ALLOWED_KINDS
        if found.problem:
            self._log.warning("configuration_ignored", found.metadata.key, why=found.problem)
        return found.value or NO_ALLOWED_KINDS
