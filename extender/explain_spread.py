"""A WorkloadSpread explained from files: what its controller and its webhooks would do now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypedDict
from uuid import NAMESPACE_OID, uuid5

import msgspec

from extender.kube.workloadspread.pods import decode_spread_pod
from extender.kube.workloadspread.spreads import WrittenSpread, encode_status
from extender.spreadanswers import Answer, Document, Trial, answer_creation
from extender.spreadfiles import SpreadFiles
from policies.spreading.admitting import Asking, admit_removal
from policies.spreading.model import SECOND, Spread, SpreadPod
from policies.spreading.quirks import SIMULATION_MISSING
from policies.spreading.reconciling import Outcome, SpreadRules, reconcile


class Operation(Enum):
    """The operation on a pod."""

    CREATE = "create"
    DELETE = "delete"
    EVICT = "evict"


class AdmittedDocument(TypedDict):
    """The result of admitting a pod: the mutated pod and the WorkloadSpread's status."""

    allowed: bool
    subset: str | None
    pod: Document
    status: dict[str, Any]
    workloadspread: str | None
    message: str
    passedOver: dict[str, str]
    deletionCost: int | None


class _SpreadDocument(TypedDict):
    subsets: dict[str, str]
    deletionCosts: dict[str, int]
    status: dict[str, Any]
    delete: list[str]
    requeueAfterSeconds: float | None
    events: list[dict[str, str]]
    failure: str


class SpreadDocument(_SpreadDocument, total=False):
    """The output of ``explain spread -o json``; ``admitted`` only if a pod is given."""

    admitted: AdmittedDocument


@dataclass(frozen=True, slots=True)
class Question:
    """A pod, and the operation on it that is explained."""

    pod: SpreadPod
    document: Document
    operation: Operation


@dataclass(frozen=True, slots=True)
class Explained:
    """The controller's result for a WorkloadSpread, and the answer of its webhooks."""

    written: WrittenSpread
    outcome: Outcome
    answer: Answer | None = None

    @property
    def spread(self) -> Spread:
        """The WorkloadSpread."""
        return self.written.spread


def ask(document: Document, namespace: str, operation: Operation) -> Question:
    """Return the query about a pod; its namespace defaults to ``namespace``.

    Raise ObjectError.
    """
    metadata = document.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    placed = {**document, "metadata": {**named, "namespace": named.get("namespace") or namespace}}
    return Question(decode_spread_pod(msgspec.json.encode(placed)), document, operation)


def explain_spread(
    files: SpreadFiles,
    key: str,
    now_ns: int,
    rules: SpreadRules,
    question: Question | None = None,
    trial: Callable[[], Trial] | None = None,
) -> Explained:
    """Reconcile the WorkloadSpread ``key`` once, and answer the query. Raise SpreadFileError.

    ``simulation`` returns the scheduling simulation for a new pod; it is called only if needed.
    """
    written = files.spread(key)
    spread = written.spread
    outcome = reconcile(spread, files.target(spread), files.surroundings(written), now_ns, rules)
    if question is None:
        return Explained(written, outcome)
    asking = Asking(files.owners(question.pod), files.workload_of, now_ns, rules)
    return Explained(written, outcome, _answer(files, asking, question, trial))


def spread_document(explained: Explained) -> SpreadDocument:
    """Return the JSON document of an explanation."""
    outcome = explained.outcome
    seconds = outcome.look_again_ns
    document: SpreadDocument = {
        "subsets": {
            pod.name: subset
            for subset, pods in sorted(outcome.groups.subsets.items())
            for pod in pods
        },
        "deletionCosts": {name: cost.value for name, cost in sorted(outcome.costs.items())},
        "status": encode_status(outcome.status),
        "delete": sorted(each.pod.name for each in outcome.doomed),
        "requeueAfterSeconds": None if seconds is None else _seconds(seconds),
        "events": [
            {"type": each.type, "reason": each.reason, "message": each.message}
            for each in outcome.events
        ],
        "failure": outcome.failure,
    }
    if explained.answer is not None:
        document["admitted"] = _admitted(explained.spread, explained.answer)
    return document


def _answer(
    files: SpreadFiles,
    asking: Asking,
    question: Question,
    trial: Callable[[], Trial] | None,
) -> Answer:
    pod = question.pod
    spreads = files.spreads_of(pod.namespace)
    if question.operation is not Operation.CREATE:
        values = [each.spread for each in spreads]
        return Answer(admit_removal(pod, values, asking), question.document)
    tries = SIMULATION_MISSING not in asking.rules.quirks and any(
        each.spread.strategy.simulates for each in spreads
    )
    tried = trial() if tries and trial is not None else None

    def new_id() -> str:
        return str(uuid5(NAMESPACE_OID, f"{pod.namespace} {asking.now_ns}"))

    return answer_creation(pod, question.document, spreads, asking, new_id, tried)


def _admitted(spread: Spread, answer: Answer) -> AdmittedDocument:
    admission = answer.admission
    refused = admission.refusal != ""
    changed = admission.status if admission.spread == spread.name else None
    return {
        "allowed": not refused,
        "subset": None if refused else admission.subset,
        "pod": answer.pod,
        "status": encode_status(spread.status if changed is None else changed),
        "workloadspread": admission.spread,
        "message": admission.refusal,
        "passedOver": dict(admission.passed),
        "deletionCost": admission.cost,
    }


def _seconds(duration_ns: int) -> float:
    whole, rest = divmod(duration_ns, SECOND)
    return whole + rest / SECOND if rest else whole
