"""Policies by name or file: their rules as the engines apply them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor
from pathlib import Path
from typing import Any, Final

import yaml
from msgspec import UNSET

from extender.config.config_file import decode_source, parse_source, read_source_text
from extender.config.policy_file import (
    API_VERSION,
    KIND,
    CheapestVictims,
    Guards,
    LostWork,
    PolicyFile,
    PolicyMetadata,
    PolicyRuleFields,
    thousandths,
)
from extender.config.policy_guards import (
    CompiledSelector,
    allowance_guards,
    attempt_guards,
    compile_cost,
    compile_selector,
    most_lost_work,
    victim_guards,
)
from extender.config.policy_plugins import plugin_criteria
from extender.config.policy_validation import policy_problems
from extender.config.strict_decoding import ConfigError
from extender.kube.decoders.object_meta import parse_time
from policies.kubernetes.criteria import Criterion
from policies.kubernetes.snapshot import Pod
from policies.preemption.consequences.criteria import CONSEQUENCE_CRITERIA
from policies.preemption.costs.candidate_criteria import CandidateCriterion, CostCriterion
from policies.preemption.costs.catalog import (
    FREE,
    LEAST_LOST_WORK,
    cheapest_criteria,
    cost_criteria,
    cost_of_some,
    lost_work,
    pod_cost_criteria,
)
from policies.preemption.costs.fragmentation import FragmentationCriterion
from policies.preemption.costs.pod_cost import PodCost
from policies.preemption.guards.candidate_limit import CandidateLimit
from policies.preemption.guards.victim_guard import (
    VictimGuard,
    unreadable_cost,
)
from policies.preemption.policy import (
    CANDIDATE_CRITERIA,
    KUBE_SCHEDULER,
    POD_CRITERIA,
    Policy,
    PolicyCriterion,
    PolicyRule,
    pod_order,
)

_FIELDS: Final = frozenset(PolicyFile.__struct_encode_fields__)
_FORMER_FIELDS: Final = frozenset(("name", "victims", "candidates", "protect"))
_DEFAULT_RULE: Final = "default"
_UNFOLDED: Final = 2**31

BUILT_IN: Final[Mapping[str, PolicyFile]] = {
    KUBE_SCHEDULER.name: PolicyFile(
        API_VERSION, KIND, PolicyMetadata(KUBE_SCHEDULER.name), (PolicyRuleFields(_DEFAULT_RULE),)
    )
}


class InvalidPolicyError(ConfigError):
    """A policy file can be read, and is invalid."""


@dataclass(frozen=True, slots=True)
class PreemptionPolicy:
    """A policy by its name: the rules of some preemptors in order, and that of all others."""

    name: str
    default: Policy
    rules: tuple[PolicyRule, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicySource:
    """A policy by its name or path, and the text of its file (None: built-in)."""

    name_or_path: str
    text: str | None = None


def find_policy(name_or_path: str) -> PreemptionPolicy:
    """Return a built-in policy by its name, or a policy from a file. Raise ConfigError."""
    return build_policy(read_policy_source(name_or_path))


def build_policy(source: PolicySource) -> PreemptionPolicy:
    """Return the policy of a source. Raise ConfigError."""
    if source.name_or_path == KUBE_SCHEDULER.name:
        return PreemptionPolicy(source.name_or_path, KUBE_SCHEDULER)
    return policy_of(decode_policy(source))


def load_policy_file(name_or_path: str) -> PolicyFile:
    """Return a valid policy as a file has it. Raise the errors of :func:`decode_policy`."""
    return decode_policy(read_policy_source(name_or_path))


def read_policy_source(name_or_path: str) -> PolicySource:
    """Return the source of a policy. Raise ConfigError if its file cannot be read."""
    if name_or_path in BUILT_IN:
        return PolicySource(name_or_path)
    path = Path(name_or_path)
    if not _exists(path):
        raise _unknown_policy(name_or_path)
    return PolicySource(name_or_path, read_source_text(path))


def decode_policy(source: PolicySource) -> PolicyFile:
    """Return a valid policy as its source has it.

    Raise InvalidPolicyError with all errors, or another ConfigError if there is no such document.
    """
    if source.name_or_path in BUILT_IN:
        return BUILT_IN[source.name_or_path]
    if source.text is None:
        raise _unknown_policy(source.name_or_path)
    path = Path(source.name_or_path)
    document = parse_source(path, source.text, PolicyFile)
    if _is_former_format(document.content):
        raise InvalidPolicyError(
            f"{path}:1: (the document): the format of policies has changed; expected "
            f"{_in_this_format(document.content)}"
        )
    file = decode_source(path, document, PolicyFile)
    errors = file.errors(policy_problems(file.result))
    if file.result.value is None or errors:
        raise InvalidPolicyError(*errors)
    return file.result.value


def _unknown_policy(name: str) -> ConfigError:
    known = ", ".join(BUILT_IN)
    return ConfigError(f"policy {name!r}: no such file or built-in policy ({known})")


def policy_of(file: PolicyFile) -> PreemptionPolicy:
    """Return the policy of a valid file."""
    *others, last = file.rules
    name = file.metadata.name
    return PreemptionPolicy(
        name,
        _policy(name, last),
        tuple(
            _rule(
                rule.name, compile_selector(rule.preemptors), _policy(f"{name}/{rule.name}", rule)
            )
            for rule in others
            if rule.preemptors is not UNSET
        ),
    )


def _rule(name: str, preemptors: CompiledSelector, policy: Policy) -> PolicyRule:
    return PolicyRule(name, preemptors.surely_matches, policy, preemptors.annotations)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # the name is not a valid path
        return False


def _policy(name: str, rule: PolicyRuleFields) -> Policy:
    guards = rule.guards
    own = FREE if rule.cost is UNSET else compile_cost(rule.cost.expression)
    lost = _lost_work(rule.lost_work)
    costs = cost_criteria(lost, own)
    plugins = plugin_criteria(rule.candidates)
    packed = FragmentationCriterion(resource=rule.fragmentation.resource)
    known: Mapping[str, CandidateCriterion] = {
        **CANDIDATE_CRITERIA,
        **costs,
        **plugins,
        packed.name: packed,
    }
    named: Mapping[str, PolicyCriterion] = {**known, **CONSEQUENCE_CRITERIA}
    candidates = tuple(named[each] for each in rule.candidates)
    victims, by = rule.victims, None
    if isinstance(victims, CheapestVictims):
        by = cheapest_criteria(lost, own)[victims.by]
        candidates = (by, *(each for each in candidates if each.name != by.name))
        victims = tuple(POD_CRITERIA)
    pod_criteria: Mapping[str, Criterion[Pod]] = {**POD_CRITERIA, **pod_cost_criteria(own)}
    policy = Policy(
        name=name,
        victims=pod_order(tuple(pod_criteria[each] for each in victims)),
        candidates=candidates,
        victim_guards=tuple(victim_guards(guards)),
        candidate_limits=tuple(_limits(guards, lost)),
        attempt_guards=tuple(attempt_guards(guards)),
        allowance_guards=tuple(allowance_guards(guards, lost)),
        priority_gap=guards.priority_gap,
        strict_budgets=guards.pdb == "strict",
        cheapest_by=by,
    )
    unreadable = _unreadable_costs((*policy.costs, *policy.costs_of_order))
    return replace(policy, victim_guards=(*policy.victim_guards, *unreadable))


def _lost_work(fields: LostWork) -> PodCost:
    weights = {name: floor(thousandths(weight)) for name, weight in fields.weights.items()}
    # An unreadable time is 0 to the decoder of objects, and unknown here.
    return lost_work(weights, fields.checkpoint or None, lambda text: parse_time(text) or None)


def _limits(guards: Guards, lost: PodCost) -> Iterator[CandidateLimit]:
    if guards.max_victims is not UNSET:
        yield CandidateLimit("maxVictims", CANDIDATE_CRITERIA["fewest victims"], guards.max_victims)
    if guards.max_lost_work is not UNSET:
        fields = guards.max_lost_work
        pods = compile_selector(fields)
        cost = lost if fields.matches_all else cost_of_some(lost, pods.may_match, pods.annotations)
        yield CandidateLimit(
            "maxLostWork", CostCriterion(LEAST_LOST_WORK, cost), most_lost_work(fields)
        )


def _unreadable_costs(costs: Iterable[PodCost]) -> Iterator[VictimGuard]:
    """Yield a guard for each cost that may be unknown."""
    return (unreadable_cost(each) for each in dict.fromkeys(costs) if each.may_be_unknown)


def _is_former_format(content: object) -> bool:
    """Return whether a document is a policy of the format without apiVersion and rules."""
    if not isinstance(content, Mapping) or not _FIELDS.isdisjoint(content):
        return False
    return not _FORMER_FIELDS.isdisjoint(content)


def _in_this_format(former: Any) -> str:
    """Return a policy of the former format in this one, in one line that a file may have."""
    guards = {"guards": {"protect": _protect(former["protect"])}} if "protect" in former else {}
    orders = {field: former[field] for field in ("victims", "candidates") if field in former}
    document = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": former.get("name", "my-policy")},
        "rules": [{"name": _DEFAULT_RULE, **guards, **orders}],
    }
    text = yaml.safe_dump(document, default_flow_style=True, sort_keys=False, width=_UNFOLDED)
    return " ".join(text.split())


def _protect(former: Any) -> object:
    """Return the list of protected pods: the former ``selector`` selects by labels."""
    if not isinstance(former, Sequence) or isinstance(former, str):
        return former
    return [
        {"labels" if key == "selector" else key: value for key, value in each.items()}
        if isinstance(each, Mapping)
        else each
        for each in former
    ]
