"""A real kube-scheduler as a process, and the configuration that it is given."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.builders import Document
from tests.conformance.clusters.logged_process import LoggedProcess, logged

AGENT: Final = "scheduler"
"""The prefix of the User-Agent of its requests: the program's name."""

_UNHURRIED: Final = 100_000


@dataclass(frozen=True, slots=True)
class Extender:
    """An extender as kube-scheduler's configuration has it; ``verbs`` are called below ``url``."""

    url: str
    verbs: Sequence[str] = ("filter", "preempt")
    timeout_seconds: float = 5.0
    ignorable: bool = False
    managed_resources: Sequence[Document] = ()

    def document(self) -> Document:
        """Return its entry; it caches nodes (nodeCacheCapable), so that names are enough."""
        return {
            "urlPrefix": self.url,
            **{f"{verb}Verb": verb for verb in self.verbs},
            "nodeCacheCapable": True,
            "httpTimeout": f"{self.timeout_seconds}s",
            "ignorable": self.ignorable,
            "managedResources": list(self.managed_resources),
        }


@dataclass(frozen=True, slots=True)
class Sampling:
    """How many candidates a preemption is content with: a share of the nodes, and at least so many.

    ``parallelism`` is how many nodes are looked at at a time: as many enter beyond those asked for.
    The defaults are kube-scheduler's.
    """

    percentage: int = 10
    absolute: int = 100
    parallelism: int = 16


DEFAULT: Final = Sampling()
EVERY_NODE: Final = Sampling(percentage=100)
ONE_NODE: Final = Sampling(percentage=0, absolute=1, parallelism=1)


def configuration(
    kubeconfig: Path, extenders: Sequence[Extender], sampling: Sampling = EVERY_NODE
) -> Document:
    """Return a KubeSchedulerConfiguration without a rate limit and without leader election."""
    args = {
        "minCandidateNodesPercentage": sampling.percentage,
        "minCandidateNodesAbsolute": sampling.absolute,
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "parallelism": sampling.parallelism,
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": _UNHURRIED, "burst": _UNHURRIED},
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "pluginConfig": [{"name": "DefaultPreemption", "args": args}],
            }
        ],
        "extenders": [extender.document() for extender in extenders],
    }


def gate_flags(gates: Mapping[str, bool]) -> list[str]:
    """Return the flag that sets feature gates, if there are any."""
    settings = ",".join(f"{gate}={str(enabled).lower()}" for gate, enabled in gates.items())
    return [f"--feature-gates={settings}"] if settings else []


@asynccontextmanager
async def kube_scheduler(
    program: Path, given: Document, flags: Iterable[str] = ()
) -> AsyncIterator[LoggedProcess]:
    """Run a kube-scheduler with these further flags until the block ends.

    It does not report when it is ready: callers wait for the effect they need. Raise
    ProcessEndedError if it ends by itself.
    """
    with TemporaryDirectory(prefix="scheduler-") as name:
        directory = Path(name)
        config, log = directory / "config.json", directory / "log"
        config.write_text(json.dumps(given))
        command = (str(program), "--config", str(config), "--secure-port", "0", *flags)
        async with logged(LoggedProcess(command, log)) as scheduler:
            yield scheduler
