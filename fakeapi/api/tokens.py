"""Tokens that this server has issued, and for whom, as long as they are valid.

Timestamps are RFC 3339 in UTC with whole seconds, which order as text does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fakeapi.api.messages import User


@dataclass(frozen=True, slots=True)
class _Issue:
    user: User
    expires: str


class IssuedTokens:
    """Users by token; ``timestamp(s)`` is the moment ``s`` seconds from now."""

    def __init__(self, timestamp: Callable[[int], str]) -> None:
        self._timestamp = timestamp
        self._issued: dict[str, _Issue] = {}

    def add(self, token: str, user: User, expires: str) -> None:
        """Remember whom a token stands for until ``expires``."""
        self._issued[token] = _Issue(user, expires)

    def user_of(self, token: str) -> User | None:
        """Return whom a token stands for; None if it is not ours, or no longer valid."""
        issue = self._issued.get(token)
        return issue.user if issue is not None and self._timestamp(0) < issue.expires else None

    def adopt(self, others: IssuedTokens) -> None:
        """Know what ``others`` knows now, as a forked server does."""
        self._issued.update(others._issued)
