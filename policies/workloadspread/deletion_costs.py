"""Pod deletion costs: which pods a workload deletes first when it scales down.

With n subsets, a pod of subset i (from 0) costs

    100 · (n - i)     if its subset has no more than maxReplicas active pods, or no limit
    -100 · (i + 1)    if it exceeds its subset's maxReplicas
    -100 · (n + 1)    if it is of no subset

so that pods of no subset are deleted first, then excess pods, those of the last subset first, then
the others, again those of the last subset first. For example, with three subsets:

    subset        a       b       c
    maxReplicas   10      10      none
    pods          20      20      20
    costs         300 or -100   200 or -200   100

In a version that is not the newest, i counts from the end, so that a rollout empties it from its
first subset on. Only some kinds of workloads support deletion costs. Inactive pods have none.

Source: openkruise/kruise pkg/controller/workloadspread/update_pod_deletion_cost.go; the order is
ActivePods.Less in kubernetes/pkg/controller/controller_utils.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from policies.kubernetes.criteria import Criterion, Order
from policies.replicaset.pod_ranking import MISSING_TIME, PHASE_RANKS
from policies.workloadspread.model import FAKE_SUBSET, SpreadPod, WorkloadSpread
from policies.workloadspread.object_references import CLONE_SET, DEPLOYMENT, REPLICA_SET
from policies.workloadspread.pod_groups import BySubset
from policies.workloadspread.quirks import NEW_PODS_WITHOUT_COST, Quirks
from policies.workloadspread.subset_counts import MaxReplicasError, limit_for_costs

DELETION_COST_KINDS: Final = frozenset((REPLICA_SET, DEPLOYMENT, CLONE_SET))
"""The kinds of targets whose controllers support deletion costs."""

_STEP: Final = 100


class SubsetRank(Enum):
    """Whether a pod is within its subset's limit."""

    WITHIN = "within its subset's limit"
    EXCESS = "more than its subset's limit"
    OUTSIDE = "of no subset"


@dataclass(frozen=True, slots=True)
class Cost:
    """The deletion cost of a pod, and its explanation.

    ``criterion`` ranked an excess pod before the first pod that is kept; None for other pods.
    """

    value: int
    subset_rank: SubsetRank
    criterion: str | None = None


def _ready_since(pod: SpreadPod) -> int:
    """Return a key that is smaller for a shorter ready time; a missing time comes first."""
    if not pod.ready:
        return 0
    return MISSING_TIME if pod.ready_since is None else -pod.ready_since


def _created(pod: SpreadPod) -> int:
    return MISSING_TIME if pod.created_ns is None else -pod.created_ns


DELETION_ORDER: Final[Order[SpreadPod]] = Order(
    (
        Criterion("unscheduled", lambda pod: int(pod.node != "")),
        Criterion("phase", lambda pod: PHASE_RANKS.get(pod.phase, 0)),
        Criterion("not-ready", lambda pod: +pod.ready),
        Criterion("ready-time", _ready_since),
        Criterion("restarts", lambda pod: -pod.restarts),
        Criterion("sidecar-restarts", lambda pod: -pod.sidecar_restarts),
        Criterion("creation-time", _created),
    ),
    last=lambda pod: pod.name,
    last_name="name",
)
"""The order in which pods of a subset count as excess, the first one first."""


def deletion_costs(
    spread: WorkloadSpread,
    versions: Mapping[str, BySubset],
    newest: str,
    replicas: int,
    quirks: Quirks,
) -> dict[str, Cost]:
    """Return the cost of each active pod, by name; none in a subset with an invalid limit."""
    if not _supports_deletion_cost(spread):
        return {}
    costs: dict[str, Cost] = {}
    forwards = range(len(spread.subsets))
    for version, by_subset in versions.items():
        indexes = forwards if version == newest else forwards[::-1]
        costs |= _costs_of_version(spread, by_subset, indexes, replicas, quirks)
    return costs


def new_pod_cost(spread: WorkloadSpread, subset: str, quirks: Quirks) -> int | None:
    """Return the cost of a new pod of a subset; None if the webhook is not to set one.

    New pods are nearly always of the newest version, and are assumed to be.
    """
    if NEW_PODS_WITHOUT_COST in quirks or not _supports_deletion_cost(spread):
        return None
    names = [each.name for each in spread.subsets]
    return _kept(names.index(subset), len(names)) if subset in names else None


def _costs_of_version(
    spread: WorkloadSpread,
    by_subset: BySubset,
    indexes: Sequence[int],
    replicas: int,
    quirks: Quirks,
) -> dict[str, Cost]:
    count = len(indexes)
    costs: dict[str, Cost] = {}
    for index, subset in zip(indexes, spread.subsets, strict=True):
        try:
            limit = limit_for_costs(subset.max_replicas, replicas, quirks)
        except MaxReplicasError:
            continue
        costs |= _costs_of_subset(by_subset.get(subset.name, ()), limit, index, count)
    outside = Cost(-_STEP * (count + 1), SubsetRank.OUTSIDE)
    return costs | {pod.name: outside for pod in _active(by_subset.get(FAKE_SUBSET, ()))}


def _costs_of_subset(
    pods: Iterable[SpreadPod], limit: int | None, index: int, count: int
) -> dict[str, Cost]:
    kept = Cost(_kept(index, count), SubsetRank.WITHIN)
    active = _active(pods)
    if limit is None or len(active) <= limit:
        return {pod.name: kept for pod in active}
    ranked = DELETION_ORDER.sort(active)
    excess = len(ranked) - limit
    first_kept = ranked[excess] if excess < len(ranked) else None
    costs = {
        pod.name: Cost(
            -_STEP * (index + 1), SubsetRank.EXCESS, _separating_criterion(pod, first_kept)
        )
        for pod in ranked[:excess]
    }
    return costs | {pod.name: kept for pod in ranked[excess:]}


def _kept(index: int, count: int) -> int:
    return _STEP * (count - index)


def _supports_deletion_cost(spread: WorkloadSpread) -> bool:
    return spread.target is not None and spread.target.kind in DELETION_COST_KINDS


def _separating_criterion(pod: SpreadPod, first_kept: SpreadPod | None) -> str | None:
    return None if first_kept is None else DELETION_ORDER.deciding_criterion(pod, first_kept)


def _active(pods: Iterable[SpreadPod]) -> Sequence[SpreadPod]:
    return [pod for pod in pods if pod.active]
