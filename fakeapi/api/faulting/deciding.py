"""What happens to a request: a function of the plan, of what it has done so far, and the request.

The rules are asked in the order of the plan. Each that is struck adds its effect, and the first
that ends a request (an error, a drop, a cut, a 410) is the last that is asked.

Nothing is drawn from a stream of random numbers, which requests of other clients would move on.
Each draw is the hash of what it is for: seed, rule, client, and the number of the client's request
among those the rule matched. So it falls the same in any order and in any process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from types import MappingProxyType

from fakeapi.api.faulting.effects import ENDING, Effect, Latency
from fakeapi.api.faulting.plans import Plan, Question, Rule

_NONE: Mapping[tuple[int, str], Tally] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Tally:
    """How many requests of one client one rule has matched, and how many it has struck."""

    matched: int = 0
    struck: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """A plan under way since ``began_ns``; ``tallies`` by the rule's index and the client."""

    plan: Plan
    began_ns: int
    tallies: Mapping[tuple[int, str], Tally] = field(default_factory=lambda: _NONE)


def decide(
    progress: Progress, question: Question, now_ns: int
) -> tuple[Progress, Sequence[Effect]]:
    """Return what a request meets, and the progress after it."""
    seconds = (now_ns - progress.began_ns) / 10**9
    effects: list[Effect] = []
    counted: dict[tuple[int, str], Tally] = {}
    for index, rule in enumerate(progress.plan.rules):
        if not (rule.limits.open_at(seconds) and rule.concerns(question)):
            continue
        key = (index, question.client)
        before = progress.tallies.get(key, Tally())
        effect = _strike(progress.plan.seed, key, rule, before)
        counted[key] = Tally(before.matched + 1, before.struck + (effect is not None))
        if effect is not None:
            effects.append(effect)
            if isinstance(effect, ENDING):
                break
    if not counted:
        return progress, ()
    return replace(progress, tallies={**progress.tallies, **counted}), effects


def _strike(seed: int, key: tuple[int, str], rule: Rule, before: Tally) -> Effect | None:
    number = before.matched + 1
    if not rule.limits.due(number, before.struck, _draw(seed, key, number, "strike")):
        return None
    if isinstance(rule.effect, Latency):
        return rule.effect.drawn(_draw(seed, key, number, "latency"))
    return rule.effect


def _draw(seed: int, key: tuple[int, str], number: int, purpose: str) -> float:
    """Return a number from [0, 1)."""
    index, client = key
    text = f"{seed}/{index}/{number}/{purpose}/{client}"
    digest = blake2b(text.encode(errors="surrogateescape"), digest_size=8).digest()
    return (int.from_bytes(digest) >> 11) / 2**53
