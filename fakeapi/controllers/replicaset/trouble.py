"""What may go wrong when the server is asked, and how it is worded for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from extender.kube.api_error import ApiError, MalformedError
from extender.kube.controller import RetryError
from extender.kube.transport import TransportError

Trouble: TypeAlias = ApiError | MalformedError | RetryError | TransportError
TROUBLES: Final = (ApiError, MalformedError, RetryError, TransportError)
"""What a sync may fail of; it is tried again."""

_NAMESPACE_TERMINATING: Final = "NamespaceTerminating"


def words(trouble: Trouble) -> str:
    """Return what the server said, in its own words, or why it said nothing."""
    return trouble.message if isinstance(trouble, ApiError) else str(trouble)


def has_status(trouble: Trouble, *statuses: int) -> bool:
    """Return whether a server refused with one of these."""
    return isinstance(trouble, ApiError) and trouble.status in statuses


def namespace_terminates(trouble: Trouble) -> bool:
    """Return whether a create was refused because the namespace is on its way out."""
    return isinstance(trouble, ApiError) and _NAMESPACE_TERMINATING in trouble.causes


def aggregate(troubles: Sequence[str]) -> str:
    """Put several texts together as upstream's NewAggregate does, each once."""
    each = list(dict.fromkeys(troubles))
    return each[0] if len(each) == 1 else f"[{', '.join(each)}]"
