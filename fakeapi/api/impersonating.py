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

from fakeapi.api.authorizing import Attributes, Authorizer, forbidden_request
from fakeapi.api.errors import bad_request
from fakeapi.api.messages import User

ANONYMOUS: Final = "system:anonymous"
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
SERVICE_ACCOUNT: Final = "system:serviceaccount:"
SERVICE_ACCOUNTS: Final = "system:serviceaccounts"

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
        raise bad_request(_nameless(uid, groups, extra))
    return User(name, uid, tuple(_groups(name, groups)), MappingProxyType(extra))


def check_impersonation(authorizer: Authorizer, user: User, whom: User) -> None:
    """Check that ``user`` may impersonate the other user; raise StatusError (403)."""
    for attributes in _claims(user, whom):
        if authorizer.reason(attributes) is None:
            raise forbidden_request(attributes)


def service_account_of(name: str) -> tuple[str, str] | None:
    """Return namespace and name of a service account's user name; None for other names."""
    if not name.startswith(SERVICE_ACCOUNT):
        return None
    namespace, colon, account = name.removeprefix(SERVICE_ACCOUNT).partition(":")
    return (namespace, account) if colon and namespace and account else None


def service_account_groups(namespace: str) -> tuple[str, ...]:
    """Return the groups of every service account of a namespace."""
    return SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}"


def _groups(name: str, given: list[str]) -> Iterator[str]:
    account = service_account_of(name)
    groups = given or list(service_account_groups(account[0]) if account else ())
    yield from groups
    if name == ANONYMOUS:
        if UNAUTHENTICATED not in groups:
            yield UNAUTHENTICATED
    elif AUTHENTICATED not in groups and UNAUTHENTICATED not in groups:
        yield AUTHENTICATED


def _claims(user: User, whom: User) -> Iterator[Attributes]:
    """Yield the operations that must be allowed."""
    account = service_account_of(whom.name)
    granted = set(service_account_groups(account[0])) if account else set()
    if account:
        namespace, name = account
        yield Attributes(
            user,
            "impersonate",
            version="v1",
            resource="serviceaccounts",
            namespace=namespace,
            name=name,
        )
    else:
        yield Attributes(user, "impersonate", version="v1", resource="users", name=whom.name)
    for group in whom.groups:
        if group not in granted | {AUTHENTICATED, UNAUTHENTICATED}:
            yield Attributes(user, "impersonate", version="v1", resource="groups", name=group)
    reviews = ("authentication.k8s.io", "v1")
    for key, values in whom.extra.items():
        for value in values:
            yield Attributes(user, "impersonate", *reviews, "userextras", key, "", value)
    if whom.uid:
        yield Attributes(user, "impersonate", *reviews, "uids", name=whom.uid)


def _nameless(uid: str, groups: list[str], extra: Mapping[str, tuple[str, ...]]) -> str:
    """Return upstream's message, which contains a Go value."""
    listed = f"[]string{{{_quoted(groups)}}}" if groups else "[]string(nil)"
    pairs = ", ".join(f'"{key}":[]string{{{_quoted(extra[key])}}}' for key in sorted(extra))
    mapped = f"map[string][]string{{{pairs}}}" if extra else "map[string][]string(nil)"
    value = f'Name:"", UID:"{uid}", Groups:{listed}, Extra:{mapped}'
    return f"requested &user.DefaultInfo{{{value}}} without impersonating a user name"


def _quoted(values: Iterable[str]) -> str:
    return ", ".join(f'"{value}"' for value in values)
