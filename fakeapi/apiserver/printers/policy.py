"""Printers of policies: budgets, quotas, priorities, RBAC, certificates, admission, flow control.

Pod groups and workloads are printed here, too: they are of the group of PriorityClass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fakeapi.apiserver.printers.human_readable import (
    NONE,
    UNSET,
    Cell,
    RowPrinter,
    age,
    at,
    conditions,
    flag,
    human_duration,
    mapping,
    name,
    name_and_age,
    number,
    objects,
    selector,
    text,
)

Document = Mapping[str, Any]


def _disruption_budget(document: Document, now: int) -> list[Cell]:
    return [
        name(document),
        text(document, "spec", "minAvailable", absent="N/A"),
        text(document, "spec", "maxUnavailable", absent="N/A"),
        number(document, "status", "disruptionsAllowed"),
        age(document, now),
    ]


def _resource_quota(document: Document, now: int) -> list[Cell]:
    hard = mapping(document, "status", "hard")
    requests: list[str] = []
    limits: list[str] = []
    for resource in sorted(hard):
        used = text(document, "status", "used", resource, absent="0")
        cell = f"{resource}: {used}/{text(hard, resource)}"
        (limits if resource.startswith("limits.") else requests).append(cell)
    return [name(document), ", ".join(requests), ", ".join(limits), age(document, now)]


def _priority_class(document: Document, now: int) -> list[Cell]:
    return [
        name(document),
        number(document, "value"),
        flag(document, "globalDefault"),
        age(document, now),
        text(document, "preemptionPolicy"),
    ]


def _pod_group(document: Document, now: int) -> list[Cell]:
    present = conditions(document)
    status = "Pending"
    if scheduled := present.get("PodGroupInitiallyScheduled"):
        status = "Scheduled" if text(scheduled, "status") == "True" else "Unschedulable"
    if disrupted := present.get("DisruptionTarget"):
        status = text(disrupted, "reason")
    return [*_group_cells(document), status, age(document, now)]


def _composite_pod_group(document: Document, now: int) -> list[Cell]:
    return [*_group_cells(document), age(document, now)]


def _group_cells(document: Document) -> list[Cell]:
    gang = at(document, "spec", "schedulingPolicy", "gang")
    return [
        name(document),
        "Basic" if gang is None else "Gang",
        text(document, "spec", "workloadRef", "workloadName", absent=NONE),
    ]


def _binding(document: Document, now: int) -> list[Cell]:
    role = at(document, "roleRef")
    subjects = objects(document, "subjects")
    accounts = [
        f"{text(subject, 'namespace')}/{text(subject, 'name')}"
        for subject in subjects
        if text(subject, "kind") == "ServiceAccount"
    ]
    return [
        name(document),
        f"{text(role, 'kind')}/{text(role, 'name')}",
        age(document, now),
        ", ".join(text(s, "name") for s in subjects if text(s, "kind") == "User"),
        ", ".join(text(s, "name") for s in subjects if text(s, "kind") == "Group"),
        ", ".join(accounts),
    ]


def _signing_request(document: Document, now: int) -> list[Cell]:
    seconds = at(document, "spec", "expirationSeconds")
    return [
        name(document),
        age(document, now),
        text(document, "spec", "signerName", absent=NONE),
        text(document, "spec", "username"),
        NONE if seconds is None else human_duration(number(document, "spec", "expirationSeconds")),
        _signing_state(document),
    ]


def _signing_state(document: Document) -> str:
    present = conditions(document)
    decided = (type_ for type_ in ("Denied", "Approved") if type_ in present)
    state = next(decided, "Pending") + (",Failed" if "Failed" in present else "")
    return state + (",Issued" if text(document, "status", "certificate") else "")


def _trust_bundle(document: Document, _now: int) -> list[Cell]:
    return [name(document), text(document, "spec", "signerName", absent=NONE)]


def _webhooks(document: Document, now: int) -> list[Cell]:
    return [name(document), len(objects(document, "webhooks")), age(document, now)]


def _admission_policy(rules: str) -> Callable[[Document, int], list[Cell]]:
    def row(document: Document, now: int) -> list[Cell]:
        kind = at(document, "spec", "paramKind")
        cell = UNSET if kind is None else f"{text(kind, 'apiVersion')}/{text(kind, 'kind')}"
        return [name(document), len(objects(document, "spec", rules)), cell, age(document, now)]

    return row


def _admission_binding(document: Document, now: int) -> list[Cell]:
    reference = at(document, "spec", "paramRef")
    cell = UNSET
    if named := text(reference, "name"):
        cell = f"{text(reference, 'namespace', absent='*')}/{named}"
    elif at(reference, "selector") is not None:
        cell = selector(reference, "selector", absent="")
    return [name(document), text(document, "spec", "policyName"), cell, age(document, now)]


def _flow_schema(document: Document, now: int) -> list[Cell]:
    return [
        name(document),
        text(document, "spec", "priorityLevelConfiguration", "name"),
        number(document, "spec", "matchingPrecedence"),
        text(document, "spec", "distinguisherMethod", "type", absent=NONE),
        age(document, now),
        text(conditions(document).get("Dangling"), "status", absent="?"),
    ]


def _priority_level(document: Document, now: int) -> list[Cell]:
    limited = at(document, "spec", "limited")
    queuing = at(limited, "limitResponse", "queuing")
    lengths: list[Cell] = [NONE, NONE, NONE]
    if queuing is not None:
        lengths = [number(queuing, each) for each in ("queues", "handSize", "queueLengthLimit")]
    return [
        name(document),
        text(document, "spec", "type"),
        NONE if limited is None else number(limited, "nominalConcurrencyShares"),
        *lengths,
        age(document, now),
    ]


PRINTERS: Mapping[str, RowPrinter] = {
    "PodDisruptionBudget.policy": _disruption_budget,
    "ResourceQuota": _resource_quota,
    "PriorityClass.scheduling.k8s.io": _priority_class,
    "Workload.scheduling.k8s.io": name_and_age,
    "PodGroup.scheduling.k8s.io": _pod_group,
    "CompositePodGroup.scheduling.k8s.io": _composite_pod_group,
    "RoleBinding.rbac.authorization.k8s.io": _binding,
    "ClusterRoleBinding.rbac.authorization.k8s.io": _binding,
    "CertificateSigningRequest.certificates.k8s.io": _signing_request,
    "ClusterTrustBundle.certificates.k8s.io": _trust_bundle,
    "MutatingWebhookConfiguration.admissionregistration.k8s.io": _webhooks,
    "ValidatingWebhookConfiguration.admissionregistration.k8s.io": _webhooks,
    "MutatingAdmissionPolicy.admissionregistration.k8s.io": _admission_policy("mutations"),
    "ValidatingAdmissionPolicy.admissionregistration.k8s.io": _admission_policy("validations"),
    "MutatingAdmissionPolicyBinding.admissionregistration.k8s.io": _admission_binding,
    "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io": _admission_binding,
    "FlowSchema.flowcontrol.apiserver.k8s.io": _flow_schema,
    "PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io": _priority_level,
}
