"""The binding subresource: a scheduler assigns a pod to a node.

A pod can be bound only once. A binding sets the condition PodScheduled to true and clears
nominatedNodeName. Labels and annotations of the Binding override those of the pod, and the node's
zone and region override those labels. The Binding's uid and resourceVersion, if set, must match the
pod.

Source: pkg/registry/core/pod/storage/storage.go (BindingREST).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from fakeapi.apiserver.admission.builtin_plugins import topology_labels
from fakeapi.apiserver.kinds.builtin import BINDINGS, PODS
from fakeapi.apiserver.objects.conditions import set_condition
from fakeapi.apiserver.registry.deletion import precondition_failed
from fakeapi.apiserver.registry.generic_registry import Target
from fakeapi.apiserver.registry.request_scope import RequestScope, created_status, read_admitted
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import StatusError, bad_request, storage_conflict
from fakeapi.apiserver.wire.http_messages import Response
from policies.kubernetes.name_validation import invalid_subdomain

_SCHEDULED: Final = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}


def bind(call: RequestScope) -> Response:
    """Bind the pod of the request path."""
    binding = read_admitted(call, BINDINGS)
    metadata = _check(call, binding)
    if metadata.get("name") != call.target.name:
        raise bad_request("name in URL does not match name in Binding object")
    return _bind(call, call.target, binding)


def bind_named_in_body(call: RequestScope) -> Response:
    """Bind the pod with the Binding's name (``POST /bindings``)."""
    binding = read_admitted(call, BINDINGS)
    name = _check(call, binding).get("name", "")
    return _bind(call, replace(call.target, kind=PODS, name=name), binding)


def _check(call: RequestScope, binding: Document) -> dict[str, Any]:
    metadata: dict[str, Any] = binding["metadata"]
    if metadata.get("namespace", call.target.namespace) != call.target.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return metadata


def _bind(call: RequestScope, target: Target, binding: Document) -> Response:
    node = _node(binding)
    sources = call.services.sources

    def bound(pod: Document) -> Document:
        _check_pod(target, pod, binding["metadata"])
        pod.setdefault("spec", {})["nodeName"] = node
        status = pod.setdefault("status", {})
        status.pop("nominatedNodeName", None)
        set_condition(status, _SCHEDULED, sources.timestamp(0))
        metadata = binding["metadata"]
        labels = {**(metadata.get("labels") or {}), **topology_labels(call.registry.store, node)}
        for member, added in (("annotations", metadata.get("annotations")), ("labels", labels)):
            if added:
                pod["metadata"][member] = {**pod["metadata"].get(member, {}), **added}
        return pod

    call.registry.change(replace(target, subresource="binding"), bound)
    return created_status()


def _node(binding: Document) -> str:
    """Return the node's name. Raise StatusError (500, as upstream) if the target is invalid."""
    target = binding.get("target") or {}
    kind, name = target.get("kind") or "Node", target.get("name") or ""
    faults = []
    if kind != "Node":
        faults.append(
            f'target.kind: Unsupported value: "{kind}": supported values: "Node", "<empty>"'
        )
    if not name:
        faults.append("target.name: Required value")
    elif kind == "Node" and (wrong := invalid_subdomain(name)):
        faults.append(f'target.name: Invalid value: "{name}": {wrong}')
    if faults:
        raise StatusError(500, "", faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")
    return str(name)


def _check_pod(target: Target, pod: Document, expected: Mapping[str, Any]) -> None:
    metadata, spec, name = pod["metadata"], pod.get("spec") or {}, target.name
    for label, key in (("UID", "uid"), ("ResourceVersion", "resourceVersion")):
        if expected.get(key) and expected[key] != metadata[key]:
            detail = precondition_failed(label, expected[key], metadata[key])
            raise storage_conflict(PODS, target.namespace, name, detail)
    if "deletionTimestamp" in metadata:
        raise _unbindable(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _unbindable(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _unbindable(name, f"pod {name} has non-empty .spec.schedulingGates")


def _unbindable(name: str, detail: str) -> StatusError:
    message = f'Operation cannot be fulfilled on pods/binding "{name}": {detail}'
    return StatusError(409, "Conflict", message, {"name": name, "kind": "pods/binding"})
