"""Authentication and impersonation: the user that a request acts as.

A client certificate (its issuer was verified by the TLS layer) takes precedence: its common name is
the user, its organizations are the groups. Otherwise the bearer token counts: a static one, or one
that TokenRequest issued. An unknown token is rejected (401), even where anonymous requests are
allowed. A request without credentials is rejected unless an anonymous user is configured.

A user acts as another one by the ``Impersonate-*`` headers. This needs the verb ``impersonate`` on
the user (or service account), and on each group, UID and extra value.

Sources: k8s.io/apiserver/pkg/authentication/request (x509, bearertoken, union, anonymous),
group/authenticated_group_adder.go, pkg/endpoints/filters/impersonation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Protocol
from urllib.parse import unquote

from fakeapi.apiserver.auth.authorization import (
    AuthorizationAttributes,
    Authorizer,
    forbidden_request,
)
from fakeapi.apiserver.wire.errors import bad_request, unauthorized
from fakeapi.apiserver.wire.http_messages import ADMIN_USER, User

AUTHENTICATED_GROUP: Final = "system:authenticated"
ANONYMOUS_USER: Final = User("system:anonymous", groups=("system:unauthenticated",))

_CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"
_BEARER: Final = "bearer"

TokenLookup = Callable[[str], User | None]
"""Returns the user of a token, or None."""


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """The subject of a verified client certificate; ``sha256`` is its fingerprint in hex."""

    common_name: str
    organizations: tuple[str, ...] = ()
    sha256: str = ""


class Authenticator(Protocol):
    """Finds the user of a request."""

    def user(self, authorization: str, certificate: ClientCertificate | None) -> User:
        """Return the user of a request's Authorization header and certificate.

        Raise StatusError (401).
        """
        ...

    def token_user(self, token: str) -> User | None:
        """Return the user of a bearer token, or None (for TokenReview)."""
        ...


class AllowAnonymous:
    """Treats requests without credentials as the administrator's; known tokens keep their user."""

    def __init__(self, issued: TokenLookup) -> None:
        self._issued = issued

    def user(self, authorization: str, certificate: ClientCertificate | None) -> User:
        """Return the user of the certificate or token, or else the administrator."""
        if certificate is not None and certificate.common_name:
            return _certificate_user(certificate)
        return self.token_user(_bearer_token(authorization) or "") or ADMIN_USER

    def token_user(self, token: str) -> User | None:
        """Return the service account of an issued token, or None."""
        return self._issued(token)


class CredentialAuthenticator:
    """Requires a certificate or a token.

    Requests without credentials are the user ``anonymous``; None rejects them.
    """

    def __init__(
        self, tokens: Mapping[str, User], issued: TokenLookup, anonymous: User | None = None
    ) -> None:
        self._tokens = MappingProxyType(
            {token: _with_authenticated_group(u) for token, u in tokens.items()}
        )
        self._issued = issued
        self._anonymous = anonymous

    def user(self, authorization: str, certificate: ClientCertificate | None) -> User:
        """Return the user of a request; raise StatusError (401)."""
        if certificate is not None and certificate.common_name:
            return _certificate_user(certificate)
        token = _bearer_token(authorization)
        found = self._anonymous if token is None else self.token_user(token)
        if found is None:
            raise unauthorized()
        return found

    def token_user(self, token: str) -> User | None:
        """Return the user of a static or issued token, or None."""
        return self._tokens.get(token) or self._issued(token)


def certificate_of(
    subject: Iterable[Iterable[tuple[str, str]]], sha256: str = ""
) -> ClientCertificate:
    """Return the certificate of a subject in the form of Python's ssl module, with long names."""
    names = [pair for part in subject for pair in part]
    common = [value for name, value in names if name == "commonName"]
    organizations = tuple(value for name, value in names if name == "organizationName")
    return ClientCertificate(common[0] if common else "", organizations, sha256)


def _certificate_user(certificate: ClientCertificate) -> User:
    extra = {_CREDENTIAL_ID: (f"X509SHA256={certificate.sha256}",)} if certificate.sha256 else {}
    user = User(certificate.common_name, "", certificate.organizations, MappingProxyType(extra))
    return _with_authenticated_group(user)


def _with_authenticated_group(user: User) -> User:
    if AUTHENTICATED_GROUP in user.groups:
        return user
    return replace(user, groups=(*user.groups, AUTHENTICATED_GROUP))


def _bearer_token(authorization: str) -> str | None:
    scheme, _, token = authorization.strip().partition(" ")
    return token.strip() or None if scheme.lower() == _BEARER else None


ANONYMOUS_USER_NAME: Final = "system:anonymous"
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


def _groups(name: str, own: list[str]) -> Iterator[str]:
    account = service_account_of(name)
    groups = own or list(service_account_groups(account[0]) if account else ())
    yield from groups
    if name == ANONYMOUS_USER_NAME:
        if UNAUTHENTICATED_GROUP not in groups:
            yield UNAUTHENTICATED_GROUP
    elif AUTHENTICATED_GROUP not in groups and UNAUTHENTICATED_GROUP not in groups:
        yield AUTHENTICATED_GROUP


def _required_operations(user: User, impersonated: User) -> Iterator[AuthorizationAttributes]:
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
