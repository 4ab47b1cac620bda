"""Access reviews: objects that are answered on create and not stored.

SelfSubjectReview returns the user of the request, TokenReview the user of a token.
SelfSubjectAccessReview, SubjectAccessReview and LocalSubjectAccessReview return whether a user may
perform an operation, SelfSubjectRulesReview all that the user may do.

Sources: pkg/registry/{authentication,authorization}, pkg/apis/authorization/validation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from fakeapi.apiserver.admission.webhooks.admission_review import user_info
from fakeapi.apiserver.auth.authorization import AuthorizationAttributes
from fakeapi.apiserver.auth.service_account_tokens import ISSUER
from fakeapi.apiserver.registry.request_scope import (
    Handler,
    RequestScope,
    json_response,
    read_admitted,
)
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import Cause, StatusError, bad_request, invalid
from fakeapi.apiserver.wire.http_messages import Response, User

_ONE_OF_ATTRIBUTES: Final = (
    "exactly one of nonResourceAttributes or resourceAttributes must be specified"
)


def review_self(scope: RequestScope) -> Response:
    """Return the user of the request."""
    review = _read(scope)
    created = {**review["metadata"], "creationTimestamp": scope.services.sources.timestamp(0)}
    status = {"userInfo": user_info(scope.user)}
    return _review_response(scope, review | {"metadata": created}, status)


def review_token(scope: RequestScope) -> Response:
    """Return the user of a token."""
    review = _read(scope)
    token = review["spec"].get("token")
    if not token or not isinstance(token, str):
        raise bad_request("token is required for TokenReview in authentication")
    user = scope.services.identify(token)
    if user is None:
        return _review_response(scope, review, {"user": {}, "error": "invalid bearer token"})
    audiences = review["spec"].get("audiences") or [ISSUER]
    found = {"authenticated": True, "user": user_info(user), "audiences": audiences}
    return _review_response(scope, review, found)


def review_self_access(scope: RequestScope) -> Response:
    """Return whether the user of the request may perform an operation."""
    review = _read(scope)
    return _access_response(scope, review, scope.user)


def review_access(scope: RequestScope) -> Response:
    """Return whether a given user may perform an operation."""
    review = _read(scope)
    return _access_response(scope, review, _subject(review["spec"]))


def review_local_access(scope: RequestScope) -> Response:
    """Return whether a given user may perform an operation in one namespace."""
    review = _read(scope)
    namespace = scope.target.namespace
    requested = (review["spec"].get("resourceAttributes") or {}).get("namespace", "")
    if requested != namespace:
        field = "spec.resourceAttributes.namespace"
        raise _invalid(field, f'"{requested}"', "must match metadata.namespace")
    review["metadata"]["namespace"] = namespace
    return _access_response(scope, review, _subject(review["spec"]))


def review_rules(scope: RequestScope) -> Response:
    """Return all that the user of the request may do in a namespace."""
    review = _read(scope)
    namespace = review["spec"].get("namespace")
    if not namespace:
        raise bad_request("no namespace on request")
    rules = scope.services.authorizer.rules(scope.user, namespace)
    status = {
        "resourceRules": list(rules.resources),
        "nonResourceRules": list(rules.paths),
        "incomplete": False,
    }
    return _review_response(scope, review | {"spec": {}}, status)


def _read(scope: RequestScope) -> Document:
    """Return the review of a request's body, with a spec, after a check of its namespace."""
    review = read_admitted(scope, scope.target.kind)
    metadata = review["metadata"]
    if metadata.get("namespace", scope.target.namespace) != scope.target.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    review.setdefault("spec", {})
    return review


def _access_response(scope: RequestScope, review: Document, user: User) -> Response:
    _check_metadata(review["metadata"])
    attributes = _attributes(review["spec"], user)
    reason = scope.services.authorizer.reason(attributes)
    status: dict[str, Any] = {"allowed": reason is not None}
    if reason:
        status["reason"] = reason
    return _review_response(scope, review, status)


def _check_metadata(metadata: Mapping[str, Any]) -> None:
    unexpected = {
        k: v for k, v in metadata.items() if k not in ("namespace", "managedFields") and v
    }
    if unexpected:
        raise _invalid("metadata", orjson.dumps(unexpected).decode(), "must be empty")


def _attributes(spec: Mapping[str, Any], user: User) -> AuthorizationAttributes:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) == (path is None):
        listed = "null"
        if isinstance(path, dict):
            both = {"Path": path.get("path", ""), "Verb": path.get("verb", "")}
            listed = orjson.dumps(both).decode()
        raise _invalid("spec", listed, _ONE_OF_ATTRIBUTES)
    text = (path if resource is None else resource) or {}
    if resource is None:
        return AuthorizationAttributes(user, text.get("verb", ""), path=text.get("path", ""))
    names = ("group", "version", "resource", "subresource", "namespace", "name")
    return AuthorizationAttributes(
        user, text.get("verb", ""), **{n: text.get(n, "") for n in names}
    )


def _subject(spec: Mapping[str, Any]) -> User:
    groups = tuple(spec.get("groups") or ())
    if not spec.get("user") and not groups:
        raise _invalid("spec.user", '""', "at least one of user or group must be specified")
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    return User(spec.get("user") or "", spec.get("uid") or "", groups, extra)


def _review_response(scope: RequestScope, review: Document, status: Document) -> Response:
    kind = scope.target.kind
    spec = {"spec": review["spec"]} if kind.kind != "SelfSubjectReview" else {}
    head = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": review["metadata"]}
    return json_response(201, {**head, **spec, "status": status})


def _invalid(field: str, value: str, detail: str) -> StatusError:
    """Return a 422 Invalid without a kind, as upstream does."""
    cause = Cause("FieldValueInvalid", f"Invalid value: {value}: {detail}", field)
    return invalid(".authorization.k8s.io", "", [cause])


_REVIEWS: Final[Mapping[str, Callable[[RequestScope], Response]]] = {
    "selfsubjectreviews.authentication.k8s.io": review_self,
    "tokenreviews.authentication.k8s.io": review_token,
    "selfsubjectaccessreviews.authorization.k8s.io": review_self_access,
    "subjectaccessreviews.authorization.k8s.io": review_access,
    "localsubjectaccessreviews.authorization.k8s.io": review_local_access,
    "selfsubjectrulesreviews.authorization.k8s.io": review_rules,
}
REVIEWS: Final[Mapping[tuple[str, str], Mapping[str, Handler]]] = {
    (resource, ""): {"POST": review} for resource, review in _REVIEWS.items()
}
