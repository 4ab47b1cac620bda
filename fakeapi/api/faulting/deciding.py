"""The effects on a request: a function of the plan, its progress so far, and the request.

The rules are evaluated in the order of the plan. Each rule that injects its fault adds an effect;
evaluation ends with the first effect that ends the request (an error, a drop, a cut, a 410).

There is no shared stream of random numbers, because requests of other clients would advance it.
Each random number is the hash of its purpose, the seed, the rule, the client, and the number of the
client's request among those that the rule matched. So it is the same in any order of requests and
in any process.
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
    """The requests of one client that one rule has matched, and those with an injected fault."""

    matched: int = 0
    struck: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """A plan that began at ``began_ns``; ``tallies`` by the rule's index and the client."""

    plan: Plan
    began_ns: int
    tallies: Mapping[tuple[int, str], Tally] = field(default_factory=lambda: _NONE)


def decide(
    progress: Progress, question: Question, now_ns: int
) -> tuple[Progress, Sequence[Effect]]:
    """Return the progress of the plan after a request, and the effects on the request."""
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
    """Return a pseudorandom number from [0, 1)."""
    index, client = key
    text = f"{seed}/{index}/{number}/{purpose}/{client}"
    digest = blake2b(text.encode(errors="surrogateescape"), digest_size=8).digest()
    return (int.from_bytes(digest) >> 11) / 2**53
