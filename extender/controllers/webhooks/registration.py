"""Register the webhooks in the API server: configurations, and the definition's conversion.

The configurations exist as long as the CustomResourceDefinition does: without WorkloadSpreads there
is nothing to review. They are created, and repaired whenever they differ, except that an address
which another process has written after this one is kept, so that two processes do not overwrite
each other's: the last one to start is called. When this process ends they are kept as well, and
pods wait for the next process that serves them.

    create-pod     /mutate-pod                                a pod is created
    delete-pod     /validate-pod                              a pod is deleted
    evict-pod      /validate-pod                              a pod is evicted
    validate       /validate-apps-kruise-io-workloadspread    a WorkloadSpread is created or updated
    (definition)   /convert                                   a version other than the stored one

Each name ends in ``.workloadspread.apps.kruise.io``.

A pod is rejected while the webhooks cannot be called (``failurePolicy: Fail``), since it would not
be counted. Namespaces labelled ``control-plane`` are excluded, so that system components never
depend on the webhooks. Upstream's webhooks have other names, because they serve several APIs; they
are also called for updates of pods, for which WorkloadSpreads have no rules.

Sources: openkruise/kruise pkg/webhook/util/{configuration,crd}, config/webhook (manifests.yaml,
patch_manifests.yaml).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from extender.controllers.workloadspread.spread_cache import (
    DEFINITION,
    WORKLOAD_SPREADS,
    WorkloadSpreadCache,
)
from extender.controllers.workloadspread.types import DEFINITIONS, decode_cached_document
from extender.kube.controller_runtime.controller import Controller
from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.decoders.object_meta import decode_partial
from extender.kube.informers.indexer import IndexedObject
from extender.kube.informers.shared_informer import SharedInformerFactory
from extender.kube.rest.api_errors import ApiError, MalformedError
from extender.kube.rest.client import Client, PatchType, Selection
from extender.kube.rest.clock import Clock
from extender.kube.rest.rate_limited_log import OnceLog
from extender.kube.rest.resources import Resource
from extender.kube.rest.transport import TransportError

GROUP: Final = "admissionregistration.k8s.io"
NAME: Final = "reprieve-workloadspread"
MUTATING: Final = Resource(GROUP, "v1", "mutatingwebhookconfigurations", namespaced=False)
VALIDATING: Final = Resource(GROUP, "v1", "validatingwebhookconfigurations", namespaced=False)

MUTATE_POD: Final = "/mutate-pod"
VALIDATE_POD: Final = "/validate-pod"
VALIDATE_SPREAD: Final = "/validate-apps-kruise-io-workloadspread"
CONVERT: Final = "/convert"

CREATE_POD: Final = "create-pod.workloadspread.apps.kruise.io"
DELETE_POD: Final = "delete-pod.workloadspread.apps.kruise.io"
EVICT_POD: Final = "evict-pod.workloadspread.apps.kruise.io"
VALIDATE: Final = "validate.workloadspread.apps.kruise.io"

PATHS: Final[Mapping[str, str]] = {
    CREATE_POD: MUTATE_POD,
    DELETE_POD: VALIDATE_POD,
    EVICT_POD: VALIDATE_POD,
    VALIDATE: VALIDATE_SPREAD,
}
"""The path of each webhook, by its name."""

REVIEW_VERSIONS: Final = ("v1",)

_RESOURCES: Final = {each.plural: each for each in (DEFINITIONS, VALIDATING, MUTATING)}
"""By plural, in the order in which they are written at first: a client waits for the last one."""
_OURS: Final = Selection(field_selector=f"metadata.name={NAME}")

Document = dict[str, Any]
ClientConfig = Callable[[str], Document]
"""Returns the clientConfig for a path."""

_OUTSIDE_CONTROL_PLANE: Final = {
    "matchExpressions": [{"key": "control-plane", "operator": "DoesNotExist"}]
}


def mutating_webhooks(client_config: ClientConfig) -> list[Document]:
    """Return the mutating webhooks."""
    return [_pod_webhook(CREATE_POD, "CREATE", "pods", client_config)]


def validating_webhooks(client_config: ClientConfig) -> list[Document]:
    """Return the validating webhooks."""
    group, plural = WORKLOAD_SPREADS.group, WORKLOAD_SPREADS.plural
    spreads = _rule(group, ["v1alpha1", "v1beta1"], ["CREATE", "UPDATE"], plural)
    return [
        _pod_webhook(DELETE_POD, "DELETE", "pods", client_config),
        _pod_webhook(EVICT_POD, "CREATE", "pods/eviction", client_config),
        _webhook(VALIDATE, spreads, {}, client_config),
    ]


def conversion(client_config: ClientConfig) -> Document:
    """Return the conversion of the CustomResourceDefinition."""
    webhook = {
        "clientConfig": client_config(CONVERT),
        "conversionReviewVersions": list(REVIEW_VERSIONS),
    }
    return {"strategy": "Webhook", "webhook": webhook}


def _pod_webhook(name: str, operation: str, resource: str, client_config: ClientConfig) -> Document:
    rule = _rule("", ["v1"], [operation], resource)
    return _webhook(name, rule, _OUTSIDE_CONTROL_PLANE, client_config)


def _rule(group: str, versions: list[str], operations: list[str], resource: str) -> Document:
    return {
        "apiGroups": [group],
        "apiVersions": versions,
        "operations": operations,
        "resources": [resource],
        "scope": "*",
    }


def _webhook(
    name: str, rule: Document, namespaces: Document, client_config: ClientConfig
) -> Document:
    """Return a webhook with all fields set, so that it can be compared with the stored one."""
    return {
        "admissionReviewVersions": list(REVIEW_VERSIONS),
        "clientConfig": client_config(PATHS[name]),
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "name": name,
        "namespaceSelector": namespaces,
        "objectSelector": {},
        "rules": [rule],
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": 10,
    }


_CONFIGURATION_KINDS: Final = {
    MUTATING: ("MutatingWebhookConfiguration", mutating_webhooks),
    VALIDATING: ("ValidatingWebhookConfiguration", validating_webhooks),
}


class WebhookRegistration:
    """Keeps the webhook configurations and the conversion up to date, as a controller."""

    def __init__(
        self,
        client: Client,
        informers: SharedInformerFactory,
        clock: Clock,
        cache: WorkloadSpreadCache,
        client_config: ClientConfig,
        log: OnceLog,
    ) -> None:
        self._client = client
        self._cache = cache
        self._client_config = client_config
        self._log = log
        self._written: set[Resource] = set()
        self._queue: WorkQueue[str] = WorkQueue(clock)
        self.controller = Controller("workloadspread-webhooks", self._queue, self._sync)
        self._informers = {
            resource: informers.of(resource, decode_cached_document, _OURS)
            for resource in _CONFIGURATION_KINDS
        }
        self._informers[DEFINITIONS] = cache.definition

    async def run(self) -> None:
        """Reconcile until cancelled."""
        await self._cache.wait_definition_synced()
        for resource, shared in self._informers.items():
            await shared.wait_synced()
            both = resource is DEFINITIONS
            keys = tuple(_RESOURCES) if both else (resource.plural,)
            shared.objects.add_handler(_RegistrationEventHandler(partial(self._enqueue, keys)))
        self._enqueue(tuple(_RESOURCES))
        await self.controller.run()

    def _enqueue(self, keys: tuple[str, ...]) -> None:
        for key in keys:
            self._queue.add(key)

    async def _sync(self, key: str) -> None:
        resource = _RESOURCES[key]
        try:
            if not self._cache.defined:
                await self._remove(resource)
                return
            await self._cache.wait_synced()
            if resource is DEFINITIONS:
                await self._convert()
            else:
                await self._configure(resource)
        except (ApiError, MalformedError, TransportError) as error:
            if not (isinstance(error, ApiError) and error.status == 409):
                self._log.warning("webhooks_not_registered", str(resource), why=str(error))
            raise

    async def _configure(self, resource: Resource) -> None:
        """Create or update a webhook configuration."""
        kind, webhooks_of = _CONFIGURATION_KINDS[resource]
        expected = webhooks_of(self._client_config)
        cached = self._informers[resource].objects.get(NAME)
        if cached is None:
            head = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": NAME}}
            body = msgspec.json.encode({**head, "webhooks": expected})
            await self._client.create(resource.collection(), body, decode_partial)
        elif not _includes(cached.document.get("webhooks"), expected):
            found = cached.document.get("webhooks") or []
            if self._is_taken_over(
                resource, _without_client_config(found), _without_client_config(expected)
            ):
                return
            body = msgspec.json.encode({**cached.document, "webhooks": expected})
            await self._client.update(resource.object(NAME), body, decode_partial)
        self._written.add(resource)

    async def _convert(self) -> None:
        """Update the conversion of the definition, if its strategy is a webhook."""
        cached = self._informers[DEFINITIONS].objects.get(DEFINITION)
        found = {} if cached is None else cached.document["spec"].get("conversion") or {}
        if found.get("strategy") != "Webhook":
            return
        expected = conversion(self._client_config)
        if not _includes(found, expected):
            if self._is_taken_over(DEFINITIONS, None, None):
                return
            nothing = {"url": None, "service": None, "caBundle": None}
            webhook = expected["webhook"]
            webhook["clientConfig"] = {**nothing, **webhook["clientConfig"]}
            path = DEFINITIONS.object(DEFINITION)
            change = msgspec.json.encode({"spec": {"conversion": expected}})
            await self._client.patch(path, PatchType.MERGE, change, decode_partial)
        self._written.add(DEFINITIONS)

    def _is_taken_over(self, resource: Resource, found: Any, expected: Any) -> bool:
        """Return whether only the address differs, and another process wrote it after us."""
        taken_over = resource in self._written and _includes(found, expected)
        if taken_over:
            why = "another process has registered its address since"
            self._log.warning("webhooks_taken_over", str(resource), why=why)
        return taken_over

    async def _remove(self, resource: Resource) -> None:
        self._written.discard(resource)
        if resource is DEFINITIONS or self._informers[resource].objects.get(NAME) is None:
            return
        try:
            await self._client.delete(resource.object(NAME))
        except ApiError as error:
            if error.status != 404:
                raise


class _RegistrationEventHandler:
    """Handles any event by enqueueing the given keys."""

    def __init__(self, enqueue: Callable[[], None]) -> None:
        self._enqueue = enqueue

    def added(self, item: IndexedObject) -> None:  # noqa: ARG002 - a handler's form
        self._enqueue()

    def updated(self, old: IndexedObject, new: IndexedObject) -> None:  # noqa: ARG002 - a handler's form
        self._enqueue()

    def removed(self, item: IndexedObject) -> None:  # noqa: ARG002 - a handler's form
        self._enqueue()


def _includes(found: Any, expected: Any) -> bool:
    """Return whether a document includes all expected fields; servers add default values."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(
            key in found and _includes(found[key], value) for key, value in expected.items()
        )
    if isinstance(expected, list):
        return (
            isinstance(found, list)
            and len(found) == len(expected)
            and all(map(_includes, found, expected))
        )
    return bool(found == expected)


def _without_client_config(webhooks: list[Document]) -> list[Document]:
    """Return webhooks without their clientConfig."""
    return [{k: v for k, v in each.items() if k != "clientConfig"} for each in webhooks]
