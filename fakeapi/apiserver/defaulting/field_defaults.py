"""Defaulting: set the fields that a client omitted, as upstream does.

For each kind a *field walk* is built once from its structural type: the places of a document that
have defaults. Constants come from a table (:mod:`fakeapi.apiserver.kinds.default_rules`); defaults
that depend on other fields are functions, listed by definition. A field walk contains only paths
that lead to a default, so other parts of a document are not visited.

Constants are applied before functions, and an object before its fields, so defaults apply to
objects that defaults have added:

    strategy: absent  →  {}  →  {type: RollingUpdate, rollingUpdate: {}}  →  {…, maxSurge: 25%, …}

Source: pkg/apis/*/v1/defaults.go and the generated zz_generated.defaults.go, v1.37.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from fakeapi.apiserver.defaulting.field_walk import FieldWalk, build_field_walk
from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.default_rules import DEFAULTS, SCALE_DOWN, SCALE_UP, VALUE_FIELDS
from fakeapi.apiserver.schema.crds.custom_resource_strategy import compiled_schema
from fakeapi.apiserver.store.object_store import Document

_RBAC: Final = "rbac.authorization.k8s.io"

Rule = Callable[[dict[str, Any]], None]


_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


def apply_defaults(
    kind: ResourceInfo, document: Document, previous: Mapping[str, Any] = _NOTHING
) -> None:
    """Set the defaults of missing fields, in place.

    Subobjects that ``document`` shares with ``previous``, which has its defaults, are skipped.
    """
    if kind.custom is not None:
        compiled_schema(kind.custom).apply_defaults(document)
        return
    _apply_rules(_field_walk(kind), document, previous)


def _apply_rules(plan: FieldWalk[Rule], target: dict[str, Any], before: Mapping[str, Any]) -> None:
    for rule in plan.rules:
        rule(target)
    for name, below in plan.objects:
        found, previous = target.get(name), before.get(name)
        if isinstance(found, dict) and found is not previous:
            _apply_rules(below, found, previous if isinstance(previous, dict) else _NOTHING)
    for name, below in plan.lists:
        found = target.get(name) or ()
        for element in () if found is before.get(name) else found:
            if isinstance(element, dict):
                _apply_rules(below, element, _NOTHING)


@cache
def _field_walk(kind: ResourceInfo) -> FieldWalk[Rule]:
    return build_field_walk(kind, _rules_at)


def _rules_at(definition: str) -> list[Rule]:
    constants, values = DEFAULTS.get(definition), VALUE_FIELDS.get(definition, ())
    rules = [_constant_rule(constants, values)] if constants else []
    return [*rules, *_RULES.get(definition, ())]


def _constant_rule(constants: Mapping[str, Any], values: tuple[str, ...]) -> Rule:
    """Return the rule that sets constants; of ``values`` a zero is a missing field, too."""

    def fill(target: dict[str, Any]) -> None:
        for name, value in constants.items():
            if name not in target or (name in values and not target[name]):
                target[name] = deepcopy(value) if isinstance(value, dict | list) else value

    return fill


def _object_rule(name: str, value: str, missing: str, content: Mapping[str, Any]) -> Rule:
    """Return a rule: if a field has a value, another field that is missing becomes an object."""

    def rule(target: dict[str, Any]) -> None:
        if target.get(name) == value and missing not in target:
            target[missing] = deepcopy(dict(content))

    return rule


def _pull_policy(container: dict[str, Any]) -> None:
    """Set ``Always`` for the tag ``latest``, which an image without tag and digest has, too."""
    image = str(container.get("image", ""))
    tag = image.rpartition("/")[2].partition(":")[2]
    untagged = not tag or tag == "latest"
    pinned = "@" in image
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = "Always" if untagged and not pinned else "IfNotPresent"


def _request_limits(container: dict[str, Any]) -> None:
    """Set missing requests from limits; upstream does this for pods, not for templates."""
    resources = container["resources"]
    limits = resources.get("limits")
    if limits:
        resources["requests"] = {**limits, **resources.get("requests", {})}


def _pod(pod: dict[str, Any]) -> None:
    spec = pod.setdefault("spec", {})
    spec.setdefault("enableServiceLinks", True)
    for name in ("containers", "initContainers"):
        for container in spec.get(name) or ():
            container.setdefault("resources", {})
            _request_limits(container)


def _pod_spec(spec: dict[str, Any]) -> None:
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    if spec.get("hostNetwork"):
        for name in ("containers", "initContainers"):
            for container in spec.get(name) or ():
                for port in container.get("ports") or ():
                    port["hostPort"] = port.get("hostPort") or port.get("containerPort")


def _volume(volume: dict[str, Any]) -> None:
    if len(volume) == 1:  # a name and no source
        volume["emptyDir"] = {}


def _template_labels(workload: dict[str, Any]) -> None:
    """Set missing labels and selector of a replication controller from its template."""
    spec = workload.get("spec") or {}
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        spec.setdefault("selector", dict(labels))
        workload["metadata"].setdefault("labels", dict(labels))


def _job(job: dict[str, Any]) -> None:
    """Set the defaults of a job, but not of the job template of a cron job."""
    spec = job.setdefault("spec", {})
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    per_index = "backoffLimitPerIndex" in spec
    spec.setdefault("backoffLimit", 2**31 - 1 if per_index else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    failed = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    spec.setdefault("podReplacementPolicy", failed)


def _service_spec(spec: dict[str, Any]) -> None:
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    if spec["sessionAffinity"] == "ClientIP":
        client = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
        client.setdefault("timeoutSeconds", 10_800)
    for port in spec.get("ports") or ():
        port["targetPort"] = port.get("targetPort") or port.get("port")
    exposed = spec["type"] == "ClusterIP" and spec.get("externalIPs")
    if exposed or spec["type"] in ("NodePort", "LoadBalancer"):
        spec["externalTrafficPolicy"] = spec.get("externalTrafficPolicy") or "Cluster"
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")


def _secret(secret: dict[str, Any]) -> None:
    plain = secret.pop("stringData", None)
    if plain:
        encoded = {name: _base64(text) for name, text in plain.items()}
        secret["data"] = {**(secret.get("data") or {}), **encoded}


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()


def _limit_range_item(item: dict[str, Any]) -> None:
    """Default a container's limit to the maximum, and its request to the limit or the minimum."""
    if item.get("type") != "Container":
        return
    limits = {**item.get("max", {}), **item.get("default", {})}
    requests = {**item.get("min", {}), **limits, **item.get("defaultRequest", {})}
    if limits:
        item["default"] = limits
    if requests:
        item["defaultRequest"] = requests


def _node_status(status: dict[str, Any]) -> None:
    if status.get("capacity"):
        status.setdefault("allocatable", dict(status["capacity"]))


def _claim_template(workload: dict[str, Any]) -> None:
    for claim in (workload.get("spec") or {}).get("volumeClaimTemplates") or ():
        claim.update({"kind": "PersistentVolumeClaim", "apiVersion": "v1"})
        claim.setdefault("status", {}).setdefault("phase", "Pending")


def _autoscaler_spec(spec: dict[str, Any]) -> None:
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _autoscaler_behavior(behavior: dict[str, Any]) -> None:
    for name, rules in (("scaleUp", SCALE_UP), ("scaleDown", SCALE_DOWN)):
        behavior[name] = {**deepcopy(dict(rules)), **behavior[name]}


def _policy_types(spec: dict[str, Any]) -> None:
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _role_ref(binding: dict[str, Any]) -> None:
    reference = binding.get("roleRef")
    if isinstance(reference, dict) and not reference.get("apiGroup"):
        reference["apiGroup"] = _RBAC


def _subject(subject: dict[str, Any]) -> None:
    if subject.get("kind") in ("User", "Group"):
        subject["apiGroup"] = subject.get("apiGroup") or _RBAC


def _device_request(request: dict[str, Any]) -> None:
    if request["allocationMode"] == "ExactCount":
        request["count"] = request.get("count") or 1


def _definition_spec(spec: dict[str, Any]) -> None:
    """Set missing names of a definition from its kind, and the conversion strategy ``None``."""
    names = spec.get("names")
    if isinstance(names, dict):
        kind = names.get("kind") or ""
        names["singular"] = names.get("singular") or kind.lower()
        if kind and not names.get("listKind"):
            names["listKind"] = f"{kind}List"
    spec.setdefault("conversion", {"strategy": "None"})


def _service_reference(reference: dict[str, Any]) -> None:
    reference.setdefault("port", 443)


_AGGREGATOR: Final = "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1"
_EXTENSIONS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"

_RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    f"{_EXTENSIONS}.CustomResourceDefinitionSpec": (_definition_spec,),
    f"{_EXTENSIONS}.ServiceReference": (_service_reference,),
    f"{_AGGREGATOR}.ServiceReference": (_service_reference,),
    "apps.v1.DaemonSetUpdateStrategy": (
        _object_rule("type", "RollingUpdate", "rollingUpdate", {}),
    ),
    "apps.v1.DeploymentStrategy": (_object_rule("type", "RollingUpdate", "rollingUpdate", {}),),
    "apps.v1.StatefulSet": (_claim_template,),
    "apps.v1.StatefulSetUpdateStrategy": (
        _object_rule("type", "RollingUpdate", "rollingUpdate", {}),
    ),
    "autoscaling.v2.HorizontalPodAutoscalerBehavior": (_autoscaler_behavior,),
    "autoscaling.v2.HorizontalPodAutoscalerSpec": (_autoscaler_spec,),
    "batch.v1.Job": (_job,),
    "core.v1.Container": (_pull_policy,),
    "core.v1.EphemeralContainer": (_pull_policy,),
    "core.v1.LimitRangeItem": (_limit_range_item,),
    "core.v1.NodeStatus": (_node_status,),
    "core.v1.Pod": (_pod,),
    "core.v1.PodSpec": (_pod_spec,),
    "core.v1.ReplicationController": (_template_labels,),
    "core.v1.Secret": (_secret,),
    "core.v1.ServiceSpec": (_service_spec,),
    "core.v1.Volume": (_volume,),
    "networking.v1.NetworkPolicySpec": (_policy_types,),
    "rbac.v1.ClusterRoleBinding": (_role_ref,),
    "rbac.v1.RoleBinding": (_role_ref,),
    "rbac.v1.Subject": (_subject,),
    "resource.v1.DeviceSubRequest": (_device_request,),
    "resource.v1.ExactDeviceRequest": (_device_request,),
}
