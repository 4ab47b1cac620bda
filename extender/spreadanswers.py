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
from extender.kube.pods import decode_written_pod
from extender.kube.strategic import PatchError
from extender.kube.workloadspread.injecting import inject
from extender.kube.workloadspread.spreads import WrittenSpread
from policies import decide_filter
from policies.model import Snapshot
from policies.rules import Rules
from policies.spreading.admitting import Admission, Asking, NewId, admit_creation, place
from policies.spreading.choosing import Simulate
from policies.spreading.model import Spread, SpreadPod, Subset
from policies.wording import unfit

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """The admission of a pod, and the pod, which is changed only if a subset is injected.

    A pod into which its subset cannot be injected is refused, but its admission is still written.
    """

    admission: Admission
    pod: Document


@dataclass(frozen=True, slots=True)
class Trial:
    """The cluster on which the scheduling of pods is simulated, and the rules of it."""

    snapshot: Snapshot
    rules: Rules


def answer_creation(
    pod: SpreadPod,
    document: Document,
    spreads: Iterable[WrittenSpread],
    asking: Asking,
    new_id: NewId,
    trial: Trial | None,
) -> Answer:
    """Return the result for a new pod; ``spreads`` are those of its namespace.

    Without ``simulation``, scheduling is not simulated.
    """
    by_name = {each.spread.name: each for each in spreads}
    simulate = None if trial is None else _simulation(document, by_name, trial)
    values = [each.spread for each in by_name.values()]
    admission = admit_creation(pod, values, asking, new_id, simulate)
    if admission.spread is None:
        return Answer(admission, document)
    return _put_into(admission, document, by_name[admission.spread])


def answer_placement(
    pod: SpreadPod,
    document: Document,
    written: WrittenSpread,
    asking: Asking,
    new_id: NewId,
    trial: Trial | None,
) -> Answer:
    """Return the result for a new pod of a known WorkloadSpread; repeated with newer versions."""
    simulate = (
        None if trial is None else _simulation(document, {written.spread.name: written}, trial)
    )
    admission = place(pod, written.spread, asking, new_id, simulate)
    return _put_into(admission, document, written)


def misfit(document: Document, trial: Trial) -> str:
    """Return the fit error of a pod, "" if it fits some node.

    The result is also "" if no node is known, or if the pod cannot be decoded.
    """
    metadata = {**(document.get("metadata") or {}), "name": "trial"}
    try:
        pod = decode_written_pod(
            msgspec.json.encode({**document, "metadata": metadata}), trial.rules.release
        )
    except ObjectError:
        return ""
    decision = decide_filter(pod, trial.snapshot, trial.rules)
    if decision.feasible or not trial.snapshot.nodes:
        return ""
    reasons = Counter(each for why in decision.rejected.values() for each in why.reasons)
    told = unfit(len(decision.rejected), decision.conflict, reasons, trial.rules.release)
    return f"A pod of this shape fits no node: {told}"


def _put_into(admission: Admission, document: Document, written: WrittenSpread) -> Answer:
    if admission.subset is None:
        return Answer(admission, document)
    try:
        injected = inject(document, written, admission.subset, admission.uid)
    except PatchError as error:
        return Answer(replace(admission, refusal=str(error)), document)
    return Answer(admission, injected)


def _simulation(document: Document, spreads: Mapping[str, WrittenSpread], trial: Trial) -> Simulate:
    def simulate(spread: Spread, subset: Subset) -> str:
        try:
            injected = inject(document, spreads[spread.name], subset.name)
        except PatchError:
            return ""  # reported when the subset is injected
        return misfit(injected, trial)

    return simulate
