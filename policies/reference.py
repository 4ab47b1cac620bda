"""The reference engine: plain loops over nodes. Any faster engine must make equal decisions.

``filter_nodes`` is one filtering pass of a scheduling cycle. ``post_filter`` follows it if no node
fits: eligibility, potential nodes, a dry run on each of them (on all, where kube-scheduler
samples), the choice, and the message of the pod's event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from policies import wording
from policies.decision import (
    FEASIBLE,
    Candidate,
    Code,
    FilterDecision,
    PreemptionDecision,
    Reason,
    Rejection,
)
from policies.departing import reach_far, without_departing
from policies.filtering import prepare, unjudged
from policies.model import Pod, Snapshot
from policies.patience import OutOfTimeError, Patience, endless
from policies.preemption import Coverage, ineligibility, select_victims
from policies.rules import DEFAULT_RULES, Rules

_NO_STATUS = Rejection((Reason(Code.NOT_HELPFUL),), resolvable=False)


def filter_nodes(
    pod: Pod,
    snapshot: Snapshot,
    rules: Rules = DEFAULT_RULES,
    among: Collection[str] | None = None,
    patience: Patience = endless,
) -> FilterDecision:
    """Find the nodes that ``pod`` fits now.

    ``among`` limits the search to nodes with these names, each once; names that are not in the
    snapshot are ignored. Raise DeadlineExceededError if ``has_time_left`` returns false.
    """
    pipeline = prepare(pod, snapshot, rules.release, rules.filters)
    nodes = snapshot.nodes if among is None else _known(among, snapshot)
    rejected: dict[str, Rejection] = {}
    feasible: list[str] = []
    for name in nodes:
        if not patience():
            raise OutOfTimeError
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


def _known(names: Iterable[str], snapshot: Snapshot) -> list[str]:
    return [name for name in dict.fromkeys(names) if name in snapshot.nodes]


def filter_leniently(
    pod: Pod,
    snapshot: Snapshot,
    rules: Rules,
    among: Collection[str],
    patience: Patience = endless,
) -> FilterDecision:
    """Filter as if the departing pods had left; if that refuses a node, also as if they stayed.

    A node is refused only if it is refused both ways, for the reason without the departing pods.
    Raise DeadlineExceededError if ``has_time_left`` returns false.
    """
    among = _known(among, snapshot)
    near = snapshot.nodes if reach_far(pod, snapshot) else among
    left = without_departing(snapshot, near)
    gone = filter_nodes(pod, left, rules, among, patience)
    if left is snapshot or not gone.rejected:
        return gone
    there = frozenset(filter_nodes(pod, snapshot, rules, gone.rejected, patience).feasible)
    return lenient(gone, there, among)


def lenient(gone: FilterDecision, there: frozenset[str], among: Collection[str]) -> FilterDecision:
    """Return ``without`` with the nodes added that are ``feasible_with`` the departing pods."""
    fits = there.union(gone.feasible)
    return replace(
        gone,
        feasible=tuple(name for name in dict.fromkeys(among) if name in fits),
        rejected={name: why for name, why in gone.rejected.items() if name not in there},
    )


def preempt(
    pod: Pod,
    snapshot: Snapshot,
    rules: Rules = DEFAULT_RULES,
    potential: Collection[str] | None = None,
    among: Collection[str] | None = None,
    patience: Patience = endless,
) -> PreemptionDecision:
    """Filter, then find the best node for ``pod`` and its victims there (see post_filter).

    ``among`` limits the nodes that are filtered. Raise DeadlineExceededError if ``has_time_left``
    returns false while filtering.
    """
    filtering = filter_nodes(pod, snapshot, rules, among, patience)
    return post_filter(filtering, snapshot, rules, potential, patience)


def post_filter(
    filtering: FilterDecision,
    snapshot: Snapshot,
    rules: Rules = DEFAULT_RULES,
    potential: Collection[str] | None = None,
    patience: Patience = endless,
) -> PreemptionDecision:
    """Find the best node, and the victims there, for a pod that filtering refused.

    ``filtering`` should cover the nodes to try and the pod's nominated node; the message is about
    those that it covers. ``potential`` names the nodes to try, instead of those that filtering
    found resolvable; names that are not in the snapshot are ignored. When ``has_time_left`` returns
    false, no more of them are tried.
    """
    pod, statuses = filtering.pod, filtering.rejected
    if not snapshot.nodes:
        return PreemptionDecision(
            pod, eligible=True, reason="", chosen=None, message=wording.NO_NODES
        )
    failure = wording.unfit(
        len(filtering.feasible) + len(statuses),
        filtering.conflict,
        Counter(_reasons(statuses.values())),
        rules.release,
    )
    reason = ineligibility(pod, snapshot, nominated_status(pod, statuses, rules))
    if reason is not None:
        first = wording.before_preemption(filtering, snapshot, rules.release)
        return _ineligible(filtering, reason, f"{failure} {wording.ineligible(reason, first)}")
    tried = _potential(snapshot, statuses, potential)
    candidates, refusals = _dry_run(pod, snapshot, tried, rules, patience)
    order = rules.policy.candidates
    ranked = order.sort(candidates.values())
    rejected = _why_not(filtering, candidates, refusals)
    if ranked:
        outcome = wording.placed(ranked[0], rules.release)
    else:
        first = wording.before_preemption(filtering, snapshot, rules.release)
        outcome = _helpless(len(rejected), refusals, first)
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
        untried=len(tried) - len(candidates) - len(refusals),
    )


def nominated_status(pod: Pod, statuses: Mapping[str, Rejection], rules: Rules) -> Rejection | None:
    """Return the filter status of the nominated node; from 1.32 on a missing one is unresolvable.

    Filtering has no status of a node that passed kube-scheduler's filters and that an extender then
    dropped.
    """
    if pod.nominated_node is None:
        return None
    absent = None if rules.release.waits_without_status else _NO_STATUS
    return statuses.get(pod.nominated_node, absent)


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
    # A node without a status (it fits, or was not filtered) is not tried either.
    return [name for name in snapshot.nodes if name in statuses and statuses[name].resolvable]


def _dry_run(
    pod: Pod, snapshot: Snapshot, tried: Collection[str], rules: Rules, patience: Patience
) -> tuple[dict[str, Candidate], dict[str, Rejection]]:
    pipeline = prepare(pod, snapshot, rules.release, rules.filters)
    coverage = Coverage(snapshot.budgets, rules.release)
    candidates: dict[str, Candidate] = {}
    refusals: dict[str, Rejection] = {}
    for name in tried:
        if not patience():
            break
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
    fitting = dict.fromkeys(filtering.feasible, FEASIBLE)
    reasons = fitting | dict(filtering.rejected) | dict(refusals)
    return {name: reason for name, reason in reasons.items() if name not in candidates}


def _helpless(nodes: int, refusals: Mapping[str, Rejection], first: str) -> str:
    errors = [str(r) for r in refusals.values() if r.reasons[0].code is Code.NO_VICTIM_NEEDED]
    reasons = Counter(_reasons(refusals.values()))
    return wording.helpless(nodes, len(refusals), reasons, errors, first)


def _reasons(rejections: Iterable[Rejection]) -> Iterator[Reason]:
    return (reason for rejection in rejections for reason in rejection.reasons)


@dataclass(frozen=True, slots=True)
class Reference:
    """These functions as an engine; it keeps no state between decisions."""

    rules: Rules = DEFAULT_RULES

    def follow(self, snapshot: Snapshot, changed: Collection[str] | None = None) -> None:
        """Do nothing: each decision reads its snapshot."""

    def filter_nodes(
        self,
        pod: Pod,
        snapshot: Snapshot,
        among: Collection[str] | None = None,
        patience: Patience = endless,
    ) -> FilterDecision:
        """See :func:`filter_nodes`."""
        return filter_nodes(pod, snapshot, self.rules, among, patience)

    def filter_leniently(
        self,
        pod: Pod,
        snapshot: Snapshot,
        among: Collection[str],
        patience: Patience = endless,
    ) -> FilterDecision:
        """See :func:`filter_leniently`."""
        return filter_leniently(pod, snapshot, self.rules, among, patience)

    def preempt(
        self,
        pod: Pod,
        snapshot: Snapshot,
        potential: Collection[str] | None = None,
        among: Collection[str] | None = None,
        patience: Patience = endless,
    ) -> PreemptionDecision:
        """See :func:`preempt`."""
        return preempt(pod, snapshot, self.rules, potential, among, patience)
