"""The operators as they are run: with which others, on which components, and what they log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tests.conformance.clusters.logged_process import logged
from tests.conformance.operators import (
    job_scenarios,
    jobset,
    jobset_scenarios,
    kube_controller_manager,
    kwok,
    namespace_scenarios,
    node_scenarios,
    workload_scenarios,
)
from tests.conformance.operators.cluster import OperatorCluster, Scenario, operator_cluster
from tests.conformance.operators.injected_faults import Clients
from tests.conformance.operators.logs import KnownErrors, errors
from tests.conformance.scheduling.releases import built

_NONE: Final[KnownErrors] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Operators:
    """Operators that run, with the leases that they hold, and their logs."""

    cluster: OperatorCluster
    leases: tuple[tuple[str, str], ...]
    logs: Mapping[Path, KnownErrors]

    def holders(self) -> list[str]:
        """Return the holder of each lease, which never had another one; "" if it has none."""
        return [self.cluster.lease_holder(*lease) for lease in self.leases]

    def errors(self, further: KnownErrors = _NONE) -> list[str]:
        """Return the errors that they have logged, without those that are known."""
        return [
            line for log, known in self.logs.items() for line in errors(log, {**known, **further})
        ]


@dataclass(frozen=True, slots=True)
class Setup:
    """Operators, their clients, and what they have to manage.

    ``longer`` are scenarios that take minutes.
    """

    run: Callable[[Path], AbstractAsyncContextManager[Operators]]
    clients: Clients
    scenarios: tuple[Scenario, ...]
    longer: tuple[Scenario, ...] = ()


@asynccontextmanager
async def _kube_controller_manager(directory: Path) -> AsyncIterator[Operators]:
    async with (
        operator_cluster(directory, "kubelet,scheduler") as cluster,
        _managed(cluster, *kube_controller_manager.IMPATIENT) as logs,
    ):
        yield Operators(cluster, (kube_controller_manager.LEASE,), logs)


@asynccontextmanager
async def _kwok(directory: Path) -> AsyncIterator[Operators]:
    program = built(kwok.PROGRAM)
    async with operator_cluster(directory, "scheduler") as cluster, _managed(cluster) as logs:
        process = await kwok.kwok(cluster, program)
        cluster.server.load(kwok.nodes())
        leases = tuple(("kube-node-lease", node) for node in kwok.NODES)
        async with logged(process):
            yield Operators(cluster, leases, {**logs, process.log: kwok.KNOWN_ERRORS})


@asynccontextmanager
async def _jobset(directory: Path) -> AsyncIterator[Operators]:
    program, port = built(jobset.PROGRAM), jobset.free_port()
    services = {jobset.SERVICE: f"https://127.0.0.1:{port}"}
    async with (
        operator_cluster(directory, "kubelet,scheduler", services) as cluster,
        _managed(cluster) as logs,
    ):
        await jobset.install(cluster)
        async with jobset.jobset(cluster, program, port) as process:
            yield Operators(cluster, (jobset.LEASE,), {**logs, process.log: jobset.KNOWN_ERRORS})


@asynccontextmanager
async def _managed(cluster: OperatorCluster, *flags: str) -> AsyncIterator[dict[Path, KnownErrors]]:
    """Run kube-controller-manager, and return its log."""
    program = built(kube_controller_manager.PROGRAM)
    process = kube_controller_manager.kube_controller_manager(cluster, program, *flags)
    async with logged(process):
        yield {process.log: kube_controller_manager.KNOWN_ERRORS}


SETUPS: Final = {
    "kube-controller-manager": Setup(
        _kube_controller_manager,
        kube_controller_manager.CLIENTS,
        (
            *workload_scenarios.SCENARIOS,
            *job_scenarios.SCENARIOS,
            *namespace_scenarios.SCENARIOS,
            *node_scenarios.SCENARIOS,
        ),
        (job_scenarios.a_cron_job_starts_a_job_each_minute,),
    ),
    "kwok": Setup(
        _kwok,
        {**kube_controller_manager.CLIENTS, **kwok.CLIENTS},
        (*workload_scenarios.SCENARIOS, job_scenarios.a_job_completes_and_counts_each_pod_once),
    ),
    "jobset": Setup(
        _jobset,
        {**kube_controller_manager.CLIENTS, **jobset.CLIENTS},
        jobset_scenarios.SCENARIOS,
    ),
}
