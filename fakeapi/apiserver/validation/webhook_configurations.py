"""Validation rules of admission webhook configurations.

These are upstream's, with two more: without the extra ``cel`` there can be no ``matchConditions``,
and a CA bundle must be PEM, which upstream checks only when the webhook is called.

Sources: pkg/apis/admissionregistration/validation/validation.go,
k8s.io/apiserver/pkg/util/webhook/validation.go, v1.37.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from extender.cel.parser import MISSING, is_installed
from extender.kube.rest.http_transport import client_tls
from fakeapi.apiserver.schema.crds.version_validation import (
    REVIEWS,
    review_version_errors,
    service_errors,
    url_errors,
)
from fakeapi.apiserver.wire.errors import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from policies.kubernetes.name_validation import (
    invalid_label_key,
    invalid_label_value,
    invalid_subdomain,
)

Object = Mapping[str, Any]
ExpressionCauses = Callable[[str, str], Iterator[Cause]]
"""Yields the errors of an expression: (expression, path)."""

_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "failurePolicy": ("Fail", "Ignore"),
    "matchPolicy": ("Equivalent", "Exact"),
    "reinvocationPolicy": ("IfNeeded", "Never"),
}
_LONGEST_SECONDS: Final = 30
_LEAST_SEGMENTS: Final = 3
_UNARY: Final = ("Exists", "DoesNotExist")
_BINARY: Final = ("In", "NotIn")
_MOST_CONDITIONS: Final = 64
_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"


def webhook_configuration_errors(configuration: Object, _path: str) -> Iterator[Cause]:
    """Yield the errors of a mutating or validating webhook configuration."""
    seen: set[str] = set()
    for index, webhook in enumerate(configuration.get("webhooks") or ()):
        path = f"webhooks[{index}]"
        yield from _webhook_errors(webhook, path)
        name = webhook.get("name")
        if name and name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)


def _webhook_errors(webhook: Object, path: str) -> Iterator[Cause]:
    yield from _name(webhook.get("name") or "", f"{path}.name")
    for index, rule in enumerate(webhook.get("rules") or ()):
        yield from rule_errors(rule, f"{path}.rules[{index}]")
    for name in ("failurePolicy", "matchPolicy"):
        yield from _choice(webhook, name, path)
    effects = webhook.get("sideEffects")
    if effects is None:
        detail = f"must specify one of {', '.join(_SIDE_EFFECTS)}"
        yield required(f"{path}.sideEffects", detail)
    elif effects not in _SIDE_EFFECTS:
        yield unsupported_value(f"{path}.sideEffects", effects, _SIDE_EFFECTS)
    seconds = webhook.get("timeoutSeconds", 1)
    if not 1 <= seconds <= _LONGEST_SECONDS:
        rule = f"the timeout value must be between 1 and {_LONGEST_SECONDS} seconds"
        yield invalid_value(f"{path}.timeoutSeconds", seconds, rule)
    for name in ("namespaceSelector", "objectSelector"):
        yield from selector_errors(webhook.get(name) or {}, f"{path}.{name}")
    yield from _choice(webhook, "reinvocationPolicy", path)
    yield from _client(webhook.get("clientConfig") or {}, f"{path}.clientConfig")
    yield from condition_errors(
        webhook.get("matchConditions") or (), f"{path}.matchConditions", _expression
    )
    versions = webhook.get("admissionReviewVersions") or ()
    yield from _reviews(versions, f"{path}.admissionReviewVersions")


def _choice(webhook: Object, name: str, path: str) -> Iterator[Cause]:
    value = webhook.get(name)
    if value is not None and value not in _CHOICES[name]:
        yield unsupported_value(f"{path}.{name}", value, _CHOICES[name])


def _name(name: str, path: str) -> Iterator[Cause]:
    if not name:
        yield required(path)
    elif wrong := invalid_subdomain(name):
        yield invalid_value(path, name, wrong)
    elif len(name.split(".")) < _LEAST_SEGMENTS:
        rule = "should be a domain with at least three segments separated by dots"
        yield invalid_value(path, name, rule)


def rule_errors(rule: Object, path: str) -> Iterator[Cause]:
    """Yield the errors of a rule."""
    operations = rule.get("operations") or []
    if not operations:
        yield required(f"{path}.operations")
    yield from _wildcard_errors(operations, f"{path}.operations", "operations")
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            yield unsupported_value(f"{path}.operations[{index}]", operation, _OPERATIONS)
    for name, noun in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(name) or []
        if not values:
            yield required(f"{path}.{name}")
        yield from _wildcard_errors(values, f"{path}.{name}", noun)
    for index, version in enumerate(rule.get("apiVersions") or ()):
        if not version:
            yield required(f"{path}.apiVersions[{index}]")
    yield from _resources(rule.get("resources") or [], f"{path}.resources")
    scope = rule.get("scope", "*")
    if scope not in _SCOPES:
        yield unsupported_value(f"{path}.scope", scope, _SCOPES)


def _wildcard_errors(values: Sequence[str], path: str, noun: str) -> Iterator[Cause]:
    if len(values) > 1 and "*" in values:
        yield invalid_value(path, values, f"if '*' is present, must not specify other {noun}")


def _resources(resources: Sequence[str], path: str) -> Iterator[Cause]:
    if not resources:
        yield required(path)
    for index, text in enumerate(resources):
        if not text:
            yield required(f"{path}[{index}]")
    yield from _subresources(resources, path)
    if len(resources) > 1 and "*/*" in resources:
        yield invalid_value(path, resources, _exclusive_message("*/*", "other resources"))
    plain = [text for text in resources if text and "/" not in text]
    if "*" in plain and plain[-1] != "*":  # as upstream, which checks only the last one
        rule = _exclusive_message("*", "other resources without subresources")
        yield invalid_value(path, resources, rule)


def _subresources(resources: Sequence[str], path: str) -> Iterator[Cause]:
    whole: set[str] = set()
    everywhere: set[str] = set()
    for index, text in enumerate(resources):
        where = f"{path}[{index}]"
        resource, slash, subresource = text.partition("/")
        if not slash:
            continue
        if resource in whole:
            yield invalid_value(where, text, _exclusive_message(f"{resource}/*", text))
        if subresource in everywhere:
            yield invalid_value(where, text, _exclusive_message(f"*/{subresource}", text))
        if subresource == "*":
            whole.add(resource)
        if resource == "*":
            everywhere.add(subresource)


def _exclusive_message(found: str, excluded: str) -> str:
    return f"if '{found}' is present, must not specify {excluded}"


def selector_errors(selector: Object, path: str) -> Iterator[Cause]:
    """Yield the errors of a label selector."""
    for key, value in (selector.get("matchLabels") or {}).items():
        for text, wrong in ((key, invalid_label_key(key)), (value, invalid_label_value(value))):
            if wrong:
                yield invalid_value(f"{path}.matchLabels", text, wrong)
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        yield from _requirement(expression, f"{path}.matchExpressions[{index}]")


def _requirement(expression: Object, path: str) -> Iterator[Cause]:
    operator, values = expression.get("operator") or "", expression.get("values") or ()
    if operator in _BINARY and not values:
        detail = "must be specified when `operator` is 'In' or 'NotIn'"
        yield required(f"{path}.values", detail)
    elif operator in _UNARY and values:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        yield forbidden_field(f"{path}.values", detail)
    elif operator not in (*_BINARY, *_UNARY):
        yield invalid_value(f"{path}.operator", operator, "not a valid selector operator")
    key = expression.get("key") or ""
    if wrong := invalid_label_key(key):
        yield invalid_value(f"{path}.key", key, wrong)
    for index, value in enumerate(values):
        if wrong := invalid_label_value(value):
            yield invalid_value(f"{path}.values[{index}]", value, wrong)


def _client(config: Object, path: str) -> Iterator[Cause]:
    url, service, bundle = config.get("url"), config.get("service"), config.get("caBundle")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from url_errors(url, f"{path}.url")
    elif service is not None:
        yield from service_errors(service, f"{path}.service")
    if bundle and not _holds_certificates(b64decode(bundle)):
        rule = "unable to load root certificates: unable to parse bytes as PEM block"
        yield invalid_value(f"{path}.caBundle", bundle, rule)


def _holds_certificates(bundle: bytes) -> bool:
    if _CERTIFICATE not in bundle:
        return False
    try:
        client_tls(ca_data=bundle)
    except OSError:
        return False
    return True


def condition_errors(
    conditions: Sequence[Object], path: str, expression_causes: ExpressionCauses
) -> Iterator[Cause]:
    """Yield the errors of match conditions; ``expression_causes`` yields those of expressions."""
    if conditions and not is_installed():
        yield forbidden_field(path, MISSING)
        return
    if len(conditions) > _MOST_CONDITIONS:
        message = f"Too many: {len(conditions)}: must have at most {_MOST_CONDITIONS} items"
        yield Cause("FieldValueTooMany", message, path)
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        where = f"{path}[{index}]"
        expression = (condition.get("expression") or "").strip()
        if expression:
            yield from expression_causes(expression, f"{where}.expression")
        else:
            yield required(f"{where}.expression")
        name = condition.get("name") or ""
        if not name:
            yield required(f"{where}.name")
        elif wrong := invalid_label_key(name):
            yield invalid_value(f"{where}.name", name, wrong)
        if name in seen:
            yield duplicate(f"{where}.name", name)
        seen.add(name)


def _expression(expression: str, path: str) -> Iterator[Cause]:
    # imports the type checker
    from fakeapi.apiserver.validation.admission_expressions import condition_causes

    return condition_causes(expression, path)


def _reviews(versions: Sequence[str], path: str) -> Iterator[Cause]:
    return review_version_errors(versions, path, f"must specify one of {', '.join(REVIEWS)}")
