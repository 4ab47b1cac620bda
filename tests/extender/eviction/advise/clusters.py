"""Clusters with simulated kubelets, and an advisor that observes them on the same clock."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from extender.eviction.advise.executor import Action
from extender.eviction.advise.output import Printer
from extender.eviction.advise.rounds import ObservationRound
from extender.eviction.advise.run import ObservationOptions, ReliefOptions, RunContext, advise
from extender.kube.rest.clock import Clock
from extender.kube.rest.transport import Transport
from policies.eviction.kubelet_releases import NEWEST_EVICTION
from policies.eviction.proactive_eviction import ReliefLimits
from tests.builders import Document
from tests.fakeapi.controlplane.kubelet.stages import pod

MINUTE = 60 * 10**9
GROWING = "{{start: 0, stages: [{{memory: 150Mi}}, {{after: 0, memory: {most}, over: {over}}}]}}"
SEEN = 15.0


def leaking(
    name: str, node: str = "n", *, most: str = "4Gi", over: str = "600s", **more: Any
) -> Document:
    """Build a pod whose memory grows evenly from 150Mi on, 100Mi of it requested."""
    script = GROWING.format(most=most, over=over)
    return using(name, node, script=script, **more)


def using(name: str, node: str = "n", *, requests: str = "100Mi", **more: Any) -> Document:
    """Build a pod that requests some memory."""
    labels, owners = more.pop("labels", None), more.pop("owners", None)
    resources = {"requests": {"memory": requests}}
    built = pod(
        name, node, containers=[{"name": "c", "image": "i", "resources": resources}], **more
    )
    built["metadata"] |= {"labels": labels} if labels else {}
    built["metadata"] |= {"ownerReferences": owners} if owners else {}
    return built


@dataclass
class Recorder(Printer):
    """A printer that keeps what it is given, and signals the end of a round."""

    rounds: list[ObservationRound] = field(default_factory=list)
    executed: list[Action] = field(default_factory=list)
    ends: list[Sequence[Action] | None] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def print_round(self, observed: ObservationRound) -> None:
        self.rounds.append(observed)

    def print_action(self, action: Action) -> None:
        self.executed.append(action)

    def finish_round(self, observed: ObservationRound, actions: Sequence[Action] | None) -> None:
        assert observed is self.rounds[-1]
        self.ends.append(actions)
        self.over.set()

    @property
    def actions(self) -> list[str]:
        """Return the actions as text."""
        return [str(action) for action in self.executed]


def watching(node: str | None = None, **options: Any) -> ObservationOptions:
    """Run round after round."""
    return ObservationOptions(
        NEWEST_EVICTION, node, **{"interval": SEEN, "samples": None, **options}
    )


def doing(
    within: int = 5, most: int = 3, per_minute: float = 6.0, *, really: bool = True
) -> ReliefOptions:
    """Relieve nodes; ``within`` in minutes."""
    return ReliefOptions(ReliefLimits(within * MINUTE, most), per_minute, really)


def advising(
    transport: Transport,
    clock: Clock,
    looking: ObservationOptions,
    options: ReliefOptions | None = None,
) -> tuple[asyncio.Task[int], Recorder]:
    """Start the advisor in the background."""
    recorder = Recorder()
    around = RunContext(clock, Random(1), recorder)
    return asyncio.create_task(advise(transport, looking, options, around)), recorder
