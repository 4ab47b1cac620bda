"""Pod admission: the answers of the webhooks when a pod is created, deleted or evicted.

A pod is only rejected if its WorkloadSpread or workload cannot be determined; the client then
retries. An answer can contain a status to write first. If that write fails with a conflict, the
caller reads the WorkloadSpread again and repeats the decision with the newer one; after four
attempts it rejects the pod.

The caller that injects the pod uses ``subset`` and ``uid`` of the answer.

Source: openkruise/kruise pkg/util/workloadspread/workloadspread.go (HandlePodCreation,
HandlePodDeletion, acquireSuitableSubset).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from policies.workloadspread.deletion_costs import new_pod_cost
from policies.workloadspread.model import (
    SpreadPod,
    SubsetStatus,
    WorkloadSpread,
    WorkloadSpreadStatus,
)
from policies.workloadspread.object_references import STATEFUL_SET
from policies.workloadspread.quirks import SIMULATION_MISSING
from policies.workloadspread.reconcile import DEFAULT_SPREAD_RULES, SpreadRules
from policies.workloadspread.spread_lookup import (
    OwnerLookup,
    OwnerNotFoundError,
    workloadspread_of_new_pod,
)
from policies.workloadspread.subset_selection import (
    SelectedSubset,
    Simulate,
    VersionCounts,
    initial_counts,
    record_creation,
    record_deletion,
    select_by_ordinal,
)
from policies.workloadspread.targets import TargetError, replicas_for_webhook
from policies.workloadspread.workload_versions import pod_version
from policies.workloadspread.workloads import TargetWorkload

WRITE_ATTEMPTS = 4
"""The number of attempts to write the status before the pod is rejected."""

IdGenerator = Callable[[], str]
"""Generates an id for a pod that has no name yet."""


@dataclass(frozen=True, slots=True)
class PodAdmission:
    """The answer for a pod.

    ``error`` is "" if the pod is allowed. ``spread`` is the name of its WorkloadSpread,
    ``subset`` the subset that it is put into or has left; None if there is none. ``cost`` is its
    deletion cost from then on; None if the controller sets it later, or never. ``uid``, ``status``
    and ``skipped`` are those of :class:`~policies.workloadspread.subset_selection.SelectedSubset`.
    """

    error: str = ""
    spread: str | None = None
    subset: str | None = None
    uid: str = ""
    cost: int | None = None
    status: WorkloadSpreadStatus | None = None
    skipped: Mapping[str, str] = field(default_factory=dict)


ADMITTED = PodAdmission()


@dataclass(frozen=True, slots=True)
class AdmissionContext:
    """The context of an admission: owners, the target's workload, the time, and the rules.

    ``workload`` returns the target of a WorkloadSpread, or None if it does not exist.
    """

    owners: OwnerLookup
    workload: Callable[[WorkloadSpread], TargetWorkload | None]
    now_ns: int
    rules: SpreadRules = DEFAULT_SPREAD_RULES


def admit_creation(
    pod: SpreadPod,
    spreads: Iterable[WorkloadSpread],
    context: AdmissionContext,
    new_id: IdGenerator,
    simulate: Simulate | None = None,
) -> PodAdmission:
    """Decide about a pod that is created; ``spreads`` are those of its namespace.

    ``simulate`` tries the pod on a subset's nodes; without it there is no simulation.
    """
    try:
        spread = workloadspread_of_new_pod(pod, spreads, context.owners, context.rules.quirks)
    except OwnerNotFoundError as error:
        return PodAdmission(error=str(error))
    if spread is None:
        return ADMITTED
    return admit_placement(pod, spread, context, new_id, simulate)


def admit_placement(
    pod: SpreadPod,
    spread: WorkloadSpread,
    context: AdmissionContext,
    new_id: IdGenerator,
    simulate: Simulate | None = None,
) -> PodAdmission:
    """Put a new pod into a subset of its WorkloadSpread.

    After a write conflict, repeat this call with the newer ``spread``.
    """

    def record(counts: VersionCounts) -> SelectedSubset:
        uid = "" if pod.name else new_id()
        simulation = simulate if _simulates(spread, context) else None
        return record_creation(spread, counts, pod.name, uid, context.now_ns, simulation)

    admission = _admit(pod, spread, context, record)
    if admission.subset is None:
        return admission
    cost = new_pod_cost(spread, admission.subset, context.rules.quirks)
    return replace(admission, cost=cost)


def admit_removal(
    pod: SpreadPod, spreads: Iterable[WorkloadSpread], context: AdmissionContext
) -> PodAdmission:
    """Decide about a pod that is deleted or evicted; ``spreads`` are those of its namespace."""
    injection = pod.injection
    if injection is None or not pod.active or pod.controller is None:
        return ADMITTED
    spread = next((each for each in spreads if each.name == injection.spread), None)
    if spread is None:
        return ADMITTED
    return admit_release(pod, spread, context)


def admit_release(
    pod: SpreadPod, spread: WorkloadSpread, context: AdmissionContext
) -> PodAdmission:
    """Release a pod of a WorkloadSpread; for conflicts see :func:`admit_placement`."""
    subset = "" if pod.injection is None else pod.injection.subset

    def record(counts: VersionCounts) -> SelectedSubset:
        return record_deletion(spread, counts, pod.name, subset, context.now_ns)

    return _admit(pod, spread, context, record)


def _admit(
    pod: SpreadPod,
    spread: WorkloadSpread,
    context: AdmissionContext,
    record: Callable[[VersionCounts], SelectedSubset],
) -> PodAdmission:
    only = spread.subsets[0] if len(spread.subsets) == 1 else None
    if only is not None and only.max_replicas is None:
        return PodAdmission(spread=spread.name, subset=only.name)
    if spread.target is not None and spread.target.kind == STATEFUL_SET:
        return PodAdmission(spread=spread.name, subset=select_by_ordinal(spread, pod.name))
    version = pod_version(pod, context.rules.versioned_kinds)
    counts = spread.status.versions.get(version) or None
    if counts is None:
        try:
            counts = _initial_counts(spread, context)
        except TargetError as error:
            return PodAdmission(error=str(error), spread=spread.name)
    choice = record(VersionCounts(version, counts))
    return PodAdmission(
        spread=spread.name,
        subset=choice.subset,
        uid=choice.uid,
        status=choice.status,
        skipped=choice.skipped,
    )


def _initial_counts(spread: WorkloadSpread, context: AdmissionContext) -> tuple[SubsetStatus, ...]:
    replicas = replicas_for_webhook(spread, context.workload(spread), context.owners.allowed_kinds)
    return initial_counts(spread.subsets, replicas, context.rules.quirks)


def _simulates(spread: WorkloadSpread, context: AdmissionContext) -> bool:
    return spread.strategy.simulates and SIMULATION_MISSING not in context.rules.quirks
