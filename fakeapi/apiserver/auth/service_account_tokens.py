"""Service account tokens: the JSON web tokens of TokenRequest that this server has issued.

Clients decode the claims, which are upstream's: ``sub`` (the user), ``aud`` (the audiences),
``exp`` (the expiry), and in ``kubernetes.io`` the service account and the object that the token is
bound to. The signature is a hash that is never verified: the server stores the tokens that it has
issued, with their expiry (RFC 3339 in UTC with whole seconds, compared as text).

A token is valid while its account and the object that it is bound to exist. An object that is being
deleted counts as deleted a minute after its deletion time, as upstream.

Source: kubernetes/pkg/serviceaccount/claims.go (Validate).
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import orjson

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.store.dry_run import ObjectReader
from fakeapi.apiserver.wire.http_messages import User

NEVER: Final = "9999-12-31T23:59:59Z"
"""The expiry of a token that is valid as long as the server runs."""

_LEEWAY_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class BoundObject:
    """An object without which a token is not valid."""

    kind: ResourceInfo
    key: str
    uid: str


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """The user of a token, the time at which the token expires (RFC 3339), and what it needs."""

    user: User
    expires: str
    bound_to: tuple[BoundObject, ...] = ()


class IssuedTokens:
    """Users by token, over the objects of a store.

    ``timestamp(s)`` is the time ``s`` seconds from now.
    """

    def __init__(self, timestamp: Callable[[int], str], objects: ObjectReader) -> None:
        self._timestamp = timestamp
        self._objects = objects
        self._issued: dict[str, TokenRecord] = {}

    def add(self, token: str, record: TokenRecord) -> None:
        """Store a token."""
        self._issued[token] = record

    def user_of(self, token: str) -> User | None:
        """Return the user of a token; None if the token is unknown, expired or invalidated."""
        record = self._issued.get(token)
        if record is None or self._timestamp(0) >= record.expires:
            return None
        return record.user if all(map(self._exists, record.bound_to)) else None

    def _exists(self, bound: BoundObject) -> bool:
        entry = self._objects.get(bound.kind, bound.key)
        metadata = entry.document()["metadata"] if entry is not None else {}
        if metadata.get("uid") != bound.uid:
            return False
        deleted: str | None = metadata.get("deletionTimestamp")
        return deleted is None or deleted >= self._timestamp(-_LEEWAY_SECONDS)

    def add_all(self, others: IssuedTokens) -> None:
        """Add all tokens of ``others``, as a forked server does."""
        self._issued.update(others._issued)


ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
_HEADER: Final = {"alg": "HS256", "kid": "fakeapi"}


@dataclass(frozen=True, slots=True)
class TokenClaims:
    """The claims of a token; ``private`` is the ``kubernetes.io`` claim; times in epoch seconds."""

    subject: str
    audiences: Sequence[str]
    issued: int
    expires: int
    token_id: str
    private: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        """Return the claims as JSON."""
        return {
            "aud": list(self.audiences),
            "exp": self.expires,
            "iat": self.issued,
            "iss": ISSUER,
            "jti": self.token_id,
            "kubernetes.io": dict(self.private),
            "nbf": self.issued,
            "sub": self.subject,
        }


def encode_web_token(claims: TokenClaims) -> str:
    """Return the token: header, claims and signature in URL-safe base64, joined by dots."""
    signed = f"{_encoded(orjson.dumps(_HEADER))}.{_encoded(orjson.dumps(claims.document()))}"
    return f"{signed}.{_encoded(sha256(signed.encode()).digest())}"


def _encoded(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()
