"""A recording of ten minutes of random changes with the whole control plane."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import orjson

from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import NAMESPACES, NODES, PODS, REPLICA_SETS
from extender.recording.files import read_recording
from fakeapi import VirtualCluster
from tests.builders import container_json, manifest
from tests.fakeapi.replay.random_world import RandomStage, contents
from tests.recorded.spread import BATCH, SIMULATION_SCRIPT, SPREADS, WEB, a_replica_set

SECONDS: Final = 600.0

_CLASS: Final = manifest("PriorityClass", "urgent", value=1000)
_BUDGET: Final = manifest(
    "PodDisruptionBudget",
    "web",
    spec={"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
)


class Churn(RandomStage):
    """Random requests of users; refused ones are part of it."""

    made = 0

    async def begin(self) -> None:
        """Wait for the nodes, and create two ReplicaSets that are spread."""
        self.load(_CLASS, _BUDGET)
        await self.passes(5)
        for spread in (WEB, BATCH):
            await self.create(SPREADS, spread)
        for name in ("web", "batch"):
            await self.create(REPLICA_SETS, a_replica_set(name, 4))
        await self.passes(30)

    async def run(self, seconds: float) -> None:
        """Send a request every few seconds."""
        end = self.cluster.clock.monotonic() + seconds
        while (left := end - self.cluster.clock.monotonic()) > 0:
            with suppress(ApiError):
                await self.rng.choice(self._acts)()
            await self.passes(min(left, self.rng.choice((0.3, 2, 7, 25))))

    @property
    def _acts(self) -> tuple[Any, ...]:
        return (
            *(self._scale, self._scale, self._create_urgent_pod, self._delete_pod, self._evict),
            *(self._cordon, self._limit_subset, self._change_namespace),
        )

    async def _scale(self) -> None:
        name, replicas = self.rng.choice(("web", "batch")), self.rng.randrange(12)
        await self.patch(REPLICA_SETS, name, {"spec": {"replicas": replicas}})

    async def _create_urgent_pod(self) -> None:
        self.made += 1
        container = container_json("c", {"cpu": self.rng.choice(("500m", "5"))})
        spec = {"containers": [container], "priorityClassName": "urgent"}
        metadata = {"labels": {"app": "urgent"}}
        await self.create(
            PODS, manifest("Pod", f"urgent-{self.made}", metadata=metadata, spec=spec)
        )

    async def _delete_pod(self) -> None:
        await self.delete_pod(0, 3, 30)

    async def _evict(self) -> None:
        name, space = await self.pick(PODS)
        eviction = manifest("Eviction", name, version="policy/v1", namespace=space)
        path = PODS.object(name, space).subresource("eviction")
        await self.client.create(path, orjson.dumps(eviction), bytes)

    async def _cordon(self) -> None:
        node = self.rng.choice(("a-0", "a-1", "b-0", "b-1"))
        await self.patch(NODES, node, {"spec": {"unschedulable": self.rng.random() < 0.4}})

    async def _limit_subset(self) -> None:
        first, *others = WEB["spec"]["subsets"]
        subsets = [{**first, "maxReplicas": self.rng.randrange(6)}, *others]
        await self.patch(SPREADS, "web", {"spec": {"subsets": subsets}})

    async def _change_namespace(self) -> None:
        if self.rng.random() < 0.4:
            await self.delete(NAMESPACES, "trial")
            return
        with suppress(ApiError):
            await self.create(NAMESPACES, manifest("Namespace", "trial"))
        replica_set = a_replica_set("api", 2)
        replica_set["metadata"]["namespace"] = "trial"
        await self.create(REPLICA_SETS, replica_set)


async def played_back(seed: int) -> None:
    """Record random changes, replay them without components, and find no difference."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "churn.jsonl.gz"
        async with VirtualCluster(run="all", seed=seed, kubelet=SIMULATION_SCRIPT) as cluster:
            churn = Churn(cluster, seed)
            await churn.begin()
            with cluster.record(path):
                await churn.run(SECONDS)
            end = contents(cluster)
        recording = read_recording(str(path))
        assert len(recording.events) > 300
        async with VirtualCluster(run="none", start_ns=recording.header.start_ns) as cluster:
            report = await cluster.replay(recording)
            assert contents(cluster) == end
        assert report.same
        assert not report.skipped
