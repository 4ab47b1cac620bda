"""The authorizer of policies: checks of the permissions of the user, or of a service account.

    authorizer.group('apps').resource('deployments').namespace('a').check('create').allowed()
    authorizer.serviceAccount('a', 'builder').path('/healthz').check('get').reason()
    authorizer.requestResource.check('custom-verb').allowed()

CEL sees an authorizer, and what its functions return, as a map. Field and label selectors are
accepted; no rule of RBAC depends on them.

Source: k8s.io/apiserver/pkg/cel/library/authz.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fakeapi.apiserver.admission.webhooks.attributes import AdmissionAttributes
from fakeapi.apiserver.auth.authorization import AuthorizationAttributes, Authorizer
from fakeapi.apiserver.wire.http_messages import User
from policies.kubernetes.name_validation import invalid_dns_label, invalid_subdomain

Check = Mapping[str, str]

_ACCOUNT: Final = "serviceAccount"


def authorizer_value(attributes: AdmissionAttributes) -> dict[str, Any]:
    """Return the variable ``authorizer`` of a request."""
    operation = attributes.requested
    return {
        "requestResource": {
            "group": operation.resource.group,
            "resource": operation.resource.plural,
            "subresource": operation.subresource,
            "namespace": attributes.namespace,
            "name": attributes.name,
        }
    }


def authorizer_functions(user: User, authorizer: Authorizer) -> dict[str, Callable[..., Any]]:
    """Return the functions of the authorizer by name, for the requests of a user."""

    def check(target: Check, verb: str) -> dict[str, Any]:
        account = target.get(_ACCOUNT)
        acting = _service_account(account) if account else user
        fields = {name: target[name] for name in _TARGETS if target.get(name)}
        reason = authorizer.reason(AuthorizationAttributes(acting, verb, **fields))
        return {"allowed": reason is not None, "reason": reason or ""}

    return {**_BUILDERS, "check": check}


_TARGETS: Final = ("group", "resource", "subresource", "namespace", "name", "path")


def _service_account(account: str) -> User:
    namespace, _, name = account.partition("/")
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return User(f"system:serviceaccount:{namespace}:{name}", groups=groups)


def _of_account(_authorizer: Check, namespace: str, name: str) -> dict[str, str]:
    if invalid_subdomain(name):
        raise ValueError("Invalid service account name")
    if invalid_dns_label(namespace):
        raise ValueError("Invalid service account namespace")
    return {_ACCOUNT: f"{namespace}/{name}"}


def _path(authorizer: Check, path: str) -> Check:
    if not path.strip():
        raise ValueError("path must not be empty")
    return {**authorizer, "path": path}


def _resource(group: Check, resource: str) -> Check:
    if not resource.strip():
        raise ValueError("resource must not be empty")
    return {**group, "resource": resource}


def _narrowed(name: str) -> Callable[[Check, str], Check]:
    return lambda check, value: {**check, name: value}


_BUILDERS: Final[Mapping[str, Callable[..., Any]]] = {
    "allowed": lambda decision: decision["allowed"],
    "error": lambda _decision: "",
    "errored": lambda _decision: False,
    "fieldSelector": lambda check, _selector: check,
    "group": _narrowed("group"),
    "labelSelector": lambda check, _selector: check,
    "name": _narrowed("name"),
    "namespace": _narrowed("namespace"),
    "path": _path,
    "reason": lambda decision: decision["reason"],
    "resource": _resource,
    "serviceAccount": _of_account,
    "subresource": _narrowed("subresource"),
}
