"""Tokens that this server has issued, with their users and expiry.

Timestamps are RFC 3339 in UTC with whole seconds, so they can be compared as text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fakeapi.api.messages import User


@dataclass(frozen=True, slots=True)
class TokenRecord:
    user: User
    expires: str


class IssuedTokens:
    """Users by token; ``timestamp(s)`` is the time ``s`` seconds from now."""

    def __init__(self, timestamp: Callable[[int], str]) -> None:
        self._timestamp = timestamp
        self._issued: dict[str, TokenRecord] = {}

    def add(self, token: str, user: User, expires: str) -> None:
        """Store the user of a token until ``expires``."""
        self._issued[token] = TokenRecord(user, expires)

    def user_of(self, token: str) -> User | None:
        """Return the user of a token; None if the token is unknown or expired."""
        issue = self._issued.get(token)
        return issue.user if issue is not None and self._timestamp(0) < issue.expires else None

    def add_all(self, others: IssuedTokens) -> None:
        """Add all tokens of ``others``, as a forked server does."""
        self._issued.update(others._issued)
