"""Impersonation: acting as another user, by the ``Impersonate-*`` headers.

The requesting user needs the verb ``impersonate`` on the user (or service account), and on each
group, UID and extra value.

Source: k8s.io/apiserver/pkg/endpoints/filters/impersonation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote

from fakeapi.api.authorizing import AuthorizationAttributes, Authorizer, forbidden_request
from fakeapi.api.errors import bad_request
from fakeapi.api.messages import User

ANONYMOUS_USER_NAME: Final = "system:anonymous"
AUTHENTICATED_GROUP: Final = "system:authenticated"
UNAUTHENTICATED_GROUP: Final = "system:unauthenticated"
SERVICE_ACCOUNT_PREFIX: Final = "system:serviceaccount:"
SERVICE_ACCOUNTS_GROUP: Final = "system:serviceaccounts"

_PREFIX: Final = "impersonate-"
_EXTRA: Final = "extra-"


def read_impersonation(headers: Iterable[tuple[str, str]]) -> User | None:
    """Return the user that a request's headers impersonate, or None; raise StatusError (400)."""
    found: dict[str, list[str]] = {}
    for name, value in headers:
        key = name.lower()
        if key.startswith(_PREFIX) and value:
            found.setdefault(key.removeprefix(_PREFIX), []).append(value)
    if not found:
        return None
    extra = {
        unquote(key.removeprefix(_EXTRA)): tuple(values)
        for key, values in found.items()
        if key.startswith(_EXTRA)
    }
    name, uid = found.get("user", [""])[0], found.get("uid", [""])[0]
    groups = found.get("group", [])
    if not name:
        raise bad_request(_missing_user_message(uid, groups, extra))
    return User(name, uid, tuple(_groups(name, groups)), MappingProxyType(extra))


def check_impersonation(authorizer: Authorizer, user: User, impersonated: User) -> None:
    """Check that ``user`` may impersonate the other user; raise StatusError (403)."""
    for attributes in _required_operations(user, impersonated):
        if authorizer.reason(attributes) is None:
            raise forbidden_request(attributes)


def service_account_of(name: str) -> tuple[str, str] | None:
    """Return namespace and name of a service account's user name; None for other names."""
    if not name.startswith(SERVICE_ACCOUNT_PREFIX):
        return None
    namespace, colon, account = name.removeprefix(SERVICE_ACCOUNT_PREFIX).partition(":")
    return (namespace, account) if colon and namespace and account else None


def service_account_groups(namespace: str) -> tuple[str, ...]:
    """Return the groups of every service account of a namespace."""
    return SERVICE_ACCOUNTS_GROUP, f"{SERVICE_ACCOUNTS_GROUP}:{namespace}"


def _groups(name: str, given: list[str]) -> Iterator[str]:
    account = service_account_of(name)
    groups = given or list(service_account_groups(account[0]) if account else ())
    yield from groups
    if name == ANONYMOUS_USER_NAME:
        if UNAUTHENTICATED_GROUP not in groups:
            yield UNAUTHENTICATED_GROUP
    elif AUTHENTICATED_GROUP not in groups and UNAUTHENTICATED_GROUP not in groups:
        yield AUTHENTICATED_GROUP


def _required_operations(user: User, impersonated: User) -> Iterator[AuthorizationAttributes]:
    """Yield the operations that must be allowed."""
    account = service_account_of(impersonated.name)
    granted = set(service_account_groups(account[0])) if account else set()
    if account:
        namespace, name = account
        yield AuthorizationAttributes(
            user,
            "impersonate",
            version="v1",
            resource="serviceaccounts",
            namespace=namespace,
            name=name,
        )
    else:
        yield AuthorizationAttributes(
            user, "impersonate", version="v1", resource="users", name=impersonated.name
        )
    for group in impersonated.groups:
        if group not in granted | {AUTHENTICATED_GROUP, UNAUTHENTICATED_GROUP}:
            yield AuthorizationAttributes(
                user, "impersonate", version="v1", resource="groups", name=group
            )
    reviews = ("authentication.k8s.io", "v1")
    for key, values in impersonated.extra.items():
        for value in values:
            yield AuthorizationAttributes(
                user, "impersonate", *reviews, "userextras", key, "", value
            )
    if impersonated.uid:
        yield AuthorizationAttributes(user, "impersonate", *reviews, "uids", name=impersonated.uid)


def _missing_user_message(uid: str, groups: list[str], extra: Mapping[str, tuple[str, ...]]) -> str:
    """Return upstream's message, which contains a Go value."""
    listed = f"[]string{{{_quoted(groups)}}}" if groups else "[]string(nil)"
    pairs = ", ".join(f'"{key}":[]string{{{_quoted(extra[key])}}}' for key in sorted(extra))
    mapped = f"map[string][]string{{{pairs}}}" if extra else "map[string][]string(nil)"
    value = f'Name:"", UID:"{uid}", Groups:{listed}, Extra:{mapped}'
    return f"requested &user.DefaultInfo{{{value}}} without impersonating a user name"


def _quoted(values: Iterable[str]) -> str:
    return ", ".join(f'"{value}"' for value in values)
