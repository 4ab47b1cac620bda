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
from fakeapi.api.faulting.plans import FaultPlan, FaultRule, RequestMatchInput

_NONE: Mapping[tuple[int, str], InjectedCount] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class InjectedCount:
    """The requests of one client that one rule has matched, and those with an injected fault."""

    matched: int = 0
    injected: int = 0


@dataclass(frozen=True, slots=True)
class PlanProgress:
    """A plan that began at ``began_ns``; ``tallies`` by the rule's index and the client."""

    plan: FaultPlan
    began_ns: int
    tallies: Mapping[tuple[int, str], InjectedCount] = field(default_factory=lambda: _NONE)


def decide(
    progress: PlanProgress, match_input: RequestMatchInput, now_ns: int
) -> tuple[PlanProgress, Sequence[Effect]]:
    """Return the progress of the plan after a request, and the effects on the request."""
    seconds = (now_ns - progress.began_ns) / 10**9
    effects: list[Effect] = []
    counted: dict[tuple[int, str], InjectedCount] = {}
    for index, rule in enumerate(progress.plan.rules):
        if not (rule.limits.is_active_at(seconds) and rule.applies_to(match_input)):
            continue
        key = (index, match_input.client)
        before = progress.tallies.get(key, InjectedCount())
        effect = _inject(progress.plan.seed, key, rule, before)
        counted[key] = InjectedCount(before.matched + 1, before.injected + (effect is not None))
        if effect is not None:
            effects.append(effect)
            if isinstance(effect, ENDING):
                break
    if not counted:
        return progress, ()
    return replace(progress, tallies={**progress.tallies, **counted}), effects


def _inject(
    seed: int, key: tuple[int, str], rule: FaultRule, before: InjectedCount
) -> Effect | None:
    number = before.matched + 1
    if not rule.limits.should_inject(number, before.injected, _draw(seed, key, number, "strike")):
        return None
    if isinstance(rule.effect, Latency):
        return rule.effect.sampled(_draw(seed, key, number, "latency"))
    return rule.effect


def _draw(seed: int, key: tuple[int, str], number: int, purpose: str) -> float:
    """Return a pseudorandom number from [0, 1)."""
    index, client = key
    text = f"{seed}/{index}/{number}/{purpose}/{client}"
    digest = blake2b(text.encode(errors="surrogateescape"), digest_size=8).digest()
    return (int.from_bytes(digest) >> 11) / 2**53
