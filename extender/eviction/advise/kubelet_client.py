"""The client for kubelets through the API server's node proxy: stats and configuration.

    /api/v1/nodes/NAME/proxy/stats/summary    in each round
    /api/v1/nodes/NAME/proxy/configz          every five minutes

The number of concurrent requests is limited, and each request times out after ten seconds. If a
kubelet's configuration cannot be read, its defaults are assumed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar
from urllib.parse import quote

import msgspec

from extender.kube.decoders.kubelet.config import KubeletConfig, decode_kubelet_config
from extender.kube.decoders.kubelet.summary_stats import decode_summary
from extender.kube.decoders.manifests import Document, ManifestError
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import Client
from extender.kube.rest.clock import Clock, within
from extender.kube.rest.resources import ObjectPath
from extender.kube.rest.transport import TransportError
from policies.eviction.config import ResolvedConfig, resolve
from policies.eviction.filesystems import Layout, infer_layout
from policies.eviction.kubelet_releases import EvictionRelease
from policies.eviction.stats import Summary
from policies.eviction.thresholds import ThresholdError

REQUEST_TIMEOUT_SECONDS: Final = 10.0
CONFIG_CACHE_SECONDS: Final = 300.0

T = TypeVar("T")
CachedConfig = tuple[bytes, str]
"""The eviction settings of a configuration, as JSON, and a note about it."""

_NO_CONFIG: Final = b"{}"
_configs = msgspec.json.Decoder(KubeletConfig)


class KubeletReadError(Exception):
    """A node cannot be read; the text is the reason, without the node's name."""


@dataclass(frozen=True, slots=True)
class KubeletAnswer:
    """A kubelet's stats and resolved configuration; ``note`` describes what had to be assumed."""

    summary: Summary
    config: ResolvedConfig
    note: str = ""


class KubeletClient:
    """The kubelets of one cluster; ``concurrency`` is the number of concurrent requests."""

    def __init__(
        self, client: Client, clock: Clock, release: EvictionRelease, concurrency: int
    ) -> None:
        self._client = client
        self._clock = clock
        self._release = release
        self._concurrency = concurrency
        self._cache: dict[str, tuple[float, CachedConfig]] = {}
        self._resolved: dict[tuple[bytes, Layout], ResolvedConfig] = {}

    async def get(self, node: str) -> KubeletAnswer:
        """Return the stats and configuration of one kubelet. Raise KubeletReadError."""
        raw = await self._get(node, "stats/summary")
        try:
            name, summary = decode_summary(Document(raw, "stats/summary"))
        except ManifestError as error:
            raise KubeletReadError(str(error)) from None
        if name and name != node:
            raise KubeletReadError(f"stats/summary: node.nodeName: expected {node!r}, got {name!r}")
        config, note = await self._config(node)
        return KubeletAnswer(summary, self._resolve(config, infer_layout(summary.node)), note)

    async def get_all(
        self, nodes: Iterable[str], use: Callable[[str, KubeletAnswer | KubeletReadError], None]
    ) -> None:
        """Query many kubelets, and pass each answer to ``use`` as it arrives."""

        async def one(node: str) -> None:
            try:
                use(node, await self.get(node))
            except KubeletReadError as error:
                use(node, error)

        await run_concurrently(self._concurrency, nodes, one)

    def retain(self, nodes: Iterable[str]) -> None:
        """Drop the cached configurations of nodes that no longer exist."""
        kept = set(nodes)
        self._cache = {name: cached for name, cached in self._cache.items() if name in kept}

    async def _config(self, node: str) -> CachedConfig:
        now, known = self._clock.monotonic(), self._cache.get(node)
        if known is not None and now - known[0] < CONFIG_CACHE_SECONDS:
            return known[1]
        try:
            raw = await self._get(node, "configz")
        except KubeletReadError as error:
            config = (_NO_CONFIG, f"{error}; assuming the kubelet's defaults")
        else:
            config = (_eviction_settings(raw), "")
        self._cache[node] = (now, config)
        return config

    def _resolve(self, config: bytes, layout: Layout) -> ResolvedConfig:
        """Return the resolved configuration, which most nodes of a cluster share."""
        resolved = self._resolved.get((config, layout))
        if resolved is None:
            try:
                resolved = resolve(_configs.decode(config).configuration(layout, self._release))
            except ThresholdError as error:
                place = f"configz: {error.field}" if error.field else "configz"
                raise KubeletReadError(f"{place}: {error}") from None
            self._resolved[config, layout] = resolved
        return resolved

    async def _get(self, node: str, path: str) -> bytes:
        proxy = ObjectPath(f"/api/v1/nodes/{quote(node, safe='')}/proxy/{path}")
        request = self._client.get(proxy, bytes)
        try:
            return await within(self._clock, REQUEST_TIMEOUT_SECONDS, request)
        except ApiError as error:
            message = " ".join(error.message.split())
            raise KubeletReadError(f"{path}: {error.status} {error.reason}: {message}") from None
        except TransportError as error:
            raise KubeletReadError(f"{path}: {' '.join(str(error).split())}") from None
        except TimeoutError as error:
            raise KubeletReadError(f"{path}: no response {error}") from None


def _eviction_settings(raw: bytes) -> bytes:
    """Return the eviction settings of a configuration; the rest may differ from node to node."""
    try:
        return msgspec.json.encode(decode_kubelet_config(Document(raw, "configz")))
    except ManifestError as error:
        raise KubeletReadError(str(error)) from None


async def run_concurrently(
    limit: int, things: Iterable[T], work: Callable[[T], Awaitable[None]]
) -> None:
    """Run ``work`` for each of many things, for ``limit`` of them at a time."""
    left = iter(things)

    async def worker() -> None:
        for thing in left:
            await work(thing)

    async with asyncio.TaskGroup() as group:
        for _ in range(limit):
            group.create_task(worker())
