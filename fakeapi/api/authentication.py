"""Authentication: client certificates and bearer tokens become users.

A client certificate (its issuer was verified by the TLS layer) takes precedence: its common name is
the user, its organizations are the groups. Otherwise the bearer token counts: a static one, or one
that TokenRequest issued. An unknown token is rejected (401), even where anonymous requests are
allowed. A request without credentials is rejected unless an anonymous user is configured.

Source: k8s.io/apiserver/pkg/authentication/request (x509, bearertoken, union, anonymous) and
group/authenticated_group_adder.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Protocol

from fakeapi.api.errors import unauthorized
from fakeapi.api.messages import ADMIN, User

AUTHENTICATED: Final = "system:authenticated"
ANONYMOUS: Final = User("system:anonymous", groups=("system:unauthenticated",))

_CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"
_BEARER: Final = "bearer"

Lookup = Callable[[str], User | None]
"""Returns the user of a token, or None."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """The subject of a verified client certificate; ``sha256`` is its fingerprint in hex."""

    common_name: str
    organizations: tuple[str, ...] = ()
    sha256: str = ""


class Authenticator(Protocol):
    """Finds the user of a request."""

    def user(self, authorization: str, certificate: Certificate | None) -> User:
        """Return the user of a request's Authorization header and certificate.

        Raise StatusError (401).
        """
        ...

    def token_user(self, token: str) -> User | None:
        """Return the user of a bearer token, or None (for TokenReview)."""
        ...


class Everybody:
    """Treats requests without credentials as the administrator's; known tokens keep their user."""

    def __init__(self, issued: Lookup) -> None:
        self._issued = issued

    def user(self, authorization: str, certificate: Certificate | None) -> User:
        """Return the user of the certificate or token, or else the administrator."""
        if certificate is not None and certificate.common_name:
            return _certified(certificate)
        return self.token_user(_bearer_token(authorization) or "") or ADMIN

    def token_user(self, token: str) -> User | None:
        """Return the service account of an issued token, or None."""
        return self._issued(token)


class Credentials:
    """Requires a certificate or a token.

    Requests without credentials are the user ``anonymous``; None rejects them.
    """

    def __init__(
        self, tokens: Mapping[str, User], issued: Lookup, nobody: User | None = None
    ) -> None:
        self._tokens = MappingProxyType({token: _recognized(u) for token, u in tokens.items()})
        self._issued = issued
        self._nobody = nobody

    def user(self, authorization: str, certificate: Certificate | None) -> User:
        """Return the user of a request; raise StatusError (401)."""
        if certificate is not None and certificate.common_name:
            return _certified(certificate)
        token = _bearer_token(authorization)
        found = self._nobody if token is None else self.token_user(token)
        if found is None:
            raise unauthorized()
        return found

    def token_user(self, token: str) -> User | None:
        """Return the user of a static or issued token, or None."""
        return self._tokens.get(token) or self._issued(token)


def certificate_of(subject: Iterable[Iterable[tuple[str, str]]], sha256: str = "") -> Certificate:
    """Return the certificate of a subject in the form of Python's ssl module, with long names."""
    names = [pair for part in subject for pair in part]
    common = [value for name, value in names if name == "commonName"]
    organizations = tuple(value for name, value in names if name == "organizationName")
    return Certificate(common[0] if common else "", organizations, sha256)


def _certified(certificate: Certificate) -> User:
    extra = {_CREDENTIAL_ID: (f"X509SHA256={certificate.sha256}",)} if certificate.sha256 else {}
    user = User(certificate.common_name, "", certificate.organizations, MappingProxyType(extra))
    return _recognized(user)


def _recognized(user: User) -> User:
    if AUTHENTICATED in user.groups:
        return user
    return replace(user, groups=(*user.groups, AUTHENTICATED))


def _bearer_token(authorization: str) -> str | None:
    scheme, _, token = authorization.strip().partition(" ")
    return token.strip() or None if scheme.lower() == _BEARER else None
