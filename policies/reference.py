"""The engine as plain loops over nodes: the specification that any faster engine must equal.

``filter_nodes`` is one filtering pass of a scheduling cycle, ``post_filter`` what follows it if no
node is left: eligibility, potential nodes, a dry run on each of them (all, where kube-scheduler
samples), the choice, and the message that the pod's event would carry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from policies.decision import (
    Candidate,
    Code,
    FilterDecision,
    PreemptionDecision,
    Reason,
    Rejection,
    fit_message,
)
from policies.filtering import IN_TREE, Filter, deallocation, prepare, unjudged
from policies.model import Pod, Snapshot
from policies.policy import KUBE_SCHEDULER, Policy
from policies.preemption import Coverage, ineligibility, select_victims
from policies.upstream import NEWEST, Release

_PREFIX = "preemption: "
# kube-scheduler gives up before it filters (ErrNoNodesAvailable in pkg/scheduler/schedule_one.go).
_NO_NODES = "no nodes available to schedule pods"
_NOT_HELPFUL = Reason(Code.NOT_HELPFUL)


@dataclass(frozen=True, slots=True)
class Rules:
    """What a decision follows: a release of kube-scheduler, its in-tree filters, and a policy."""

    release: Release = NEWEST
    filters: tuple[Filter, ...] = IN_TREE
    policy: Policy = KUBE_SCHEDULER


DEFAULT_RULES = Rules()


def filter_nodes(
    pod: Pod,
    snapshot: Snapshot,
    rules: Rules = DEFAULT_RULES,
    among: Collection[str] | None = None,
) -> FilterDecision:
    """Find the nodes that ``pod`` fits now; ``among`` limits the search to known nodes so named."""
    pipeline = prepare(pod, snapshot, rules.release, rules.filters)
    nodes = snapshot.nodes if among is None else among
    rejected: dict[str, Rejection] = {}
    feasible: list[str] = []
    for name in nodes:
        rejection = pipeline.examine(snapshot.nodes[name])
        if rejection is None:
            feasible.append(name)
        else:
            rejected[name] = rejection
    return FilterDecision(
        pod,
        tuple(feasible),
        rejected,
        pipeline.conflict,
        unjudged(pod, snapshot, rules.release, rules.filters),
    )


def preempt(
    pod: Pod,
    snapshot: Snapshot,
    rules: Rules = DEFAULT_RULES,
    potential: Collection[str] | None = None,
) -> PreemptionDecision:
    """Filter all nodes, then decide where ``pod`` may be placed at whose cost (see post_filter)."""
    return post_filter(filter_nodes(pod, snapshot, rules), snapshot, rules, potential)


def post_filter(
    filtering: FilterDecision,
    snapshot: Snapshot,
    rules: Rules = DEFAULT_RULES,
    potential: Collection[str] | None = None,
) -> PreemptionDecision:
    """Decide where a pod that filtering refused may be placed at whose cost.

    ``filtering`` should cover the nodes to try and the pod's nominated node; the message speaks of
    those it covers. ``potential`` names the nodes to try, instead of those that filtering found
    resolvable; names that the snapshot does not know are ignored.
    """
    pod, statuses = filtering.pod, filtering.rejected
    if not snapshot.nodes:
        return PreemptionDecision(pod, eligible=True, reason="", chosen=None, message=_NO_NODES)
    failure, first = _failure(filtering, rules), _before_preemption(filtering, snapshot, rules)
    nominated = None if pod.nominated_node is None else statuses.get(pod.nominated_node)
    reason = ineligibility(pod, snapshot, nominated)
    if reason is not None:
        return _ineligible(filtering, reason, f"{failure} {first}{_PREFIX}{reason}")
    tried = _potential(snapshot, statuses, potential)
    candidates, refusals = _dry_run(pod, snapshot, tried, rules)
    order = rules.policy.candidates
    ranked = order.sort(candidates.values())
    rejected = _why_not(filtering, candidates, refusals)
    outcome = _outcome(ranked, len(candidates) + len(rejected), refusals, rules, first)
    return PreemptionDecision(
        pod,
        eligible=True,
        reason="",
        chosen=ranked[0] if ranked else None,
        candidates=candidates,
        rejected=rejected,
        decided_by=order.separating(*ranked[:2]) if len(ranked) > 1 else None,
        message=" ".join(part for part in (failure, outcome) if part),
        unjudged=filtering.unjudged,
    )


def _ineligible(filtering: FilterDecision, reason: str, message: str) -> PreemptionDecision:
    return PreemptionDecision(
        filtering.pod,
        eligible=False,
        reason=reason,
        chosen=None,
        rejected=filtering.rejected,
        message=message,
        unjudged=filtering.unjudged,
    )


def _potential(
    snapshot: Snapshot, statuses: Mapping[str, Rejection], given: Collection[str] | None
) -> list[str]:
    if given is not None:
        return [name for name in snapshot.nodes if name in given]
    # A node without a status (it fits, or was never examined) is not tried either.
    return [name for name in snapshot.nodes if name in statuses and statuses[name].resolvable]


def _dry_run(
    pod: Pod, snapshot: Snapshot, tried: Collection[str], rules: Rules
) -> tuple[dict[str, Candidate], dict[str, Rejection]]:
    pipeline = prepare(pod, snapshot, rules.release, rules.filters)
    coverage = Coverage(snapshot.budgets, rules.release)
    candidates: dict[str, Candidate] = {}
    refusals: dict[str, Rejection] = {}
    for name in tried:
        found = select_victims(pipeline, snapshot.nodes[name], coverage, rules.policy)
        if isinstance(found, Candidate):
            candidates[name] = found
        else:
            refusals[name] = found
    return candidates, refusals


def _why_not(
    filtering: FilterDecision,
    candidates: Mapping[str, Candidate],
    refusals: Mapping[str, Rejection],
) -> dict[str, Rejection]:
    fits = Rejection((Reason(Code.FEASIBLE),), resolvable=False)
    reasons = dict.fromkeys(filtering.feasible, fits) | dict(filtering.rejected) | dict(refusals)
    return {name: reason for name, reason in reasons.items() if name not in candidates}


def _failure(filtering: FilterDecision, rules: Rules) -> str:
    """Give the event's first sentence, which counts why filtering refused each node."""
    total = len(filtering.feasible) + len(filtering.rejected)
    if filtering.conflict is not None:
        return f"0/{total} nodes are available: {filtering.conflict}."
    return fit_message(total, _counted(filtering.rejected, rules))


def _counted(rejected: Mapping[str, Rejection], rules: Rules) -> Iterator[Reason]:
    for rejection in rejected.values():
        for reason in rejection.reasons:
            if reason.code is not Code.NOT_EXAMINED or rules.release.names_unexamined_nodes:
                yield reason


def _outcome(
    ranked: list[Candidate],
    nodes: int,
    refusals: Mapping[str, Rejection],
    rules: Rules,
    first: str,
) -> str:
    """Give the event's second sentence, which says what preemption found after what came first."""
    if ranked:
        if not rules.release.announces_placement:
            return ""
        best = ranked[0]
        return (
            f"{_PREFIX}found a potential placement for pod on node {best.node}, "
            f"preempting {len(best.victims.pods)} victims"
        )
    errors = sorted(str(r) for r in refusals.values() if r.reasons[0].code is Code.NO_VICTIM_NEEDED)
    if errors:
        return _PREFIX + (errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    reasons = [reason for refusal in refusals.values() for reason in refusal.reasons]
    untried = nodes - len(refusals)
    return first + _PREFIX + fit_message(nodes, [*reasons, *[_NOT_HELPFUL] * untried])


def _before_preemption(filtering: FilterDecision, snapshot: Snapshot, rules: Rules) -> str:
    """Say, where the release does, what became of device claims, whose PostFilter comes first."""
    if not rules.release.mentions_claims:
        return ""
    return f"{deallocation(filtering, snapshot)}, "
