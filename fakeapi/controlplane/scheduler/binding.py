"""Bind a pod: through the extender that binds, if there is one, or through the API.

Source: bind and extendersBinding in pkg/scheduler/schedule_one.go, plugins/defaultbinder.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from extender.kube.api_error import ApiError, MalformedError
from extender.kube.client import Client
from extender.kube.transport import TransportError
from fakeapi.controlplane.scheduler.calling import Extender, ExtenderError
from fakeapi.controlplane.scheduler.sightings import CachedPod
from fakeapi.controlplane.scheduler.statuses import path_of
from policies.model import Pod


class BindingError(Exception):
    """A pod could not be bound; the text is kube-scheduler's."""


class Binder:
    """Binds pods."""

    def __init__(self, client: Client, extenders: Sequence[Extender]) -> None:
        self._client = client
        self._extenders = [each for each in extenders if each.config.bind_verb]

    async def bind(self, seen: CachedPod, pod: Pod, node: str) -> None:
        """Bind a pod to a node. Raises BindingError."""
        for extender in self._extenders:
            if not extender.is_interested(pod):
                continue
            try:
                await extender.bind(seen, node)
            except ExtenderError as error:
                if error.ignorable:
                    continue
                raise BindingError(str(error)) from None
            return
        await self._bind(seen, node)

    async def _bind(self, pod: CachedPod, node: str) -> None:
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"kind": "Node", "name": node},
        }
        path = path_of(pod).subresource("binding")
        try:
            await self._client.create(path, orjson.dumps(binding), bytes)
        except ApiError as error:
            raise BindingError(_failed(error.message)) from None
        except (MalformedError, TransportError) as error:
            raise BindingError(_failed(str(error))) from None


def _failed(why: str) -> str:
    return f'running Bind plugin "DefaultBinder": {why}'
