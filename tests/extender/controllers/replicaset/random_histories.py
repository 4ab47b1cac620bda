"""Random histories of a ReplicaSet under faults: drawn by a seed, and run on a virtual clock.

A plan of faults is in force for some minutes. Meanwhile the number of replicas may change, the
controller is killed at any time and started again, its wall clock jumps, and other clients may
change its pods. Then all of that ends, and time passes until the ReplicaSet has settled, or the
longest delay is over.
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
"""Faults that a controller distinguishes from success: nothing was done, or only late."""

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

INTERFERENCE: Final = ("fail", "delete", "relabel", "orphan", "restore")
"""Other clients' actions: a pod fails, is deleted or relabelled; an orphan is created."""


@dataclass(frozen=True)
class Action:
    """An action at a time, in seconds from the start."""

    at: float
    kind: str
    amount: int = 0


@dataclass(frozen=True)
class History:
    """The objects at the start, the faults, and the actions."""

    seed: int
    pods: int
    replicas: int
    burst: int
    plan: Sequence[Fault]
    actions: Sequence[Action]
    min_ready_seconds: int = 0
    kubelet: bool = False
    controllers: int = 1

    @property
    def is_constant(self) -> bool:
        """Whether the number of replicas stays the same."""
        return all(action.kind != "scale" for action in self.actions)

    @property
    def numbers(self) -> list[int]:
        """The number of pods at the start, and every desired number of replicas."""
        scales = (each.amount for each in self.actions if each.kind == "scale")
        return [self.pods, self.replicas, *scales]


@dataclass(frozen=True)
class Family:
    """Histories of one kind: their faults, and how often replicas and pods may change."""

    faults: Sequence[Fault]
    scales: int = 0
    interference: int = 0
    controllers: Sequence[int] = (1,)

    def draw(self, seed: int) -> History:
        """Draw a history."""
        rng = Random(seed)
        chosen = rng.sample(self.faults, rng.randint(1, min(5, len(self.faults))))
        actions = [
            *_some(rng, ["scale"], rng.randint(0, self.scales), range(13)),
            *_some(rng, ["kill"], rng.randint(0, 3), range(2)),
            *_some(rng, ["jump"], rng.randint(0, 2), [-300, -1, 1, 300]),
            *_some(rng, INTERFERENCE, rng.randint(0, self.interference), range(13)),
        ]
        return History(
            seed,
            rng.choice([0, 0, 5, 12]),
            rng.choice([0, 1, 7, 12]),
            rng.choice([2, 500]),
            [each.probability(rng.choice([0.1, 0.3, 0.6])).by(AGENTS) for each in chosen],
            sorted(actions, key=lambda action: action.at),
            rng.choice([0, 10]) if self.interference else 0,
            self.interference > 0,
            rng.choice(self.controllers),
        )


def _some(rng: Random, kinds: Sequence[str], count: int, amounts: Sequence[int]) -> list[Action]:
    return [
        Action(rng.uniform(0, FAULTY_SECONDS), rng.choice(kinds), rng.choice(amounts))
        for _ in range(count)
    ]
