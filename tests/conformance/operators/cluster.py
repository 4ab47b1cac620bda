"""A fakeapi in a process for operators: TLS, RBAC, and its own objects, as a kube-apiserver."""

from __future__ import annotations

import asyncio
import json
import os
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from fakeapi import FakeCluster
from fakeapi.testing.process_cluster import ProcessCluster
from tests.builders import manifest
from tests.conformance.clusters.watched_cluster import (
    WatchedCluster,
    is_going,
    open_session,
    watched,
)
from tests.conformance.operators.objects import SIMULATION_SCRIPT
from tests.e2e.clients import programs

_TOKEN: Final = "the-administrator"
_FOLLOWED: Final = (
    *("Namespace", "Node", "Pod", "Service", "ConfigMap", "Secret", "ServiceAccount", "Lease"),
    *("ResourceQuota", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob"),
    *("EndpointSlice", "PodDisruptionBudget", "HorizontalPodAutoscaler"),
)

Scenario = Callable[[WatchedCluster, str], Awaitable[None]]
"""Writes to a namespace that it has for itself, and waits for what follows."""


@dataclass(frozen=True, slots=True)
class OperatorCluster:
    """The server, its watched state, and a directory for the files of operators."""

    server: ProcessCluster
    world: WatchedCluster
    directory: Path

    def kubeconfig(self, user: str = "") -> Path:
        """Return a kubeconfig of the administrator, who impersonates a user if there is one."""
        config = json.loads(self.server.kubeconfig_path.read_text())
        if user:
            config["users"][0]["user"]["as"] = user
        path = self.directory / f"{user.replace(':', '-') or 'admin'}.kubeconfig"
        path.write_text(json.dumps(config))
        return path

    async def apply(self, directory: Path) -> None:
        """Apply a kustomization by kubectl, as an operator's instructions say."""
        command = (programs("1.37")["kubectl"], "apply", "--server-side", "-k", directory)
        kubectl = await asyncio.create_subprocess_exec(
            *command,
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig())},
            stdout=PIPE,
            stderr=STDOUT,
        )
        output, _ = await kubectl.communicate()
        assert not kubectl.returncode, output.decode()

    async def play(self, scenarios: Sequence[Scenario], name: str) -> None:
        """Play scenarios at the same time, each in a namespace that is deleted at the end."""
        async with asyncio.TaskGroup() as group:
            for number, scenario in enumerate(scenarios):
                group.create_task(self._play(scenario, f"{name}-{number}"))

    async def _play(self, scenario: Scenario, namespace: str) -> None:
        await self.world.create(manifest("Namespace", namespace))
        await scenario(self.world, namespace)
        await self.world.delete("Namespace", namespace)
        await self.world.until(lambda: self.world.get("Namespace", namespace) is None)
        await self.world.until(
            lambda: all(not self.world.all(kind, namespace) for kind in _FOLLOWED)
        )

    def lease_holder(self, namespace: str, name: str) -> str:
        """Return who holds a lease, which has had no other holder; empty if there is none."""
        lease = self.world.get("Lease", name, namespace)
        if lease is None or is_going(lease) or lease["spec"].get("leaseTransitions"):
            return ""
        return str(lease["spec"]["holderIdentity"])


@asynccontextmanager
async def operator_cluster(
    directory: Path, run: str, services: Mapping[str, str] | None = None
) -> AsyncIterator[OperatorCluster]:
    """Run a server with these components until the block ends."""
    script = directory / "script.yaml"
    script.write_text(yaml.safe_dump(SIMULATION_SCRIPT))
    with FakeCluster.as_process(
        run=run,
        tls=True,
        token=_TOKEN,
        rbac=True,
        bootstrap=True,
        kubelet=script if "kubelet" in run else None,
        services=services,
    ) as server:
        session = open_session(server.url, {"Authorization": f"Bearer {_TOKEN}"})
        async with watched(session, *_FOLLOWED) as world:
            yield OperatorCluster(server, world, directory)
