"""The policies that a search tries: variations of a base policy, made of a few parameters.

==========================  =======================================================================
parameter                   values
==========================  =======================================================================
rules.0.candidates.1        the criterion at this place, or :data:`END`; a criterion that is already
                            in the order is skipped
rules.0.victims.0           the same for the order of victims
rules.0.victims.by          the criterion of the cheapest victims, if the base policy has them
rules.0.lostWork.cpu        the exponent of 2 by which the weight is multiplied
==========================  =======================================================================

Names, preemptors, costs and guards are those of the base policy. So is what guards measure: where a
guard limits lost work, its weights stay. Only the ratios of weights decide, so the first one stays
as well. A first criterion "fewest PDB violations" stays the first.

The criteria are those of the base policy, and the built-in ones that do not have the same value for
all pods of a trace, as restarts and deletion costs do. Criteria that simulate what would follow are
tried only if the base policy has them, because they take long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from extender.config.policy_file import (
    MAX_WEIGHT,
    CheapestVictims,
    Guards,
    LostWork,
    PolicyFile,
    PolicyMetadata,
    PolicyRuleFields,
)
from policies.preemption.costs.catalog import (
    CHEAPEST_CRITERIA,
    COST_CRITERIA,
    HIGHEST_QUOTA_USAGE,
    LEAST_LOST_WORK,
)
from policies.preemption.costs.fragmentation import LEAST_FRAGMENTATION
from policies.preemption.policy import CANDIDATE_CRITERIA, POD_CRITERIA

END: Final = ""
"""The end of an order."""
STEPS: Final = 5
"""Weights are multiplied by at most two to this power, and divided by as much."""

_FIRST: Final = "fewest PDB violations"
_OWN_COST: Final = "lowest cost"
_CONSTANT: Final = (_OWN_COST, "most restarts", "lowest deletion cost", HIGHEST_QUOTA_USAGE)
_TRIED: Final = (
    *CANDIDATE_CRITERIA,
    *(each for each in COST_CRITERIA if each not in _CONSTANT),
    LEAST_FRAGMENTATION,
)
_LOST_WORK: Final = frozenset({LEAST_LOST_WORK, "least lost work of gangs"})
_PLACES: Final = 4
_LEAST_WEIGHT: Final = 0.001
_LONGEST_NAME: Final = 240


class Parameters(Protocol):
    """The values of the parameters of one policy."""

    def choose(self, name: str, options: Sequence[str], base: str) -> str:
        """Return one of the options, of which the base policy has ``base``."""
        ...

    def scale(self, name: str) -> int:
        """Return an exponent from -:data:`STEPS` to :data:`STEPS`; that of the base policy is 0."""
        ...


class BaseParameters:
    """The parameters of the base policy; ``values`` has those that were read."""

    def __init__(self) -> None:
        self.values: dict[str, str | int] = {}

    def choose(self, name: str, options: Sequence[str], base: str) -> str:  # noqa: ARG002
        """Return what the base policy has."""
        self.values[name] = base
        return base

    def scale(self, name: str) -> int:
        """Return 0."""
        self.values[name] = 0
        return 0


def vary_policy(base: PolicyFile, parameters: Parameters) -> PolicyFile:
    """Return the base policy with the orders and weights of the parameters.

    Another policy than the base has another name, too.
    """
    rules = tuple(
        _vary_rule(f"rules.{index}", rule, parameters) for index, rule in enumerate(base.rules)
    )
    if rules == base.rules:
        return base
    name = base.metadata.name[:_LONGEST_NAME].rstrip("-.")
    return replace(base, metadata=PolicyMetadata(f"{name}-tuned"), rules=rules)


def policy_text(file: PolicyFile) -> str:
    """Return a policy file in YAML, without the fields of rules that have their default."""
    document = msgspec.to_builtins(file)
    default = msgspec.to_builtins(PolicyRuleFields(""))
    document["rules"] = [
        {
            field: value
            for field, value in rule.items()
            if field in ("victims", "candidates") or value != default.get(field)
        }
        for rule in document["rules"]
    ]
    return msgspec.yaml.encode(document).decode()


def _vary_rule(path: str, base: PolicyRuleFields, parameters: Parameters) -> PolicyRuleFields:
    fixed = base.candidates[:1] if base.candidates[0] == _FIRST else ()
    rule = replace(
        base,
        victims=_vary_victims(f"{path}.victims", base, parameters),
        candidates=_vary_order(
            f"{path}.candidates", base.candidates, _TRIED, parameters, fixed=fixed
        ),
    )
    if not _orders_by_lost_work(rule) or _limits_lost_work(base.guards):
        return rule
    weights = _vary_weights(f"{path}.lostWork", base.lost_work.weights, parameters)
    return replace(rule, lost_work=LostWork(weights, base.lost_work.checkpoint))


def _vary_victims(
    path: str, rule: PolicyRuleFields, parameters: Parameters
) -> tuple[str, ...] | CheapestVictims:
    if not isinstance(rule.victims, CheapestVictims):
        return _vary_order(path, rule.victims, tuple(POD_CRITERIA), parameters)
    known = [each for each in CHEAPEST_CRITERIA if each != _OWN_COST or rule.cost is not UNSET]
    options = _merged(known, (rule.victims.by,))
    return replace(rule.victims, by=parameters.choose(f"{path}.by", options, rule.victims.by))


def _vary_order(
    path: str,
    base: tuple[str, ...],
    tried: Sequence[str],
    parameters: Parameters,
    fixed: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Return an order of criteria that begins with the fixed ones."""
    known = [each for each in _merged(tried, base) if each not in fixed]
    order = [*fixed]
    for place in range(len(fixed), max(len(base), min(len(known), _PLACES))):
        options = [END, *known] if place else known
        found = parameters.choose(
            f"{path}.{place}", options, base[place] if place < len(base) else END
        )
        if found == END:
            break
        if found not in order:
            order.append(found)
    return tuple(order)


def _vary_weights(path: str, base: Mapping[str, float], parameters: Parameters) -> dict[str, float]:
    """Return the weights, in thousandths as files have them; the first is that of the base."""
    (first, unit), *others = base.items()
    scaled = {
        name: min(
            max(round(weight * 2.0 ** parameters.scale(f"{path}.{name}"), 3), _LEAST_WEIGHT),
            MAX_WEIGHT,
        )
        for name, weight in others
    }
    return {first: unit, **scaled}


def _orders_by_lost_work(rule: PolicyRuleFields) -> bool:
    by = [rule.victims.by] if isinstance(rule.victims, CheapestVictims) else []
    return not _LOST_WORK.isdisjoint((*rule.candidates, *by))


def _limits_lost_work(guards: Guards) -> bool:
    amounts = (guards.max_lost_work, *(limit.lost_work for limit in guards.limits))
    return any(each is not UNSET for each in amounts)


def _merged(first: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return all names once, in order."""
    return list(dict.fromkeys((*first, *others)))
