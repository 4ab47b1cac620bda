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

from policies.spreading.choosing import (
    Choice,
    Simulate,
    choose_by_ordinal,
    first_counts,
    note_creation,
    note_deletion,
)
from policies.spreading.costs import cost_of_newcomer
from policies.spreading.model import Spread, SpreadPod, Status, SubsetStatus
from policies.spreading.owners import OwnerNotFoundError, Owners, spread_of
from policies.spreading.quirks import SIMULATION_MISSING
from policies.spreading.reconciling import DEFAULT_SPREAD_RULES, SpreadRules
from policies.spreading.references import STATEFUL_SET
from policies.spreading.targets import TargetError, replicas_for_webhook
from policies.spreading.versions import pod_version
from policies.spreading.workloads import Workload

WRITE_ATTEMPTS = 4
"""The number of attempts to write the status before the pod is rejected."""

NewId = Callable[[], str]
"""Generates an id for a pod that has no name yet."""


@dataclass(frozen=True, slots=True)
class Admission:
    """The answer for a pod.

    ``error`` is "" if the pod is allowed. ``spread`` is the name of its WorkloadSpread,
    ``subset`` the subset that it is put into or has left; None if there is none. ``cost`` is its
    deletion cost from then on; None if the controller sets it later, or never. ``uid``, ``status``
    and ``skipped`` are those of :class:`~policies.workloadspread.subset_selection.SelectedSubset`.
    """

    refusal: str = ""
    spread: str | None = None
    subset: str | None = None
    uid: str = ""
    cost: int | None = None
    status: Status | None = None
    passed: Mapping[str, str] = field(default_factory=dict)


LET_THROUGH = Admission()


@dataclass(frozen=True, slots=True)
class Asking:
    """The context of an admission: owners, the target's workload, the time, and the rules.

    ``workload`` returns the target of a WorkloadSpread, or None if it does not exist.
    """

    owners: Owners
    workload: Callable[[Spread], Workload | None]
    now_ns: int
    rules: SpreadRules = DEFAULT_SPREAD_RULES


def admit_creation(
    pod: SpreadPod,
    spreads: Iterable[Spread],
    asking: Asking,
    new_id: NewId,
    simulate: Simulate | None = None,
) -> Admission:
    """Decide about a pod that is created; ``spreads`` are those of its namespace.

    ``simulate`` tries the pod on a subset's nodes; without it there is no simulation.
    """
    try:
        spread = spread_of(pod, spreads, asking.owners, asking.rules.quirks)
    except OwnerNotFoundError as error:
        return Admission(refusal=str(error))
    if spread is None:
        return LET_THROUGH
    return place(pod, spread, asking, new_id, simulate)


def place(
    pod: SpreadPod,
    spread: Spread,
    asking: Asking,
    new_id: NewId,
    simulate: Simulate | None = None,
) -> Admission:
    """Put a new pod into a subset of its WorkloadSpread.

    After a write conflict, repeat this call with the newer ``spread``.
    """

    def note(version: str, counts: tuple[SubsetStatus, ...]) -> Choice:
        uid = "" if pod.name else new_id()
        tried = simulate if _simulates(spread, asking) else None
        return note_creation(spread, version, counts, pod.name, uid, asking.now_ns, tried)

    admission = _answer(pod, spread, asking, note)
    if admission.subset is None:
        return admission
    cost = cost_of_newcomer(spread, admission.subset, asking.rules.quirks)
    return replace(admission, cost=cost)


def admit_removal(pod: SpreadPod, spreads: Iterable[Spread], asking: Asking) -> Admission:
    """Decide about a pod that is deleted or evicted; ``spreads`` are those of its namespace."""
    given = pod.injection
    if given is None or not pod.active or pod.controller is None:
        return LET_THROUGH
    spread = next((each for each in spreads if each.name == given.spread), None)
    if spread is None:
        return LET_THROUGH
    return release(pod, spread, asking)


def release(pod: SpreadPod, spread: Spread, asking: Asking) -> Admission:
    """Release a pod of a WorkloadSpread; for conflicts see :func:`admit_placement`."""
    subset = "" if pod.injection is None else pod.injection.subset

    def note(version: str, counts: tuple[SubsetStatus, ...]) -> Choice:
        return note_deletion(spread, version, counts, pod.name, subset, asking.now_ns)

    return _answer(pod, spread, asking, note)


Note = Callable[[str, tuple[SubsetStatus, ...]], Choice]


def _answer(pod: SpreadPod, spread: Spread, asking: Asking, note: Note) -> Admission:
    only = spread.subsets[0] if len(spread.subsets) == 1 else None
    if only is not None and only.max_replicas is None:
        return Admission(spread=spread.name, subset=only.name)
    if spread.target is not None and spread.target.kind == STATEFUL_SET:
        return Admission(spread=spread.name, subset=choose_by_ordinal(spread, pod.name))
    version = pod_version(pod, asking.rules.versioned_kinds)
    counts = spread.status.versions.get(version) or None
    if counts is None:
        try:
            counts = _first_counts(spread, asking)
        except TargetError as error:
            return Admission(refusal=str(error), spread=spread.name)
    choice = note(version, counts)
    return Admission(
        spread=spread.name,
        subset=choice.subset,
        uid=choice.uid,
        status=choice.status,
        passed=choice.passed,
    )


def _first_counts(spread: Spread, asking: Asking) -> tuple[SubsetStatus, ...]:
    replicas = replicas_for_webhook(spread, asking.workload(spread), asking.owners.whitelist)
    return first_counts(spread.subsets, replicas, asking.rules.quirks)


def _simulates(spread: Spread, asking: Asking) -> bool:
    return spread.strategy.simulates and SIMULATION_MISSING not in asking.rules.quirks
