"""The token subresource (TokenRequest): a service account token with an expiration time.

A token may be bound to a pod (of that account), a secret or a node. Neither the account nor the
bound object changes.

Source: pkg/registry/core/serviceaccount/storage/token.go, pkg/apis/authentication/validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fakeapi.apiserver.auth.authentication import (
    AUTHENTICATED_GROUP,
    SERVICE_ACCOUNT_PREFIX,
    service_account_groups,
)
from fakeapi.apiserver.auth.service_account_tokens import (
    ISSUER,
    BoundObject,
    TokenClaims,
    TokenRecord,
    encode_web_token,
)
from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.builtin import TOKEN_REQUEST
from fakeapi.apiserver.registry.generic_registry import Target
from fakeapi.apiserver.registry.request_scope import RequestScope, json_response, read_admitted
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import Cause, StatusError, bad_request, conflict, invalid
from fakeapi.apiserver.wire.http_messages import Response, User

DEFAULT_SECONDS: Final = 3_600
_LEAST_SECONDS: Final = 600
_MOST_SECONDS: Final = 2**32
_BINDABLE: Final = {"Pod": "pods", "Node": "nodes", "Secret": "secrets"}
_EXTRA: Final = "authentication.kubernetes.io"


def request_token(call: RequestScope) -> Response:
    """Issue a token for the service account of the request path."""
    request = read_admitted(call, TOKEN_REQUEST)
    metadata = request["metadata"]
    name, namespace = call.target.name, call.target.namespace
    _check_metadata(call.target, metadata)
    account = call.registry.get(call.target).document()["metadata"]
    spec = _check_spec(request.get("spec") or {})
    bound, claimed = _bound(call, spec.get("boundObjectRef"))
    seconds = spec["expirationSeconds"]
    sources = call.services.sources
    now = sources.now()
    private = {
        "namespace": namespace,
        **claimed,
        "serviceaccount": {"name": name, "uid": account["uid"]},
    }
    subject = f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}"
    claims = TokenClaims(subject, spec["audiences"], now, now + seconds, sources.uid(), private)
    token, expires = encode_web_token(claims), sources.timestamp(seconds)
    needed = (BoundObject(call.target.kind, call.target.key, account["uid"]), *bound)
    user = _user(claims, account["uid"])
    call.services.tokens.add(token, TokenRecord(user, expires, needed))
    account_ref = {"name": name, "namespace": namespace, "uid": account["uid"]}
    return json_response(
        201,
        {
            "kind": TOKEN_REQUEST.kind,
            "apiVersion": TOKEN_REQUEST.api_version,
            "metadata": {**metadata, **account_ref, "creationTimestamp": sources.timestamp(0)},
            "spec": spec,
            "status": {"token": token, "expirationTimestamp": expires},
        },
    )


def _check_metadata(target: Target, metadata: Mapping[str, Any]) -> None:
    for member, expected in (("name", target.name), ("namespace", target.namespace)):
        value = metadata.get(member)
        if value and value != expected:
            detail = f"must match the service account {member} if specified"
            raise _invalid(target.name, f"metadata.{member}", f'"{value}"', detail)


def _check_spec(spec: Mapping[str, Any]) -> Document:
    seconds = spec.get("expirationSeconds")
    seconds = DEFAULT_SECONDS if seconds is None else seconds
    audiences = spec.get("audiences") or [ISSUER]
    field = "spec.expirationSeconds"
    if seconds < _LEAST_SECONDS:
        detail = "may not specify a duration less than 10 minutes"
        raise _invalid("", field, str(seconds), detail)
    if seconds > _MOST_SECONDS:
        detail = "may not specify a duration larger than 2^32 seconds"
        raise _invalid("", field, str(seconds), detail)
    return {
        "audiences": audiences,
        "expirationSeconds": seconds,
        "boundObjectRef": spec.get("boundObjectRef"),
    }


def _bound(call: RequestScope, reference: Any) -> tuple[tuple[BoundObject, ...], Mapping[str, Any]]:
    """Return the object to which the token is bound, if any, and its claims."""
    if not isinstance(reference, dict):
        return (), {}
    kind_name, version = reference.get("kind", ""), reference.get("apiVersion", "")
    plural = _BINDABLE.get(kind_name) if "/" not in version else None
    kind = call.services.kinds.at("", "v1", plural) if plural else None
    if kind is None:
        raise bad_request(f"cannot bind token to object of type {version}, Kind={kind_name}")
    namespace = call.target.namespace if kind.namespaced else ""
    name = reference.get("name", "")
    target = Target(kind, namespace, name)
    document = call.registry.get(target).document()
    _check_bound(call.target.name, kind, document, reference)
    bound = BoundObject(kind, target.key, document["metadata"]["uid"])
    claims = {kind_name.lower(): {"name": name, "uid": bound.uid}}
    node = (document.get("spec") or {}).get("nodeName") if kind_name == "Pod" else None
    return (bound,), {**claims, "node": {"name": node}} if node else claims


def _check_bound(
    account: str, kind: ResourceInfo, document: Document, reference: Mapping[str, Any]
) -> None:
    serving = (document.get("spec") or {}).get("serviceAccountName")
    if kind.kind == "Pod" and serving != account:
        raise bad_request(
            f'cannot bind token for serviceaccount "{account}" to pod running with different '
            "serviceaccount name."
        )
    uid = reference.get("uid")
    if uid and uid != document["metadata"]["uid"]:
        detail = (
            f"the UID in the bound object reference ({uid}) does not match the UID in record. The "
            "object might have been deleted and then recreated"
        )
        raise conflict(kind, reference.get("name", ""), detail)


def _user(claims: TokenClaims, uid: str) -> User:
    extra = {f"{_EXTRA}/credential-id": (f"JTI={claims.token_id}",)}
    for kind in ("node", "pod"):
        for member, value in claims.private.get(kind, {}).items():
            extra[f"{_EXTRA}/{kind}-{member}"] = (value,)
    groups = (*service_account_groups(claims.private["namespace"]), AUTHENTICATED_GROUP)
    return User(claims.subject, uid, groups, extra)


def _invalid(name: str, field: str, value: str, detail: str) -> StatusError:
    cause = Cause("FieldValueInvalid", f"Invalid value: {value}: {detail}", field)
    return invalid("TokenRequest.authentication.k8s.io", name, [cause])
