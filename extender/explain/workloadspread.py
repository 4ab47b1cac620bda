"""A WorkloadSpread explained from files: what its controller and its webhooks would do now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypedDict
from uuid import NAMESPACE_OID, uuid5

import msgspec

from extender.explain.workloadspread_files import WorkloadSpreadFiles
from extender.kube.workloadspread.pod_injection import (
    Document,
    InjectionResult,
    SchedulingSimulation,
    inject_new_pod,
)
from extender.kube.workloadspread.spread_pods import decode_spread_pod
from extender.kube.workloadspread.spreads import StoredWorkloadSpread, encode_status
from policies.workloadspread.model import SECOND, SpreadPod, WorkloadSpread
from policies.workloadspread.pod_admission import AdmissionContext, admit_removal
from policies.workloadspread.quirks import SIMULATION_MISSING
from policies.workloadspread.reconcile import ReconcileResult, SpreadRules, reconcile


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
class SpreadQuery:
    """A pod, and the operation on it that is explained."""

    pod: SpreadPod
    document: Document
    operation: Operation


@dataclass(frozen=True, slots=True)
class SpreadExplanation:
    """The controller's result for a WorkloadSpread, and the answer of its webhooks."""

    written: StoredWorkloadSpread
    outcome: ReconcileResult
    injection: InjectionResult | None = None

    @property
    def spread(self) -> WorkloadSpread:
        """The WorkloadSpread."""
        return self.written.spread


def build_query(document: Document, namespace: str, operation: Operation) -> SpreadQuery:
    """Return the query about a pod; its namespace defaults to ``namespace``.

    Raise ObjectError.
    """
    metadata = document.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    placed = {**document, "metadata": {**named, "namespace": named.get("namespace") or namespace}}
    return SpreadQuery(decode_spread_pod(msgspec.json.encode(placed)), document, operation)


def explain_spread(
    files: WorkloadSpreadFiles,
    key: str,
    now_ns: int,
    rules: SpreadRules,
    query: SpreadQuery | None = None,
    simulation: Callable[[], SchedulingSimulation] | None = None,
) -> SpreadExplanation:
    """Reconcile the WorkloadSpread ``key`` once, and answer the query. Raise SpreadFileError.

    ``simulation`` returns the scheduling simulation for a new pod; it is called only if needed.
    """
    written = files.spread(key)
    spread = written.spread
    outcome = reconcile(
        spread, files.target(spread), files.grouping_context(written), now_ns, rules
    )
    if query is None:
        return SpreadExplanation(written, outcome)
    context = AdmissionContext(files.owners(query.pod), files.workload_of, now_ns, rules)
    return SpreadExplanation(written, outcome, _inject_pod(files, context, query, simulation))


def spread_document(explained: SpreadExplanation) -> SpreadDocument:
    """Return the JSON document of an explanation."""
    outcome = explained.outcome
    seconds = outcome.requeue_after_ns
    document: SpreadDocument = {
        "subsets": {
            pod.name: subset
            for subset, pods in sorted(outcome.groups.subsets.items())
            for pod in pods
        },
        "deletionCosts": {name: cost.value for name, cost in sorted(outcome.costs.items())},
        "status": encode_status(outcome.status),
        "delete": sorted(each.pod.name for each in outcome.pods_to_delete),
        "requeueAfterSeconds": None if seconds is None else _seconds(seconds),
        "events": [
            {"type": each.type, "reason": each.reason, "message": each.message}
            for each in outcome.events
        ],
        "failure": outcome.failure,
    }
    if explained.injection is not None:
        document["admitted"] = _admitted_document(explained.spread, explained.injection)
    return document


def _inject_pod(
    files: WorkloadSpreadFiles,
    context: AdmissionContext,
    query: SpreadQuery,
    simulation: Callable[[], SchedulingSimulation] | None,
) -> InjectionResult:
    pod = query.pod
    spreads = files.spreads_of(pod.namespace)
    if query.operation is not Operation.CREATE:
        values = [each.spread for each in spreads]
        return InjectionResult(admit_removal(pod, values, context), query.document)
    simulates = SIMULATION_MISSING not in context.rules.quirks and any(
        each.spread.strategy.simulates for each in spreads
    )
    simulated = simulation() if simulates and simulation is not None else None

    def new_id() -> str:
        return str(uuid5(NAMESPACE_OID, f"{pod.namespace} {context.now_ns}"))

    return inject_new_pod(pod, query.document, spreads, context, new_id, simulated)


def _admitted_document(spread: WorkloadSpread, injection: InjectionResult) -> AdmittedDocument:
    admission = injection.admission
    refused = admission.error != ""
    changed = admission.status if admission.spread == spread.name else None
    return {
        "allowed": not refused,
        "subset": None if refused else admission.subset,
        "pod": injection.pod,
        "status": encode_status(spread.status if changed is None else changed),
        "workloadspread": admission.spread,
        "message": admission.error,
        "passedOver": dict(admission.skipped),
        "deletionCost": admission.cost,
    }


def _seconds(duration_ns: int) -> float:
    whole, rest = divmod(duration_ns, SECOND)
    return whole + rest / SECOND if rest else whole
