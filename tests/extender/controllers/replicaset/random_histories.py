"""Random histories of a ReplicaSet under faults: drawn by a seed, and run on a virtual clock.

A plan of faults is in force for some minutes. Meanwhile the number of replicas may change, the
controller is killed between any two of its steps and begun anew, its wall clock jumps, and others
may meddle with its pods. Then all of that ends, and time passes until everything is as it should
be, or for longer than anything may take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from fakeapi.testing.faults import Fault, fault

AGENTS: Final = "controller*"
FAULTY_SECONDS: Final = 240.0

REFUSED: Final = (
    fault("latency", least=0, most=2),
    fault("latency", least=0, most=30, when="after"),
    fault(429, retry_after=2),
    fault(500),
    fault(503),
    fault(504),
    fault("drop"),
    fault(500).on("create", "pods").after(3),
    fault(429).on("delete", "pods").after(3),
    fault(500).on("update", "replicasets", subresources="status"),
)
"""Faults that a controller distinguishes from success: nothing was done, or it is only late."""

WATCHED: Final = (
    fault("lag", seconds=3),
    fault("lag", seconds=45).on("watch", "pods"),
    fault("silence", seconds=60, after_frames=2),
    fault("silence", seconds=400).on("watch", "pods"),
    fault("expire", after_frames=1),
    fault("compact").on("watch"),
    fault("cut", after_frames=2).on("watch"),
    fault("drop", when="after", after_frames=1).on("watch"),
)
"""Faults that keep a cache stale."""

LOST: Final = (
    fault("drop", when="after").on("create", "pods"),
    fault("drop", when="after").on("delete", "pods"),
    fault("cut", end="clean").on("create", "pods"),
    fault("cut").on("create", "pods"),
    fault("drop", when="after").on("update", "replicasets", subresources="status"),
)
"""Requests that succeed, though their answer is lost."""

MEDDLING: Final = ("fail", "delete", "relabel", "orphan", "restore")
"""Other clients' actions: a pod fails, is deleted or relabelled; an orphan is created."""


@dataclass(frozen=True)
class Act:
    """Something that happens at a time, in seconds from the beginning."""

    at: float
    what: str
    amount: int = 0


@dataclass(frozen=True)
class Trial:
    """One life: what there is, what goes wrong, and what happens meanwhile."""

    seed: int
    pods: int
    replicas: int
    burst: int
    plan: Sequence[Fault]
    acts: Sequence[Act]
    min_ready_seconds: int = 0
    kubelet: bool = False
    controllers: int = 1

    @property
    def is_constant(self) -> bool:
        """Whether the number asked for stays."""
        return all(act.what != "scale" for act in self.acts)

    @property
    def numbers(self) -> list[int]:
        """Every number of pods that there is or that is ever asked for."""
        scales = (act.amount for act in self.acts if act.what == "scale")
        return [self.pods, self.replicas, *scales]


@dataclass(frozen=True)
class Family:
    """Trials of one kind: their faults, how often replicas may change and others may meddle."""

    faults: Sequence[Fault]
    scales: int = 0
    meddling: int = 0
    controllers: Sequence[int] = (1,)

    def draw(self, seed: int) -> Trial:
        """Draw a trial."""
        rng = Random(seed)
        chosen = rng.sample(self.faults, rng.randint(1, min(5, len(self.faults))))
        acts = [
            *_some(rng, ["scale"], rng.randint(0, self.scales), range(13)),
            *_some(rng, ["kill"], rng.randint(0, 3), range(2)),
            *_some(rng, ["jump"], rng.randint(0, 2), [-300, -1, 1, 300]),
            *_some(rng, MEDDLING, rng.randint(0, self.meddling), range(13)),
        ]
        return Trial(
            seed,
            rng.choice([0, 0, 5, 12]),
            rng.choice([0, 1, 7, 12]),
            rng.choice([2, 500]),
            [each.probability(rng.choice([0.1, 0.3, 0.6])).by(AGENTS) for each in chosen],
            sorted(acts, key=lambda act: act.at),
            rng.choice([0, 10]) if self.meddling else 0,
            self.meddling > 0,
            rng.choice(self.controllers),
        )


def _some(rng: Random, what: Sequence[str], count: int, amounts: Sequence[int]) -> list[Act]:
    return [
        Act(rng.uniform(0, FAULTY_SECONDS), rng.choice(what), rng.choice(amounts))
        for _ in range(count)
    ]
