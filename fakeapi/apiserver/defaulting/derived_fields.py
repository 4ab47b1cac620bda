"""Fields that the server derives or allocates, beyond defaults.

- pods: the QoS class, tolerations for nodes that are briefly not ready, and the pod's own labels in
  selectors with ``matchLabelKeys`` and ``mismatchLabelKeys``;
- services: cluster IPs and node ports (:mod:`fakeapi.apiserver.defaulting.service_allocator`);
- jobs: the selector and labels that bind their pods to the UID of the job;
- daemon sets: the annotation that counts generations of the template;
- custom resource definitions: the versions in which objects may be stored.

Finalizers and taints that only controllers remove again (``kubernetes.io/pvc-protection``,
``node.kubernetes.io/not-ready``) are left out on purpose.

Sources: pkg/registry/{core/pod,batch/job,apps/daemonset}, pkg/apis/core/v1/helper/qos,
plugin/pkg/admission/defaulttolerationseconds, v1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from fakeapi.apiserver.defaulting.service_allocator import allocate_create, allocate_update
from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.objects.conditions import set_condition
from fakeapi.apiserver.schema.crds.definition_status import (
    record_stored_version,
    set_initial_status,
)
from fakeapi.apiserver.store.dry_run import ObjectReader
from fakeapi.apiserver.store.object_store import Document
from policies.kubernetes.quantity import canonical

_TOLERATED_SECONDS: Final = 300
_COMPUTE_RESOURCES: Final = ("cpu", "memory")
_GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


def derive_create_fields(kind: ResourceInfo, document: Document, store: ObjectReader) -> None:
    """Set the derived fields of a new object that has its UID, defaults and first status.

    Raise StatusError if a Service requests an address that is not available.
    """
    complete = _ON_CREATE.get(kind.resource)
    if complete is not None:
        complete(document, store)


def derive_update_fields(
    kind: ResourceInfo, document: Document, old: Mapping[str, Any], store: ObjectReader
) -> None:
    """Keep allocated fields, and allocate those that an update needs; raise StatusError."""
    complete = _ON_UPDATE.get(kind.resource)
    if complete is not None:
        complete(document, old, store)


def _create_pod(pod: Document, _store: ObjectReader) -> None:
    pod["status"]["qosClass"] = qos_class(pod["spec"])
    _add_default_tolerations(pod)
    _merge_label_keys(pod)
    if pod["spec"].get("schedulingGates"):
        set_condition(pod["status"], _GATED, pod["metadata"]["creationTimestamp"])


def _merge_label_keys(pod: Document) -> None:
    """Add the pod's values of label keys to the selectors that have such keys.

    Later updates change neither. Source: mutatePodAffinity and mutateTopologySpreadConstraints in
    pkg/registry/core/pod/strategy.go.
    """
    labels = pod["metadata"].get("labels") or {}
    for term in _selecting_terms(pod["spec"]):
        selector = term.get("labelSelector")
        added = [
            {"key": key, "operator": operator, "values": [labels[key]]}
            for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
            for key in term.get(field) or ()
            if key in labels
        ]
        if selector is not None and added:
            selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *added]


def _selecting_terms(spec: Mapping[str, Any]) -> Iterator[Document]:
    """Yield the terms of affinity and anti-affinity, and the topology spread constraints."""
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        for preferred in terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield preferred.get("podAffinityTerm") or {}
        yield from terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    yield from spec.get("topologySpreadConstraints") or ()


def _update_pod(pod: Document, old: Mapping[str, Any], _store: ObjectReader) -> None:
    """Add again the tolerations that were added on create, if the update omits them."""
    if "tolerations" in (old.get("spec") or {}):
        _add_default_tolerations(pod)


def _add_default_tolerations(pod: Document) -> None:
    """Add tolerations for a not-ready or unreachable node, unless the pod has its own."""
    tolerations = pod["spec"].get("tolerations") or []
    for condition in ("not-ready", "unreachable"):
        key = f"node.kubernetes.io/{condition}"
        if not any(_tolerates(toleration, key) for toleration in tolerations):
            added = {"key": key, "operator": "Exists", "effect": "NoExecute"}
            tolerations = [*tolerations, {**added, "tolerationSeconds": _TOLERATED_SECONDS}]
    pod["spec"]["tolerations"] = tolerations


def _tolerates(toleration: Mapping[str, Any], key: str) -> bool:
    keyed = toleration.get("key", "") in ("", key)
    return keyed and toleration.get("effect", "") in ("", "NoExecute")


def qos_class(spec: Mapping[str, Any]) -> str:
    """Return a pod's QoS class.

    Guaranteed: every container limits CPU and memory, and its requests equal the limits.
    BestEffort: there are no requests and no limits.
    """
    requests: dict[str, set[str]] = {}
    guaranteed = True
    for container in _containers(spec):
        resources = container.get("resources") or {}
        requested, limits = (
            _compute_amounts(resources.get("requests")),
            _compute_amounts(resources.get("limits")),
        )
        guaranteed = (
            guaranteed
            and set(limits) == set(_COMPUTE_RESOURCES)
            and limits == {**limits, **requested}
        )
        for name in (*requested, *limits):
            requests.setdefault(name, set())
    if not requests:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _containers(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from spec.get("containers") or ()
    yield from spec.get("initContainers") or ()


def _compute_amounts(amounts: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the amounts of CPU and memory that are not zero."""
    found = {k: canonical(str(v)) for k, v in (amounts or {}).items() if k in _COMPUTE_RESOURCES}
    return {name: amount for name, amount in found.items() if amount != "0"}


def _create_job(job: Document, _store: ObjectReader) -> None:
    """Bind the pods of a job to its UID, unless the job has a manual selector."""
    spec, uid, name = job["spec"], job["metadata"]["uid"], job["metadata"]["name"]
    if spec.get("manualSelector"):
        return
    own = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }
    template = spec.setdefault("template", {}).setdefault("metadata", {})
    template["labels"] = {**(template.get("labels") or {}), **own}
    selector = spec.setdefault("selector", {})
    selector.setdefault("matchLabels", {})["batch.kubernetes.io/controller-uid"] = uid
    labels = job["metadata"].get("labels")
    job["metadata"]["labels"] = labels or dict(template["labels"])


def _update_job(job: Document, old: Mapping[str, Any], _store: ObjectReader) -> None:
    """Keep the selector if the client omits it."""
    spec, before = job.setdefault("spec", {}), old.get("spec") or {}
    if "selector" in before:
        spec.setdefault("selector", before["selector"])


def _create_daemon_set(daemon_set: Document, _store: ObjectReader) -> None:
    _set_template_generation(daemon_set, 1)


def _update_daemon_set(daemon_set: Document, old: Mapping[str, Any], _store: ObjectReader) -> None:
    before = (old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION, "1")
    changed = daemon_set["spec"].get("template") != (old.get("spec") or {}).get("template")
    _set_template_generation(daemon_set, int(before) + changed if before.isdecimal() else 1)


def _set_template_generation(daemon_set: Document, generation: int) -> None:
    annotations = daemon_set["metadata"].setdefault("annotations", {})
    annotations[_TEMPLATE_GENERATION] = str(generation)


def _create_definition(definition: Document, _store: ObjectReader) -> None:
    set_initial_status(definition)


def _update_definition(definition: Document, _old: Mapping[str, Any], _store: ObjectReader) -> None:
    record_stored_version(definition)


_DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"

_ON_CREATE: Final[Mapping[str, Callable[[Document, ObjectReader], None]]] = {
    _DEFINITIONS: _create_definition,
    "daemonsets.apps": _create_daemon_set,
    "jobs.batch": _create_job,
    "pods": _create_pod,
    "services": allocate_create,
}
_ON_UPDATE: Final[Mapping[str, Callable[[Document, Mapping[str, Any], ObjectReader], None]]] = {
    _DEFINITIONS: _update_definition,
    "daemonsets.apps": _update_daemon_set,
    "jobs.batch": _update_job,
    "pods": _update_pod,
    "services": allocate_update,
}
