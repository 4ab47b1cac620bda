"""Lives drawn by seeds: a workload spread over zones, what happens to it, and what must hold.

Between acts things come to rest. A quiet world is *in order*: each subset is full before the next
one has a pod. What happens is drawn so that order is asked for: pods are told to go, by deletion or
eviction; numbers change; the controller is killed, or its requests fail. In adaptive lives a zone
fails, too, which undoes the order; so does a webhook that is cut off after it has noted that a pod
comes, or goes, which then does not. There order is asked for once all is well and the workload has
grown again from nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

MOST_REPLICAS: Final = 12


@dataclass(frozen=True)
class Act:
    """Something that happens: ``amount`` are replicas, pods, writes or the number of a zone."""

    what: str
    amount: int = 0


@dataclass(frozen=True)
class Trial:
    """One life: the limits of the subsets (None: no limit), and what happens."""

    seed: int
    limits: tuple[int | str | None, ...]
    adaptive: bool
    acts: tuple[Act, ...]

    @property
    def together(self) -> bool:
        """Whether the webhooks are of the same process as the controller, and share its fate."""
        return self.seed % 2 == 1

    @property
    def counted(self) -> bool:
        """Whether the limits are numbers, which hold at every moment."""
        return not any(isinstance(limit, str) for limit in self.limits)


def draw(seed: int) -> Trial:
    """Draw a life."""
    dice = Random(seed)
    limits = _limits(dice)
    adaptive = len(limits) > 1 and limits[-1] is None and dice.random() < 0.4
    failing = (Act("fail", dice.randrange(len(limits) - 1)),) if adaptive else ()
    acts = (Act("scale", dice.randint(1, MOST_REPLICAS)), *_acts(dice), *failing)
    return Trial(seed, limits, adaptive, acts)


def _limits(dice: Random) -> tuple[int | str | None, ...]:
    count = dice.randint(1, 3)
    if dice.random() < 0.2:
        return {1: ("100%",), 2: ("40%", "60%"), 3: ("20%", "30%", "50%")}[count]
    numbers = tuple(dice.randint(0, 5) for _ in range(count - 1))
    return (*numbers, None if dice.random() < 0.8 else MOST_REPLICAS)


def _acts(dice: Random) -> Iterator[Act]:
    for _ in range(dice.randint(2, 4)):
        what = dice.choice(("scale", "scale", "delete", "evict", "kill", "refuse"))
        match what:
            case "scale":
                yield Act(what, dice.randint(0, MOST_REPLICAS))
            case "kill" | "refuse":
                yield Act(what, dice.randint(0, 8))
                yield Act("scale", dice.randint(0, MOST_REPLICAS))
            case _:
                yield Act(what, dice.randint(1, MOST_REPLICAS))
