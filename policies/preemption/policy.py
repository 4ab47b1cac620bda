"""A policy: the orders of victims and candidates, and guards. Policies are data.

:data:`KUBE_SCHEDULER` is the policy that kube-scheduler has in Go. Others use the same named
criteria in another order, or fewer of them, criteria over costs, and guards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial

from policies.kubernetes.criteria import Criterion, Order
from policies.kubernetes.feature_gates import FeatureGate
from policies.kubernetes.releases import NEWEST, Release
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.consequences.criteria import (
    BEST_TWO,
    ConsequenceCriterion,
    Consequences,
    count_consequences,
)
from policies.preemption.consequences.simulation import Simulation
from policies.preemption.costs.candidate_criteria import (
    CandidateCriterion,
    CostCriterion,
    GroupCriterion,
    GroupTotals,
    GroupValueCriterion,
    bound,
    count_totals,
)
from policies.preemption.costs.catalog import PodCostCriterion
from policies.preemption.costs.pod_cost import PodCost
from policies.preemption.decision import Candidate
from policies.preemption.filtering import IN_TREE, Filter
from policies.preemption.guards.allowance import VICTIMS, AllowanceGuard, BoundAllowance
from policies.preemption.guards.attempt_guard import AttemptGuard
from policies.preemption.guards.candidate_limit import (
    STRICT_BUDGETS,
    CandidateLimit,
    Limit,
    strict_limit,
    with_strict_budgets,
)
from policies.preemption.guards.victim_guard import UNPROTECTED, VictimGuard
from policies.preemption.victim_units import VictimUnit

# A pod without a start time counts as started last: it has done the least work.
_NOT_STARTED = 2**63 - 1
PRIORITY_SHIFT = 2**31


def start_time(pod: Pod) -> int:
    """Return the start time of a pod in nanoseconds; a pod that has not started is the youngest."""
    return _NOT_STARTED if pod.started_ns is None else pod.started_ns


def _latest_start(candidate: Candidate) -> int:
    pods = candidate.victims.pods
    top = max(pod.priority for pod in pods)
    return -min(start_time(pod) for pod in pods if pod.priority == top)


_POD_CRITERIA: tuple[Criterion[Pod], ...] = (
    Criterion("highest priority", lambda pod: -pod.priority),
    Criterion("earliest start", start_time),
)
_CANDIDATE_CRITERIA: tuple[Criterion[Candidate], ...] = (
    Criterion("fewest PDB violations", lambda c: c.victims.violations),
    Criterion("lowest priority of the first victim", lambda c: c.victims.pods[0].priority),
    Criterion(
        "smallest sum of priorities",
        lambda c: sum(pod.priority + PRIORITY_SHIFT for pod in c.victims.pods),
    ),
    Criterion("fewest victims", lambda c: len(c.victims.pods)),
    Criterion("latest start of the most important victims", _latest_start),
)

POD_CRITERIA: Mapping[str, Criterion[Pod]] = {c.name: c for c in _POD_CRITERIA}
"""The criteria of pod orders, by name, in upstream's order (MoreImportantPod)."""
CANDIDATE_CRITERIA: Mapping[str, Criterion[Candidate]] = {c.name: c for c in _CANDIDATE_CRITERIA}
"""The criteria of candidate orders, by name, in upstream's order (pickOneNodeForPreemption)."""


def pod_order(criteria: tuple[Criterion[Pod], ...]) -> Order[Pod]:
    """Return the order of pods by ``criteria``, the most important first, and equal ones by UID.

    Up to 1.37 upstream leaves the order of equal pods open; from 1.38 on it uses the UID, too.
    """
    return Order(criteria, last=lambda pod: pod.uid, last_name="UID")


def candidate_order(criteria: tuple[Criterion[Candidate], ...]) -> Order[Candidate]:
    """Return the order of candidates by ``criteria``, the best first, and equal ones by node name.

    Upstream chooses among equal candidates at random; here equal clusters get equal answers.
    """
    return Order(criteria, last=lambda candidate: candidate.node, last_name="node name")


@lru_cache(maxsize=16)
def unit_order(order: Order[Pod]) -> Order[VictimUnit]:
    """Return the order of victim units that corresponds to an order of pods.

    Units are compared by their priority instead of that of their pods; then by their kind and size,
    the larger first; and by the other criteria of ``order`` for their most important pods. For
    single pods without a group it is the same order. Source: MoreImportantVictim in
    pkg/scheduler/framework/preemption/util.go.
    """
    sizes: list[Criterion[VictimUnit]] = [
        Criterion("kind of the group", lambda unit: -unit.kind),
        Criterion("most pods", lambda unit: -len(unit.pods)),
    ]
    priority = _POD_CRITERIA[0]
    criteria: list[Criterion[VictimUnit]] = []
    for each in order.criteria:
        if each is priority:
            criteria += [Criterion(each.name, lambda unit: -unit.priority), *sizes]
        else:
            criteria.append(Criterion(each.name, _of_most_important(each)))
    if priority not in order.criteria:
        criteria = [*sizes, *criteria]
    return Order(
        tuple(criteria),
        last=lambda unit: min([order.last(pod) for pod in unit.pods]),
        last_name=order.last_name,
    )


def _of_most_important(criterion: Criterion[Pod]) -> Callable[[VictimUnit], int]:
    return lambda unit: min([criterion.key(pod) for pod in unit.pods])


DEFAULT_VICTIM_ORDER = pod_order(_POD_CRITERIA)
"""Upstream's order of pods by importance."""


def order_victims(units: Iterable[VictimUnit], order: Order[Pod]) -> tuple[Pod, ...]:
    """Return the pods of victim units, those of the most important unit first."""
    ordered = unit_order(order).sort(units)
    return tuple(pod for unit in ordered for pod in order.sort(unit.pods))


DEFAULT_CANDIDATE_ORDER = candidate_order(_CANDIDATE_CRITERIA)
"""Upstream's order of candidates."""


NO_CONSEQUENCES: Consequences = {}

Shortlist = Callable[[Order[Candidate], int, int], Sequence[Candidate]]
"""Returns what :meth:`Order.leading` returns of all candidates of a decision."""


PolicyCriterion = CandidateCriterion | ConsequenceCriterion


@dataclass(frozen=True, slots=True)
class Policy:
    """How victims and nodes are chosen.

    ``victims`` orders the pods of a node: the first are the first to be reprieved. ``candidates``
    order the nodes, from the most important criterion to the least: the first node is chosen. A
    victim's priority is at least ``priority_gap`` below that of the preemptor. With
    ``strict_budgets``, budgets count as :func:`with_strict_budgets` does, and none is exceeded.
    ``cheapest_by`` is the first of ``candidates`` if, by this criterion, the cheapest victims are
    to be found, not only those that are left after the others were reprieved.
    """

    name: str
    victims: Order[Pod] = DEFAULT_VICTIM_ORDER
    candidates: tuple[PolicyCriterion, ...] = _CANDIDATE_CRITERIA
    victim_guards: tuple[VictimGuard, ...] = ()
    candidate_limits: tuple[CandidateLimit, ...] = ()
    attempt_guards: tuple[AttemptGuard, ...] = ()
    allowance_guards: tuple[AllowanceGuard, ...] = ()
    priority_gap: int = 1
    strict_budgets: bool = False
    cheapest_by: CostCriterion | GroupCriterion | None = None

    @property
    def criteria(self) -> tuple[PolicyCriterion, ...]:
        """The criteria that candidates are compared by, and limited by."""
        return (*self.candidates, *(limit.criterion for limit in self.candidate_limits))

    @property
    def costs(self) -> tuple[PodCost, ...]:
        """The costs that the policy reads, each once."""
        costs = (each.cost for each in self.criteria if isinstance(each, CostCriterion))
        counted = (each.counted for each in self.allowance_guards if each.counted is not VICTIMS)
        return tuple(dict.fromkeys((*costs, *counted)))

    @property
    def costs_of_order(self) -> tuple[PodCost, ...]:
        """The costs by which pods are ordered."""
        criteria = self.victims.criteria
        return tuple(each.cost for each in criteria if isinstance(each, PodCostCriterion))

    @property
    def annotations(self) -> frozenset[str]:
        """The keys of the annotations that the policy reads."""
        return frozenset[str]().union(
            *(cost.annotations for cost in (*self.costs, *self.costs_of_order)),
            *(guard.annotations for guard in self.victim_guards),
            *(guard.annotations for guard in self.allowance_guards),
        )

    @property
    def objects_read(self) -> frozenset[str]:
        """The kinds of the objects that it reads, of those that only policies read."""
        valued = (each for each in self.criteria if isinstance(each, GroupValueCriterion))
        kinds = (*(each.reads for each in valued), *(each.reads for each in self.attempt_guards))
        return frozenset(kinds) - {""}

    @property
    def reads_time(self) -> bool:
        """Whether the time of a decision may matter to it: only guards and costs read it."""
        guards = (*self.victim_guards, *self.attempt_guards, *self.allowance_guards)
        return bool(guards or self.costs)

    @property
    def decides_by_node(self) -> bool:
        """Whether a node, its pods and their budgets decide what is found on it, and its keys."""
        others = (*self.victim_guards, *self.candidate_limits, *self.allowance_guards, *self.costs)
        return not (others or self.strict_budgets or self.cheapest_by) and all(
            isinstance(each, ConsequenceCriterion) or CANDIDATE_CRITERIA.get(each.name) is each
            for each in self.candidates
        )

    def protected_until_ns(self, pod: Pod) -> int:
        """Return the time until which guards protect a pod; see :class:`VictimGuard`."""
        return max((guard.until_ns(pod) for guard in self.victim_guards), default=UNPROTECTED)

    def protection_of(self, pod: Pod, now_ns: int) -> VictimGuard | None:
        """Return the first guard that protects ``pod`` at a time."""
        return next((each for each in self.victim_guards if each.until_ns(pod) > now_ns), None)

    def may_evict(self, pod: Pod, now_ns: int) -> bool:
        """Return whether no guard protects ``pod`` at a time."""
        return self.protection_of(pod, now_ns) is None

    def view_of(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot as the policy reads it."""
        return with_strict_budgets(snapshot) if self.strict_budgets else snapshot

    def order_of_candidates(
        self,
        preemptor: Pod,
        snapshot: Snapshot,
        totals: GroupTotals | None = None,
        consequences: Consequences = NO_CONSEQUENCES,
    ) -> Order[Candidate]:
        """Return the order of the candidates of a decision on ``snapshot``; see ``bound``.

        ``consequences`` are those of the decision; all candidates without them are equal in them.
        """
        return candidate_order(
            tuple(
                each.bind(consequences)
                if isinstance(each, ConsequenceCriterion)
                else bound(each, preemptor, snapshot, totals)
                for each in self.candidates
            )
        )

    @property
    def compares_while_searching(self) -> bool:
        """Whether what is found on a node depends on the other candidates.

        The cheapest victims are not searched on all nodes, and consequences are counted for some.
        """
        counts = (each for each in self.candidates if isinstance(each, ConsequenceCriterion))
        return self.cheapest_by is not None or next(counts, None) is not None

    def without_consequences(self) -> Policy:
        """Return the policy without criteria over consequences."""
        cheap = (each for each in self.candidates if not isinstance(each, ConsequenceCriterion))
        return replace(self, candidates=tuple(cheap))

    def count_consequences(
        self,
        preemptor: Pod,
        snapshot: Snapshot,
        simulation: Simulation,
        shortlist: Shortlist,
        totals: GroupTotals | None = None,
    ) -> Consequences:
        """Return the consequences of a decision on ``snapshot``, criterion by criterion."""
        found: dict[str, Mapping[str, int]] = {}
        for depth, each in enumerate(self.candidates):
            if isinstance(each, ConsequenceCriterion):
                order = self.order_of_candidates(preemptor, snapshot, totals, found)
                leading = shortlist(order, depth, each.shortlist)
                # A later criterion of this kind reads all that are equal, not only the best two.
                is_last = not any(
                    isinstance(later, ConsequenceCriterion)
                    for later in self.candidates[depth + 1 :]
                )
                enough = BEST_TWO if is_last else each.shortlist
                found[each.name] = count_consequences(each, leading, simulation, enough)
        return found

    @property
    def limit_names(self) -> tuple[str, ...]:
        """The names of the limits on candidates."""
        strict = (STRICT_BUDGETS,) if self.strict_budgets else ()
        limits = (limit.name for limit in self.candidate_limits)
        return (*strict, *limits, *(guard.name for guard in self.allowance_guards))

    def limits(
        self,
        preemptor: Pod,
        snapshot: Snapshot,
        allowances: tuple[BoundAllowance, ...],
        totals: GroupTotals | None = None,
    ) -> tuple[Limit, ...]:
        """Return the limits on the candidates of a decision on ``snapshot``; see ``bound``."""
        strict = (strict_limit(snapshot),) if self.strict_budgets else ()
        bounds = (each.bind(preemptor, snapshot, totals) for each in self.candidate_limits)
        return (*strict, *bounds, *allowances)

    def allowances(
        self, preemptor: Pod, snapshot: Snapshot, totals: GroupTotals | None = None
    ) -> tuple[BoundAllowance, ...]:
        """Return the allowances of groups for a decision on ``snapshot``; see ``bound``."""
        totals = totals or partial(count_totals, snapshot)
        return tuple(each.bind(preemptor, snapshot, totals) for each in self.allowance_guards)

    def refusal(self, pod: Pod, snapshot: Snapshot) -> str | None:
        """Return why ``pod`` may not preempt now, or None."""
        reasons = (guard.reason(pod, snapshot) for guard in self.attempt_guards)
        return next((reason for reason in reasons if reason is not None), None)


KUBE_SCHEDULER = Policy("kube-scheduler")
POLICIES: Mapping[str, Policy] = {KUBE_SCHEDULER.name: KUBE_SCHEDULER}


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """A policy, and the preemptors that it applies to; their ``annotations`` are read for that."""

    name: str
    applies_to: Callable[[Pod], bool]
    policy: Policy
    annotations: frozenset[str] = frozenset()


@dataclass(frozen=True)
class SchedulerRules:
    """The release of kube-scheduler, its in-tree filters, and the policy of a decision.

    The first of ``policy_rules`` that applies to a preemptor has its policy; ``policy`` is that of
    all others.

    ``scheduler_names`` are the names of its profiles, if it has several. Nominations of the pods of
    other schedulers do not count. ``assumed_gates`` are those of the release's gates that
    kube-scheduler may have off.
    """

    release: Release = NEWEST
    filters: tuple[Filter, ...] = IN_TREE
    policy: Policy = KUBE_SCHEDULER
    scheduler_names: frozenset[str] = frozenset()
    assumed_gates: frozenset[FeatureGate] = frozenset()
    policy_rules: tuple[PolicyRule, ...] = ()

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The policies of all preemptors."""
        return (*(rule.policy for rule in self.policy_rules), self.policy)

    @cached_property
    def annotations(self) -> frozenset[str]:
        """The keys of the annotations that any policy reads."""
        return frozenset[str]().union(
            *(policy.annotations for policy in self.policies),
            *(rule.annotations for rule in self.policy_rules),
        )

    @cached_property
    def objects_read(self) -> frozenset[str]:
        """The kinds that any policy reads, of those that only policies read."""
        return frozenset[str]().union(*(policy.objects_read for policy in self.policies))

    @cached_property
    def reads_time(self) -> bool:
        """Whether any policy may read the time of a decision."""
        return any(policy.reads_time for policy in self.policies)

    def for_preemptor(self, pod: Pod) -> SchedulerRules:
        """Return the rules with the only policy that applies to a preemptor."""
        if not self.policy_rules:
            return self
        found = next((rule.policy for rule in self.policy_rules if rule.applies_to(pod)), None)
        return replace(self, policy=found or self.policy, policy_rules=())


DEFAULT_RULES = SchedulerRules()
