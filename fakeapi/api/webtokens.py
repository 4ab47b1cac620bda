"""JSON web tokens of TokenRequest; clients decode them to see the service account.

The claims are upstream's: ``sub`` (the user), ``aud`` (the audiences), ``exp`` (the expiry), and in
``kubernetes.io`` the service account and the object that the token is bound to. The signature is a
hash that is never verified: the server stores the tokens that it has issued
(:class:`IssuedTokens`).

Source: kubernetes/pkg/serviceaccount/claims.go.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import orjson

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
