"""A recording of ten minutes of random changes with the whole control plane."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

import orjson

from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import PatchType
from extender.kube.rest.resources import NAMESPACES, NODES, PODS, REPLICA_SETS, Resource
from extender.recording.files import read_recording
from fakeapi import VirtualCluster
from tests.builders import manifest
from tests.fakeapi.replay.random_world import Document, contents
from tests.recorded.spread import BATCH, BOOK, SPREADS, WEB, a_replica_set

SECONDS: Final = 600.0

_CLASS: Final = manifest("PriorityClass", "urgent", value=1000)
_BUDGET: Final = manifest(
    "PodDisruptionBudget",
    "web",
    spec={"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
)


class Churn:
    """What users do by chance; refusals are part of it."""

    def __init__(self, cluster: VirtualCluster, seed: int) -> None:
        self._cluster = cluster
        self._client = cluster.client
        self._rng = Random(seed)
        self._made = 0

    async def begin(self) -> None:
        """Have nodes register, and two ReplicaSets come that are spread."""
        self._cluster.load([_CLASS, _BUDGET])
        await self._cluster.clock.advance(5)
        for spread in (WEB, BATCH):
            await self._create(SPREADS, "default", spread)
        for name in ("web", "batch"):
            await self._create(REPLICA_SETS, "default", a_replica_set(name, 4))
        await self._cluster.clock.advance(30)

    async def go_on(self, seconds: float) -> None:
        """Do something every few seconds."""
        end = self._cluster.clock.monotonic() + seconds
        while (left := end - self._cluster.clock.monotonic()) > 0:
            with suppress(ApiError):
                await self._rng.choice(self._acts)()
            await self._cluster.clock.advance(min(left, self._rng.choice((0.3, 2, 7, 25))))

    @property
    def _acts(self) -> tuple[Any, ...]:
        return (
            self._scale,
            self._scale,
            self._urgent,
            self._delete,
            self._evict,
            self._cordon,
            self._limit,
            self._space,
        )

    async def _scale(self) -> None:
        name, replicas = self._rng.choice(("web", "batch")), self._rng.randrange(12)
        await self._patch(REPLICA_SETS, name, "default", {"spec": {"replicas": replicas}})

    async def _urgent(self) -> None:
        self._made += 1
        requests = {"cpu": self._rng.choice(("500m", "5"))}
        container = {"name": "c", "image": "i", "resources": {"requests": requests}}
        spec: Document = {"containers": [container], "priorityClassName": "urgent"}
        metadata = {"name": f"urgent-{self._made}", "labels": {"app": "urgent"}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        await self._create(PODS, "default", pod)

    async def _delete(self) -> None:
        space, name = await self._a_pod()
        grace = self._rng.choice((0, 3, 30))
        await self._client.delete(PODS.object(name, space), grace_period_seconds=grace)

    async def _evict(self) -> None:
        space, name = await self._a_pod()
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        path = PODS.object(name, space).subresource("eviction")
        await self._client.create(path, orjson.dumps(eviction), bytes)

    async def _cordon(self) -> None:
        node = self._rng.choice(("a-0", "a-1", "b-0", "b-1"))
        closed = self._rng.random() < 0.4
        await self._patch(NODES, node, "", {"spec": {"unschedulable": closed}})

    async def _limit(self) -> None:
        first, *others = WEB["spec"]["subsets"]
        subsets = [{**first, "maxReplicas": self._rng.randrange(6)}, *others]
        await self._patch(SPREADS, "web", "default", {"spec": {"subsets": subsets}})

    async def _space(self) -> None:
        if self._rng.random() < 0.4:
            await self._client.delete(NAMESPACES.object("trial"))
            return
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "trial"}}
        with suppress(ApiError):
            await self._create(NAMESPACES, "", space)
        replica_set = a_replica_set("api", 2)
        replica_set["metadata"]["namespace"] = "trial"
        await self._create(REPLICA_SETS, "trial", replica_set)

    async def _a_pod(self) -> tuple[str, str]:
        listed = await self._client.list(PODS, lambda raw: orjson.loads(bytes(raw)))
        if not listed.items:
            raise ApiError(404, "NotFound", "nothing there")
        metadata = self._rng.choice(listed.items)["metadata"]
        return metadata["namespace"], metadata["name"]

    async def _create(self, resource: Resource, space: str, body: Document) -> None:
        await self._client.create(resource.collection(space), orjson.dumps(body), bytes)

    async def _patch(self, resource: Resource, name: str, space: str, body: Document) -> None:
        path = resource.object(name, space)
        await self._client.patch(path, PatchType.MERGE, orjson.dumps(body), bytes)


async def churned(path: Path, seed: int, run: str = "all", seconds: float = SECONDS) -> Any:
    """Record such a time, and give how it ended."""
    async with VirtualCluster(run=run, seed=seed, kubelet=BOOK) as cluster:
        churn = Churn(cluster, seed)
        await churn.begin()
        with cluster.record(path):
            await churn.go_on(seconds)
        return contents(cluster)


async def played_back(seed: int) -> None:
    """Record such a time, play it with nothing attached, and find no difference."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "churn.jsonl.gz"
        end = await churned(path, seed)
        recording = read_recording(str(path))
        assert len(recording.events) > 300
        async with VirtualCluster(run="none", start_ns=recording.header.start_ns) as cluster:
            report = await cluster.replay(recording)
            assert contents(cluster) == end
        assert report.same
        assert not report.skipped
