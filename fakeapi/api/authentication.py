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
from fakeapi.api.messages import ADMIN_USER, User

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
