"""Validation rules on several fields of one object, wherever it occurs in a document.

They are listed by definition (without the prefix ``io.k8s.api.``); each yields errors in upstream's
words.

Source: pkg/apis/*/validation/validation.go, v1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import orjson

from fakeapi.apiserver.validation.declared_rules import optional_name
from fakeapi.apiserver.validation.devices import DEVICE_FIELD_RULES
from fakeapi.apiserver.validation.pod_groups import POD_GROUP_FIELD_RULES
from fakeapi.apiserver.wire.errors import (
    Cause,
    GoFormattedValue,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from policies.kubernetes.name_validation import invalid_label_key, invalid_subdomain
from policies.kubernetes.quantity import parse_quantity

Object = Mapping[str, Any]
Rule = Callable[[Object, str], Iterator[Cause]]

_LAST_PORT: Final = 65_535
_PORT: Final = f"must be between 1 and {_LAST_PORT}, inclusive"
_EXCLUSIVE: Final = "minAvailable and maxUnavailable cannot be both set"


def _pod_spec(spec: Object, path: str) -> Iterator[Cause]:
    for key in spec.get("nodeSelector") or {}:
        wrong = invalid_label_key(key)
        if wrong:
            yield invalid_value(f"{path}.nodeSelector", key, wrong)


def _pod_claim(claim: Object, path: str) -> Iterator[Cause]:
    sources = ("resourceClaimName", "resourceClaimTemplateName")
    present = [name for name in sources if claim.get(name) is not None]
    rule = ""
    if not present:
        rule = f"must specify one of: `{sources[0]}`, `{sources[1]}`"
    elif len(present) > 1:
        rule = f"at most one of `{sources[0]}` or `{sources[1]}` may be specified"
    if rule:
        formatted = _format_go_struct({name: claim.get(name) for name in ("name", *sources)})
        yield invalid_value(path, formatted, rule)


def _scheduling_group(group: Object, path: str) -> Iterator[Cause]:
    if group.get("podGroupName") is None:
        detail = "must specify one of: `podGroupName`"
        yield invalid_value(f"{path}.podGroupName", None, detail)
    yield from optional_name("podGroupName", invalid_subdomain)(group, path)


def _container_port(port: Object, path: str) -> Iterator[Cause]:
    number = port.get("containerPort")
    if not number:
        yield required(f"{path}.containerPort")
    elif not 0 < number <= _LAST_PORT:
        yield invalid_value(f"{path}.containerPort", number, _PORT)


def _resources(resources: Object, path: str) -> Iterator[Cause]:
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for group, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            if parse_quantity(amount) < 0:
                rule = "must be greater than or equal to 0"
                yield invalid_value(f"{path}.{group}[{name}]", amount, rule)
    for name, amount in requests.items():
        if name in limits and parse_quantity(amount) > parse_quantity(limits[name]):
            rule = f"must be less than or equal to {name} limit of {limits[name]}"
            yield invalid_value(f"{path}.requests", amount, rule)


def _toleration(toleration: Object, path: str) -> Iterator[Cause]:
    operator, value = toleration.get("operator") or "Equal", toleration.get("value")
    if operator == "Exists" and value:
        rule = "value must be empty when `operator` is 'Exists'"
        yield invalid_value(f"{path}.operator", value, rule)
    elif operator == "Equal" and not toleration.get("key"):
        rule = (
            "operator must be Exists when `key` is empty, which means 'match all values and all "
            "keys'"
        )
        yield invalid_value(f"{path}.operator", operator, rule)


def _service_spec(spec: Object, path: str) -> Iterator[Cause]:
    ports = spec.get("ports") or ()
    if spec.get("type") == "ExternalName":
        yield from _external_name(spec, path)
    elif spec.get("clusterIP") != "None":
        if not ports:
            yield required(f"{path}.ports")
    elif spec.get("type") != "ClusterIP":
        rule = f"may not be set to 'None' for {spec.get('type')} services"
        yield invalid_value(f"{path}.clusterIPs[0]", "None", rule)
    for index, port in enumerate(ports):
        if len(ports) > 1 and not port.get("name"):
            yield required(f"{path}.ports[{index}].name")
        if port.get("nodePort") and spec.get("type") == "ClusterIP":
            rule = "may not be used when `type` is 'ClusterIP'"
            yield forbidden_field(f"{path}.ports[{index}].nodePort", rule)


def _external_name(spec: Object, path: str) -> Iterator[Cause]:
    for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(name):
            yield forbidden_field(f"{path}.{name}", "may not be set for ExternalName services")
    if not spec.get("externalName"):
        yield required(f"{path}.externalName")


def _port_rule(*names: str) -> Rule:
    """Return the rule that ports are names or valid numbers; a missing one is 0."""

    def rule(target: Object, path: str) -> Iterator[Cause]:
        for name in names:
            number = target.get(name, 0)
            if isinstance(number, int) and not 0 < number <= _LAST_PORT:
                yield invalid_value(f"{path}.{name}", number, _PORT)

    return rule


def _budget_spec(spec: Object, path: str) -> Iterator[Cause]:
    both = {"minAvailable": spec.get("minAvailable"), "maxUnavailable": spec.get("maxUnavailable")}
    if None not in both.values():
        names = ("minAvailable", "selector", "maxUnavailable", "unhealthyPodEvictionPolicy")
        yield invalid_value(path, _format_go_struct({n: spec.get(n) for n in names}), _EXCLUSIVE)
    for name, value in both.items():
        if isinstance(value, int) and value < 0:
            yield invalid_value(f"{path}.{name}", value, "must be greater than or equal to 0")
        elif isinstance(value, str) and not (value.endswith("%") and value[:-1].isdecimal()):
            yield invalid_value(f"{path}.{name}", value, _PERCENT)


_PERCENT: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or "
    "'93%', regex used for validation is '[0-9]+%')"
)


def _format_go_struct(fields: Object) -> GoFormattedValue:
    """Format a struct of upstream's internal types, whose fields begin with capitals."""
    formatted = {f"{name[0].upper()}{name[1:]}": value for name, value in fields.items()}
    return GoFormattedValue(orjson.dumps(formatted).decode())


def _strategy(strategy: Object, path: str) -> Iterator[Cause]:
    if strategy.get("type") not in ("Recreate", "RollingUpdate"):
        formatted = _format_go_struct(
            {name: strategy.get(name) for name in ("type", "rollingUpdate")}
        )
        yield unsupported_value(path, formatted, ("Recreate", "RollingUpdate"))
    if strategy.get("type") == "Recreate" and "rollingUpdate" in strategy:
        rule = "may not be specified when strategy `type` is 'Recreate'"
        yield forbidden_field(f"{path}.rollingUpdate", rule)
    rolling = strategy.get("rollingUpdate") or {}
    if all(str(rolling.get(name)) in ("0", "0%") for name in ("maxSurge", "maxUnavailable")):
        rule = "may not be 0 when `maxSurge` is 0"
        where = f"{path}.rollingUpdate.maxUnavailable"
        yield invalid_value(where, rolling["maxUnavailable"], rule)


def _ingress_path(path: Object, where: str) -> Iterator[Cause]:
    if not path.get("pathType"):
        yield required(f"{where}.pathType", "pathType must be specified")


FIELD_RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    **DEVICE_FIELD_RULES,
    **POD_GROUP_FIELD_RULES,
    "apps.v1.DeploymentStrategy": (_strategy,),
    "core.v1.ContainerPort": (_container_port,),
    "core.v1.GRPCAction": (_port_rule("port"),),
    "core.v1.HTTPGetAction": (_port_rule("port"),),
    "core.v1.PodResourceClaim": (_pod_claim,),
    "core.v1.PodSchedulingGroup": (_scheduling_group,),
    "core.v1.PodSpec": (_pod_spec,),
    "core.v1.ResourceRequirements": (_resources,),
    "core.v1.ServicePort": (_port_rule("port", "targetPort"),),
    "core.v1.ServiceSpec": (_service_spec,),
    "core.v1.TCPSocketAction": (_port_rule("port"),),
    "core.v1.Toleration": (_toleration,),
    "networking.v1.HTTPIngressPath": (_ingress_path,),
    "policy.v1.PodDisruptionBudgetSpec": (_budget_spec,),
}
