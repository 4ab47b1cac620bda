"""Who asks: client certificates and bearer tokens become users.

A client certificate (whose issuer the TLS layer has checked) counts first: its common name is the
user, its organizations are the groups. Then comes the bearer token: one of the fixed ones, or one
that TokenRequest has issued. A token that nobody knows is refused (401), even where one may ask
without any; a request without credentials is refused unless somebody stands in for ``nobody``.

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
"""Gives the user that a token stands for, or None."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a verified client certificate says; ``sha256`` is its fingerprint in hex."""

    common_name: str
    organizations: tuple[str, ...] = ()
    sha256: str = ""


class Authenticator(Protocol):
    """Tells who asks."""

    def user(self, authorization: str, certificate: Certificate | None) -> User:
        """Return the user of a request's Authorization header and certificate.

        Raises StatusError (401).
        """
        ...

    def token_user(self, token: str) -> User | None:
        """Return the user that a bearer token stands for, or None (for TokenReview)."""
        ...


class Everybody:
    """Nobody is asked for credentials; who shows a token that is known is its user all the same."""

    def __init__(self, issued: Lookup) -> None:
        self._issued = issued

    def user(self, authorization: str, certificate: Certificate | None) -> User:
        """Return the token's user or, whatever else is shown, the administrator."""
        if certificate is not None and certificate.common_name:
            return _certified(certificate)
        return self.token_user(_bearer_token(authorization) or "") or ADMIN

    def token_user(self, token: str) -> User | None:
        """Return the service account of an issued token, or None."""
        return self._issued(token)


class Credentials:
    """Certificates and tokens are asked for; ``nobody`` is who asks without any (None: refused)."""

    def __init__(
        self, tokens: Mapping[str, User], issued: Lookup, nobody: User | None = None
    ) -> None:
        self._tokens = MappingProxyType({token: _recognized(u) for token, u in tokens.items()})
        self._issued = issued
        self._nobody = nobody

    def user(self, authorization: str, certificate: Certificate | None) -> User:
        """Return who asks; raises StatusError (401)."""
        if certificate is not None and certificate.common_name:
            return _certified(certificate)
        token = _bearer_token(authorization)
        found = self._nobody if token is None else self.token_user(token)
        if found is None:
            raise unauthorized()
        return found

    def token_user(self, token: str) -> User | None:
        """Return the user of a fixed token or an issued one, or None."""
        return self._tokens.get(token) or self._issued(token)


def certificate_of(subject: Iterable[Iterable[tuple[str, str]]], sha256: str = "") -> Certificate:
    """Read a certificate's subject as Python's ssl module gives it: names in long form."""
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
