"""Pod injection: the admission of a pod to a WorkloadSpread, and the mutated pod.

The pod webhook does this between decoding a request and encoding the response, and ``explain spread
--pod`` shows the result. A subset is simulated with the pod as it would be in the subset, by the
filters that kube-scheduler runs.

Source: openkruise/kruise pkg/util/workloadspread/workloadspread.go (mutatingPod).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from extender.kube.decoding import ObjectError
from extender.kube.pods import decode_undefaulted_pod
from extender.kube.strategic import PatchError
from extender.kube.workloadspread.injecting import inject
from extender.kube.workloadspread.spreads import StoredWorkloadSpread
from policies import decide_filter
from policies.model import Snapshot
from policies.rules import SchedulerRules
from policies.spreading.admitting import (
    AdmissionContext,
    IdGenerator,
    PodAdmission,
    admit_creation,
    admit_placement,
)
from policies.spreading.choosing import Simulate
from policies.spreading.model import SpreadPod, Subset, WorkloadSpread
from policies.wording import fit_error

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class InjectionResult:
    """The admission of a pod, and the pod, which is changed only if a subset is injected.

    A pod into which its subset cannot be injected is refused, but its admission is still written.
    """

    admission: PodAdmission
    pod: Document


@dataclass(frozen=True, slots=True)
class SchedulingSimulation:
    """The cluster on which the scheduling of pods is simulated, and the rules of it."""

    snapshot: Snapshot
    rules: SchedulerRules


def inject_new_pod(
    pod: SpreadPod,
    document: Document,
    spreads: Iterable[StoredWorkloadSpread],
    context: AdmissionContext,
    new_id: IdGenerator,
    simulation: SchedulingSimulation | None,
) -> InjectionResult:
    """Return the result for a new pod; ``spreads`` are those of its namespace.

    Without ``simulation``, scheduling is not simulated.
    """
    by_name = {each.spread.name: each for each in spreads}
    simulate = None if simulation is None else _subset_simulator(document, by_name, simulation)
    values = [each.spread for each in by_name.values()]
    admission = admit_creation(pod, values, context, new_id, simulate)
    if admission.spread is None:
        return InjectionResult(admission, document)
    return _inject_subset(admission, document, by_name[admission.spread])


def inject_placed_pod(
    pod: SpreadPod,
    document: Document,
    written: StoredWorkloadSpread,
    context: AdmissionContext,
    new_id: IdGenerator,
    simulation: SchedulingSimulation | None,
) -> InjectionResult:
    """Return the result for a new pod of a known WorkloadSpread; repeated with newer versions."""
    simulate = (
        None
        if simulation is None
        else _subset_simulator(document, {written.spread.name: written}, simulation)
    )
    admission = admit_placement(pod, written.spread, context, new_id, simulate)
    return _inject_subset(admission, document, written)


def simulated_fit_error(document: Document, simulation: SchedulingSimulation) -> str:
    """Return the fit error of a pod, "" if it fits some node.

    The result is also "" if no node is known, or if the pod cannot be decoded.
    """
    metadata = {**(document.get("metadata") or {}), "name": "trial"}
    try:
        pod = decode_undefaulted_pod(
            msgspec.json.encode({**document, "metadata": metadata}), simulation.rules.release
        )
    except ObjectError:
        return ""
    decision = decide_filter(pod, simulation.snapshot, simulation.rules)
    if decision.feasible or not simulation.snapshot.nodes:
        return ""
    reasons = Counter(each for why in decision.rejected.values() for each in why.reasons)
    told = fit_error(len(decision.rejected), decision.conflict, reasons, simulation.rules.release)
    return f"A pod of this shape fits no node: {told}"


def _inject_subset(
    admission: PodAdmission, document: Document, written: StoredWorkloadSpread
) -> InjectionResult:
    if admission.subset is None:
        return InjectionResult(admission, document)
    try:
        injected = inject(document, written, admission.subset, admission.uid)
    except PatchError as error:
        return InjectionResult(replace(admission, error=str(error)), document)
    return InjectionResult(admission, injected)


def _subset_simulator(
    document: Document,
    spreads: Mapping[str, StoredWorkloadSpread],
    simulation: SchedulingSimulation,
) -> Simulate:
    def simulate(spread: WorkloadSpread, subset: Subset) -> str:
        try:
            injected = inject(document, spreads[spread.name], subset.name)
        except PatchError:
            return ""  # reported when the subset is injected
        return simulated_fit_error(injected, simulation)

    return simulate
