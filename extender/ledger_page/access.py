"""Access to the page: the token, the session of a browser, and the names of the host.

A client sends the token as ``Authorization: Bearer``, or a person enters it once. The browser then
has a cookie that is derived from the token and expires; the token cannot be computed from it other
than by guessing, which the key derivation makes slow. A new token ends all sessions.

The ``Host`` header is checked because a foreign site can make its own name point to this server
(DNS rebinding), and a browser would then send requests of that site here.
"""

from __future__ import annotations

import hmac
from collections import OrderedDict
from collections.abc import Collection
from hashlib import pbkdf2_hmac, sha256
from typing import Final

from extender.kube.rest.clock import Clock
from policies.kubernetes.integers import parse_integer

COOKIE: Final = "reprieve-ledger"
SESSION_SECONDS: Final = 12 * 3600
RETRY_SECONDS: Final = 60
LOOPBACK_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})

_ATTEMPTS: Final = 10
_MAX_CLIENTS: Final = 1000
_ROUNDS: Final = 100_000
_BEARER: Final = "bearer "


class Sessions:
    """Checks tokens, and issues the cookies of sessions."""

    def __init__(self, token: str, clock: Clock) -> None:
        if not token:
            raise ValueError("the page of the ledger needs a token")
        self._clock = clock
        self._token = sha256(token.encode()).digest()
        self._key = pbkdf2_hmac("sha256", token.encode(), b"reprieve ledger page", _ROUNDS)

    def is_token(self, given: str) -> bool:
        """Return whether a text is the token, in the same time for each text."""
        found = sha256(_bytes(given)).digest()
        return hmac.compare_digest(found, self._token)

    def issue(self) -> str:
        """Return the cookie of a new session."""
        expires = str(self._clock.now_ns() // 10**9 + SESSION_SECONDS)
        return f"{expires}.{self._signature(expires)}"

    def is_session(self, cookie: str) -> bool:
        """Return whether a cookie is that of a session that has not expired."""
        expires, _, signature = cookie.partition(".")
        expected = self._signature(expires)
        if not hmac.compare_digest(_bytes(signature), _bytes(expected)):
            return False
        return (parse_integer(expires) or 0) * 10**9 > self._clock.now_ns()

    def _signature(self, expires: str) -> str:
        return hmac.new(self._key, _bytes(expires), "sha256").hexdigest()


class FailedAttempts:
    """Counts the failed attempts of each client: more than ten in a minute are refused."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, list[float]] = OrderedDict()

    def are_too_many(self, client: str) -> bool:
        """Return whether a client has to wait."""
        return len(self._recent(client)) >= _ATTEMPTS

    def record(self, client: str) -> None:
        """Record a failed attempt."""
        self._failures[client] = [*self._recent(client), self._clock.monotonic()]
        self._failures.move_to_end(client)
        if len(self._failures) > _MAX_CLIENTS:
            self._failures.popitem(last=False)

    def _recent(self, client: str) -> list[float]:
        since = self._clock.monotonic() - RETRY_SECONDS
        return [at for at in self._failures.get(client, ()) if at > since]


def _bytes(text: str) -> bytes:
    """Return the bytes of a header, which need not be those of a valid text."""
    return text.encode(errors="surrogateescape")


def bearer_token(header: str) -> str:
    """Return the token of an ``Authorization`` header, "" if it has none."""
    return header[len(_BEARER) :].strip() if header.lower().startswith(_BEARER) else ""


def is_allowed_host(header: str, hosts: Collection[str]) -> bool:
    """Return whether a ``Host`` header names a loopback address or a host, with any port.

    ``hosts`` are in lower case.
    """
    name = header.strip().lower()
    if not name.endswith("]"):
        head, colon, port = name.rpartition(":")
        name = head if colon and port.isdecimal() else name
    return name in LOOPBACK_HOSTS or name in hosts


def local_path(written: str) -> str:
    """Return the path to return to after a login; that of the first page for one elsewhere."""
    is_local = written.startswith("/ui/") and written.isprintable() and "\\" not in written
    return written if is_local else "/ui/"
