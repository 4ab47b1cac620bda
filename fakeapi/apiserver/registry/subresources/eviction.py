"""The eviction subresource: a delete that respects the pod's disruption budget.

    pod pending, finished or being deleted         evicted without a check of budgets
    no budget matches                              evicted
    more than one budget matches                   500: not supported
    not ready, and the budget's policy allows it   evicted; the budget does not change
    the budget allows a disruption                 evicted; the budget records the pod and allows
                                                   one disruption less
    otherwise                                      429 with the reason

A budget whose latest generation its controller has not observed allows no eviction (429, retry
after 10 s). The pod gets the condition DisruptionTarget before it is deleted.

Source: pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from fakeapi.apiserver.kinds.builtin import EVICTION, POD_DISRUPTION_BUDGETS
from fakeapi.apiserver.objects.conditions import find_condition, set_condition
from fakeapi.apiserver.objects.label_selectors import compile_label_selector
from fakeapi.apiserver.registry.deletion import check_preconditions
from fakeapi.apiserver.registry.generic_registry import Registry, Target
from fakeapi.apiserver.registry.request_scope import RequestScope, created_status, read_admitted
from fakeapi.apiserver.store.object_store import Document, Entry
from fakeapi.apiserver.wire.errors import (
    Cause,
    StatusError,
    bad_request,
    forbidden,
    too_many_requests,
)
from fakeapi.apiserver.wire.http_messages import Response
from fakeapi.apiserver.wire.request_options import (
    DeleteOptions,
    check_eviction_options,
    parse_delete_options,
)
from policies.kubernetes.selectors import SelectorError

_BUDGET_FREE_PHASES: Final = ("Pending", "Succeeded", "Failed")
_MOST_DISRUPTED: Final = 2_000
_TOO_MANY: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL: Final = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support."
)
_DISRUPTED: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "lastProbeTime": None,
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


def evict(call: RequestScope) -> Response:
    """Evict the pod of the request path."""
    options = _read_options(call)
    registry = call.registry.dry_run() if options.dry_run else call.registry
    pod = registry.get(call.target).document()
    now = call.services.sources.timestamp(0)
    if not _can_ignore_budget(pod):
        budget = _budget(registry, call.target, pod)
        if budget is not None and not _can_evict_unhealthy(budget, pod):
            _decrement_budget(registry, call.target, budget, now)
    _set_disruption_target(registry, call.target, options, now)
    registry.delete(call.target, replace(options, version=None))
    return created_status()


def _read_options(call: RequestScope) -> DeleteOptions:
    eviction = read_admitted(call, EVICTION, ("policy/v1beta1",))
    metadata, requested = eviction["metadata"], eviction.get("deleteOptions") or {}
    if metadata.get("namespace", call.target.namespace) != call.target.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if metadata.get("name") != call.target.name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = parse_delete_options({}, requested)
    check_eviction_options(call.target.name, options)
    return options


def _can_ignore_budget(pod: Document) -> bool:
    finished = (pod.get("status") or {}).get("phase") in _BUDGET_FREE_PHASES
    return finished or "deletionTimestamp" in pod["metadata"]


def _budget(registry: Registry, target: Target, pod: Document) -> Entry | None:
    labels = pod["metadata"].get("labels") or {}
    budgets = registry.store.entries(POD_DISRUPTION_BUDGETS, target.namespace)
    matching = [entry for entry in budgets if _selects(entry.document(), labels)]
    if len(matching) > 1:
        raise StatusError(500, "", _SEVERAL)
    return matching[0] if matching else None


def _selects(budget: Document, labels: Mapping[str, str]) -> bool:
    selector = (budget.get("spec") or {}).get("selector")
    if not isinstance(selector, dict):
        return False
    try:
        return compile_label_selector(selector).matches(labels)
    except SelectorError:
        return False


def _can_evict_unhealthy(entry: Entry, pod: Document) -> bool:
    """Return whether the pod is not ready and its budget's policy allows eviction of such pods."""
    budget = entry.document()
    status = budget.get("status") or {}
    if find_condition(pod.get("status") or {}, "Ready").get("status") == "True":
        return False
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    desired = status.get("desiredHealthy", 0)
    return bool(status.get("currentHealthy", 0) >= desired > 0)


def _decrement_budget(registry: Registry, target: Target, entry: Entry, now: str) -> None:
    """Subtract one disruption from the budget. Raise StatusError (403, 429)."""
    budget = entry.document()
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    _check_budget(name, budget["metadata"], status)

    def charged(document: Document) -> Document:
        status = document["status"]
        status["disruptionsAllowed"] -= 1
        if not status["disruptionsAllowed"]:
            observed = status.get("observedGeneration", 0)
            set_condition(status, _NONE_LEFT | {"observedGeneration": observed}, now)
        status["disruptedPods"] = {**(status.get("disruptedPods") or {}), target.name: now}
        return document

    where = Target(POD_DISRUPTION_BUDGETS, target.namespace, name, "status")
    registry.change(where, charged)


_NONE_LEFT: Final = {
    "type": "DisruptionAllowed",
    "status": "False",
    "reason": "InsufficientPods",
    "message": "",
}


def _check_budget(name: str, metadata: Mapping[str, Any], status: Mapping[str, Any]) -> None:
    allowed = status.get("disruptionsAllowed", 0)
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        detail = f"The disruption budget {name} is still being processed by the server."
        raise too_many_requests(_TOO_MANY, [_cause(detail)], 10)
    if allowed < 0:
        raise _budget_error(name, _NEGATIVE, _NEGATIVE)
    if len(status.get("disruptedPods") or {}) > _MOST_DISRUPTED:
        raise _budget_error(
            name,
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            "too many pending evictions not confirmed by PDB controller",
        )
    if allowed == 0:
        raise too_many_requests(_TOO_MANY, [_cause(_denial_reason(name, status))])


_NEGATIVE: Final = "pdb disruptions allowed is negative"


def _denial_reason(name: str, status: Mapping[str, Any]) -> str:
    condition = find_condition(status, "DisruptionAllowed")
    reason = condition.get("message") if condition.get("status") == "False" else ""
    current, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    head = f"The disruption budget {name} does not allow evicting pods currently"
    if reason and condition.get("reason") == "SyncFailed":
        return f"{head} because it failed sync: {reason}"
    if current <= desired:
        return (
            f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        )
    return f"{head} ({condition.get('reason')}): {reason}" if reason else head


def _cause(message: str) -> Cause:
    return Cause("DisruptionBudget", message)


def _budget_error(name: str, detail: str, cause: str) -> StatusError:
    head = f"The disruption budget {name} does not allow evicting pods currently"
    refusal = forbidden(POD_DISRUPTION_BUDGETS, name, detail, [_cause(f"{head}: {cause}")])
    refusal.message = f'poddisruptionbudget.policy "{name}" is forbidden: {detail}'
    refusal.details = {**(refusal.details or {}), "kind": "poddisruptionbudget"}
    return refusal


def _set_disruption_target(
    registry: Registry, target: Target, options: DeleteOptions, now: str
) -> None:
    """Set the condition DisruptionTarget, if the pod meets the preconditions of the request."""

    def marked(pod: Document) -> Document:
        check_preconditions(target.kind, target.name, pod, options)
        set_condition(pod.setdefault("status", {}), _DISRUPTED, now)
        return pod

    registry.change(replace(target, subresource="status"), marked)
