"""The ServiceAccount ``default`` and the root CA ConfigMap of every namespace.

    object                          created when missing       restored when changed
    ServiceAccount default          yes                        no
    ConfigMap kube-root-ca.crt      yes                        yes

Terminating namespaces are skipped. A cluster that serves plain HTTP has no certificate, and
publishes an empty text.

Source: kubernetes/pkg/controller/serviceaccount/serviceaccounts_controller.go,
pkg/controller/certificates/rootcacertpublisher/publisher.go.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from extender.controllers.process.controller_manager import ComponentContext
from extender.kube.controller_runtime.controller import Controller
from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.decoders.object_meta import ObjectMeta, PartialObject, decode_partial
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import NAMESPACES, Resource
from fakeapi.controlplane.controllers.types import Namespace, decode_namespace, decode_tolerantly

SERVICE_ACCOUNTS: Final = Resource("", "v1", "serviceaccounts", namespaced=True)
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", namespaced=True)
DEFAULT: Final = "default"
ROOT_CA: Final = "kube-root-ca.crt"

_DESCRIPTION: Final = {
    "kubernetes.io/description": (
        "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
        "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
        "guaranteed across distributions of Kubernetes clusters."
    )
}


class _ConfigMap(Struct):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    data: dict[str, str] | None = None


_decode_config_map = decode_tolerantly(_ConfigMap)


class ServiceAccountController:
    """The component ``serviceaccounts``."""

    def __init__(self, context: ComponentContext) -> None:
        self._client = context.client
        self._certificate = context.certificate
        self._namespaces = context.informers.of(NAMESPACES, decode_namespace)
        self._accounts = context.informers.of(SERVICE_ACCOUNTS, decode_partial)
        self._config_maps = context.informers.of(CONFIG_MAPS, _decode_config_map)
        self._queue: WorkQueue[str] = WorkQueue(context.clock)
        self.controller = Controller("serviceaccounts", self._queue, self._sync)

    async def run(self) -> None:
        """Reconcile namespaces until cancelled."""
        shared = (self._namespaces, self._accounts, self._config_maps)
        await asyncio.gather(*(each.wait_synced() for each in shared))
        self._namespaces.objects.add_handler(_ServiceAccountNamespaceEventHandler(self._queue))
        self._accounts.objects.add_handler(_NamedObjectEventHandler(self._queue, DEFAULT))
        self._config_maps.objects.add_handler(_NamedObjectEventHandler(self._queue, ROOT_CA))
        await self.controller.run()

    async def _sync(self, name: str) -> None:
        namespace = self._namespaces.objects.get(name)
        if namespace is None or namespace.metadata.deleting:
            return
        if self._accounts.objects.get(f"{name}/{DEFAULT}") is None:
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _meta(DEFAULT)}
            await self._create(SERVICE_ACCOUNTS, name, account)
        await self._publish(name)

    async def _publish(self, name: str) -> None:
        data = {"ca.crt": self._certificate}
        document = {"apiVersion": "v1", "kind": "ConfigMap", "data": data}
        found = self._config_maps.objects.get(f"{name}/{ROOT_CA}")
        if found is None:
            document["metadata"] = {**_meta(ROOT_CA), "annotations": _DESCRIPTION}
            await self._create(CONFIG_MAPS, name, document)
        elif found.data != data:
            annotations = {**(found.metadata.annotations or {}), **_DESCRIPTION}
            document["metadata"] = {**_meta(ROOT_CA), "annotations": annotations}
            path = CONFIG_MAPS.object(ROOT_CA, name)
            await self._client.update(path, msgspec.json.encode(document), bytes)

    async def _create(self, resource: Resource, namespace: str, document: Any) -> None:
        try:
            body = msgspec.json.encode(document)
            await self._client.create(resource.collection(namespace), body, bytes)
        except ApiError as error:
            if error.reason == "AlreadyExists" or error.status == 404:
                return
            if error.status == 403 and "NamespaceTerminating" in error.causes:
                return
            raise


class _ServiceAccountNamespaceEventHandler:
    """Enqueues namespaces that are added or updated."""

    def __init__(self, queue: WorkQueue[str]) -> None:
        self._queue = queue

    def added(self, item: Namespace) -> None:
        self._queue.add(item.metadata.name)

    def updated(self, _old: Namespace, new: Namespace) -> None:
        self._queue.add(new.metadata.name)

    def removed(self, item: Namespace) -> None:
        """Ignore removals; the namespace's objects are deleted with it."""


class _NamedObjectEventHandler:
    """Enqueues the namespace of an object of one name when it changes or is deleted."""

    def __init__(self, queue: WorkQueue[str], name: str) -> None:
        self._queue = queue
        self._name = name

    def added(self, item: PartialObject | _ConfigMap) -> None:
        """Ignore additions."""

    def updated(self, _old: PartialObject | _ConfigMap, new: PartialObject | _ConfigMap) -> None:
        self.removed(new)

    def removed(self, item: PartialObject | _ConfigMap) -> None:
        if item.metadata.name == self._name:
            self._queue.add(item.metadata.namespace)


def _meta(name: str) -> dict[str, Any]:
    return {"name": name}
