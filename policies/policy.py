"""A policy: which pods go first, which node wins, and who is never touched. A new policy is data.

:data:`KUBE_SCHEDULER` is what kube-scheduler has in Go. Others are made of the same named criteria
in another order, or fewer of them, and of guards that protect pods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from policies.decision import Candidate
from policies.model import Pod
from policies.order import Criterion, Order

# A pod without a start time counts as started last: it has done the least work.
_NOT_STARTED = 2**63 - 1
PRIORITY_SHIFT = 2**31


def started(pod: Pod) -> int:
    """Return when a pod started, in nanoseconds; one that has not is taken for the youngest."""
    return _NOT_STARTED if pod.started_ns is None else pod.started_ns


def _latest_start(candidate: Candidate) -> int:
    pods = candidate.victims.pods
    top = max(pod.priority for pod in pods)
    return -min(started(pod) for pod in pods if pod.priority == top)


_POD_CRITERIA: tuple[Criterion[Pod], ...] = (
    Criterion("highest priority", lambda pod: -pod.priority),
    Criterion("earliest start", started),
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
"""What pods can be ordered by, by name; upstream's order (MoreImportantPod)."""
CANDIDATE_CRITERIA: Mapping[str, Criterion[Candidate]] = {c.name: c for c in _CANDIDATE_CRITERIA}
"""What candidates can be ordered by, by name; upstream's order (pickOneNodeForPreemption)."""


def pod_order(criteria: tuple[Criterion[Pod], ...]) -> Order[Pod]:
    """Order pods by ``criteria``, the most important first, and equal ones by UID.

    Up to 1.37 upstream leaves equal pods in any order; from 1.38 on it takes the UID, too.
    """
    return Order(criteria, last=lambda pod: pod.uid, last_name="UID")


def candidate_order(criteria: tuple[Criterion[Candidate], ...]) -> Order[Candidate]:
    """Order candidates by ``criteria``, the best first, and equal ones by node name.

    Upstream leaves equal candidates to chance; here equal clusters give equal answers.
    """
    return Order(criteria, last=lambda candidate: candidate.node, last_name="node name")


IMPORTANCE = pod_order(_POD_CRITERIA)
"""Upstream's order of victims."""
COST = candidate_order(_CANDIDATE_CRITERIA)
"""Upstream's order of candidates."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A rule that keeps pods from being victims; ``name`` says in the policy file why."""

    name: str
    protects: Callable[[Pod], bool]


@dataclass(frozen=True, slots=True)
class Policy:
    """How victims and nodes are chosen.

    ``victims`` orders the pods of a node: those first in it are the first to be reprieved.
    ``candidates`` orders the nodes: the first one is chosen.
    """

    name: str
    victims: Order[Pod] = IMPORTANCE
    candidates: Order[Candidate] = COST
    guards: tuple[Guard, ...] = ()

    def guard_of(self, pod: Pod) -> Guard | None:
        """Return the first guard that protects ``pod``."""
        return next((guard for guard in self.guards if guard.protects(pod)), None)


KUBE_SCHEDULER = Policy("kube-scheduler")
POLICIES: Mapping[str, Policy] = {KUBE_SCHEDULER.name: KUBE_SCHEDULER}
