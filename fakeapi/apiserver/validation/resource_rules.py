"""Validation rules on whole documents, by resource.

``NAME_RULES`` are rules of names and come first; ``RESOURCE_RULES`` are the others.
``STATUS_RULES`` are rules of an update of the status, from the new and the old object. Each rule
yields errors in upstream's words.

Source: pkg/apis/*/validation/validation.go, v1.37.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from fakeapi.apiserver.schema.crds.definition_validation import definition_errors, name_errors
from fakeapi.apiserver.validation.admission_policies import (
    mutating_binding_errors,
    mutating_policy_errors,
    validating_binding_errors,
    validating_policy_errors,
)
from fakeapi.apiserver.validation.certificate_requests import (
    certificate_errors,
    certificate_request_errors,
)
from fakeapi.apiserver.validation.devices import claim_status_errors
from fakeapi.apiserver.validation.pod_groups import pod_group_status_errors, workload_errors
from fakeapi.apiserver.validation.quotas import (
    limit_range_errors,
    quota_errors,
    quota_status_errors,
)
from fakeapi.apiserver.validation.webhook_configurations import webhook_configuration_errors
from fakeapi.apiserver.wire.errors import (
    Cause,
    invalid_value,
    required,
    too_long,
    unsupported_value,
    value_not_found,
)
from policies.kubernetes.name_validation import (
    invalid_config_key,
    invalid_label_key,
)
from policies.kubernetes.selectors import LabelSelector, Requirement

Object = Mapping[str, Any]
Rule = Callable[[Object, str], Iterator[Cause]]

MAX_DATA_BYTES: Final = 1024**2
_MISMATCH: Final = "`selector` does not match template `labels`"
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_RESTARTS: Final = ("Always", "OnFailure", "Never")


def _section(document: Object, *path: str) -> Mapping[str, Any]:
    found: Any = document
    for step in path:
        found = found.get(step) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _pod(pod: Object, _path: str) -> Iterator[Cause]:
    policy = _section(pod, "spec").get("restartPolicy")
    if policy not in _RESTARTS:
        yield unsupported_value("spec.restartPolicy", policy, _RESTARTS)


def _volume_mounts_rule(*path: str) -> Rule:
    """Return the rule that containers mount only volumes of their pod."""

    def rule(document: Object, _path: str) -> Iterator[Cause]:
        spec = _section(document, *path)
        volumes = {volume.get("name") for volume in spec.get("volumes") or ()}
        for group in ("initContainers", "containers"):
            for number, container in enumerate(spec.get(group) or ()):
                for index, mount in enumerate(container.get("volumeMounts") or ()):
                    name = mount.get("name")
                    if name and name not in volumes:
                        where = f"{'.'.join(path)}.{group}[{number}].volumeMounts[{index}].name"
                        yield value_not_found(where, name)

    return rule


def _workload_rule(noun: str, *, selector_required: bool) -> Rule:
    """Return the rule of a workload: the selector matches the template, and pods always restart."""

    def rule(document: Object, _path: str) -> Iterator[Cause]:
        spec = _section(document, "spec")
        selector = spec.get("selector")
        if selector is None and selector_required:
            yield required("spec.selector")
        elif selector == {}:
            yield invalid_value("spec.selector", {}, f"empty selector is invalid for {noun}")
        wrong = list(_operator_errors(selector or {}))
        yield from wrong
        labels = _section(spec, "template", "metadata").get("labels")
        if wrong:
            yield invalid_value("spec.selector", selector, "invalid label selector")
        elif selector != {} and not (selector and _selects(selector, labels or {})):
            yield invalid_value("spec.template.metadata.labels", labels, _MISMATCH)
        yield from _restart_policy_errors(spec)

    return rule


def _restart_policy_errors(spec: Object) -> Iterator[Cause]:
    policy = _section(spec, "template", "spec").get("restartPolicy", "Always")
    if policy != "Always":
        yield unsupported_value("spec.template.spec.restartPolicy", policy, ("Always",))


def _operator_errors(selector: Object) -> Iterator[Cause]:
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        operator = requirement.get("operator", "")
        if operator not in _OPERATORS:
            where = f"spec.selector.matchExpressions[{index}].operator"
            yield invalid_value(where, operator, "not a valid selector operator")


def _selects(selector: Object, labels: Mapping[str, str]) -> bool:
    requirements = [
        Requirement(name, "In", (value,))
        for name, value in (selector.get("matchLabels") or {}).items()
    ]
    requirements += [
        Requirement(e.get("key", ""), e["operator"], tuple(e.get("values") or ()))
        for e in selector.get("matchExpressions") or ()
    ]
    return LabelSelector(tuple(requirements)).matches(labels)


def _replication_controller(controller: Object, _path: str) -> Iterator[Cause]:
    spec = _section(controller, "spec")
    selector = spec.get("selector") or {}
    if not selector:
        yield required("spec.selector")
    if "template" not in spec:
        yield required("spec.template")
        return
    labels = _section(spec, "template", "metadata").get("labels") or {}
    if not selector.items() <= labels.items():
        yield invalid_value("spec.template.metadata.labels", labels, _MISMATCH)
    yield from _restart_policy_errors(spec)


def _job_template_rule(*path: str) -> Rule:
    """Return the rule of a job's template: the restart policy of its pods is not ``Always``."""

    def rule(document: Object, _path: str) -> Iterator[Cause]:
        spec = _section(document, *path)
        where = ".".join((*path, "template.spec"))
        pod = _section(spec, "template", "spec")
        if not pod.get("containers") and "spec" not in _section(spec, "template"):
            yield required(f"{where}.containers")
        if pod.get("restartPolicy", "Always") == "Always":
            yield required(f"{where}.restartPolicy", 'valid values: "OnFailure", "Never"')

    return rule


def _schedule(cron_job: Object, _path: str) -> Iterator[Cause]:
    schedule = _section(cron_job, "spec").get("schedule", "")
    fields = schedule.split()
    if not schedule:
        yield required("spec.schedule")
    elif not schedule.startswith("@") and len(fields) != 5:
        rule = f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
        yield invalid_value("spec.schedule", schedule, rule)


def _data(document: Object, _path: str) -> Iterator[Cause]:
    binary = document.get("binaryData") or {}
    for name in ("data", "binaryData"):
        for key in document.get(name) or {}:
            wrong = invalid_config_key(key)
            if wrong:
                yield invalid_value(f"{name}[{key}]", key, wrong)
            if name == "data" and key in binary:
                yield invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData")


def _config_map(config_map: Object, path: str) -> Iterator[Cause]:
    yield from _data(config_map, path)
    texts = sum(len((value or "").encode()) for value in (config_map.get("data") or {}).values())
    if texts + _decoded_bytes(config_map.get("binaryData")) > MAX_DATA_BYTES:
        yield too_long("[]", MAX_DATA_BYTES)  # upstream's name of the whole object


def _decoded_bytes(values: Mapping[str, str] | None) -> int:
    return sum(len(b64decode(value or "")) for value in (values or {}).values())


def _secret(secret: Object, path: str) -> Iterator[Cause]:
    yield from _data(secret, path)
    if _decoded_bytes(secret.get("data")) > MAX_DATA_BYTES:
        yield too_long("data", MAX_DATA_BYTES)
    for key in _SECRET_KEYS.get(secret.get("type", ""), ()):
        if key not in (secret.get("data") or {}):
            yield required(f"data[{key}]")


_SECRET_KEYS: Final = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}


def _node(node: Object, _path: str) -> Iterator[Cause]:
    for index, taint in enumerate(_section(node, "spec").get("taints") or ()):
        where = f"metadata.taints[{index}]"
        wrong = invalid_label_key(taint.get("key", ""))
        if wrong:
            yield invalid_value(f"{where}.key", taint.get("key", ""), wrong)
        if taint.get("effect") not in _EFFECTS:
            yield unsupported_value(f"{where}.effect", taint.get("effect", ""), _EFFECTS)


_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def _role(role: Object, _path: str) -> Iterator[Cause]:
    for path, rule in _policy_rules(role):
        if paths := rule.get("nonResourceURLs"):
            detail = "namespaced rules cannot apply to non-resource URLs"
            yield invalid_value(f"{path}.nonResourceURLs", paths, detail)
        yield from _policy_rule_errors(rule, path)


def _cluster_role(role: Object, _path: str) -> Iterator[Cause]:
    for path, rule in _policy_rules(role):
        yield from _policy_rule_errors(rule, path)
    selectors = _section(role, "aggregationRule").get("clusterRoleSelectors")
    if role.get("aggregationRule") is not None and not selectors:
        detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        yield required("aggregationRule.clusterRoleSelectors", detail)


def _policy_rules(role: Object) -> Iterator[tuple[str, Object]]:
    for index, rule in enumerate(role.get("rules") or ()):
        yield f"rules[{index}]", rule


def _policy_rule_errors(rule: Object, path: str) -> Iterator[Cause]:
    paths = rule.get("nonResourceURLs")
    if paths and any(map(rule.get, ("apiGroups", "resources", "resourceNames"))):
        detail = "rules cannot apply to both regular resources and non-resource URLs"
        yield invalid_value(f"{path}.nonResourceURLs", paths, detail)
    for name, noun in (("apiGroups", "api group"), ("resources", "resource")):
        if not paths and not rule.get(name):
            yield required(f"{path}.{name}", f"resource rules must supply at least one {noun}")
    if not rule.get("verbs"):
        yield required(f"{path}.verbs")


def _role_binding_rule(*kinds: str) -> Rule:
    def rule(binding: Object, _path: str) -> Iterator[Cause]:
        reference = _section(binding, "roleRef")
        if reference.get("kind") not in kinds:
            yield unsupported_value("roleRef.kind", reference.get("kind", ""), kinds)
        if not reference.get("name"):
            yield required("roleRef.name")

    return rule


def _claim(claim: Object, _path: str) -> Iterator[Cause]:
    spec = _section(claim, "spec")
    modes = spec.get("accessModes") or ()
    if not modes:
        yield required("spec.accessModes", "at least 1 access mode is required")
    yield from (unsupported_value("spec.accessModes", m, _MODES) for m in modes if m not in _MODES)
    if not _section(spec, "resources", "requests").get("storage"):
        yield required("spec.resources[storage]")


_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def _ingress(ingress: Object, _path: str) -> Iterator[Cause]:
    spec = _section(ingress, "spec")
    if not spec.get("rules") and not spec.get("defaultBackend"):
        rule = "either `defaultBackend` or `rules` must be specified"
        yield invalid_value("spec", ingress.get("spec"), rule)


def _lease(lease: Object, _path: str) -> Iterator[Cause]:
    seconds = _section(lease, "spec").get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        yield invalid_value("spec.leaseDurationSeconds", seconds, "must be greater than 0")


def _autoscaler(autoscaler: Object, _path: str) -> Iterator[Cause]:
    spec = _section(autoscaler, "spec")
    most, target = spec.get("maxReplicas", 0), _section(spec, "scaleTargetRef")
    if most < spec.get("minReplicas", 1):
        rule = "must be greater than or equal to `minReplicas`"
        yield invalid_value("spec.maxReplicas", most, rule)
    for name in ("kind", "name"):
        if not target.get(name):
            yield required(f"spec.scaleTargetRef.{name}")
    if not target.get("apiVersion"):
        rule = "apiVersion must specify API group"
        yield invalid_value("spec.scaleTargetRef.apiVersion", "", rule)
    if not most:
        yield required("spec.maxReplicas")


_TEMPLATE_MOUNTS: Final = _volume_mounts_rule("spec", "template", "spec")
_CERTIFICATE_REQUESTS: Final = "certificatesigningrequests.certificates.k8s.io"
_DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"

NAME_RULES: Final[Mapping[str, Rule]] = {_DEFINITIONS: name_errors}
RESOURCE_RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    _CERTIFICATE_REQUESTS: (certificate_request_errors,),
    "clusterrolebindings.rbac.authorization.k8s.io": (_role_binding_rule("ClusterRole"),),
    "clusterroles.rbac.authorization.k8s.io": (_cluster_role,),
    "configmaps": (_config_map,),
    _DEFINITIONS: (definition_errors,),
    "cronjobs.batch": (_job_template_rule("spec", "jobTemplate", "spec"), _schedule),
    "daemonsets.apps": (_workload_rule("daemonset", selector_required=False), _TEMPLATE_MOUNTS),
    "deployments.apps": (_workload_rule("deployment", selector_required=True), _TEMPLATE_MOUNTS),
    "horizontalpodautoscalers.autoscaling": (_autoscaler,),
    "ingresses.networking.k8s.io": (_ingress,),
    "jobs.batch": (_job_template_rule("spec"), _TEMPLATE_MOUNTS),
    "leases.coordination.k8s.io": (_lease,),
    "limitranges": (limit_range_errors,),
    "mutatingadmissionpolicies.admissionregistration.k8s.io": (mutating_policy_errors,),
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": (mutating_binding_errors,),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": (webhook_configuration_errors,),
    "nodes": (_node,),
    "persistentvolumeclaims": (_claim,),
    "pods": (_pod, _volume_mounts_rule("spec")),
    "replicasets.apps": (_workload_rule("deployment", selector_required=True), _TEMPLATE_MOUNTS),
    "replicationcontrollers": (_replication_controller,),
    "resourcequotas": (quota_errors,),
    "rolebindings.rbac.authorization.k8s.io": (_role_binding_rule("Role", "ClusterRole"),),
    "roles.rbac.authorization.k8s.io": (_role,),
    "secrets": (_secret,),
    "statefulsets.apps": (_workload_rule("statefulset", selector_required=True),),
    "validatingadmissionpolicies.admissionregistration.k8s.io": (validating_policy_errors,),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": (validating_binding_errors,),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": (webhook_configuration_errors,),
    "workloads.scheduling.k8s.io": (workload_errors,),
}
STATUS_RULES: Final[Mapping[str, Callable[[Object, Object], Iterator[Cause]]]] = {
    _CERTIFICATE_REQUESTS: certificate_errors,
    "podgroups.scheduling.k8s.io": pod_group_status_errors,
    "resourceclaims.resource.k8s.io": claim_status_errors,
    "resourcequotas": quota_status_errors,
}
