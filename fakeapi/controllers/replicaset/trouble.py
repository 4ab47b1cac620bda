"""Errors of requests to the API server, and their messages in Events and statuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from extender.kube.api_error import ApiError, MalformedError
from extender.kube.controller import RetryError
from extender.kube.transport import TransportError

Trouble: TypeAlias = ApiError | MalformedError | RetryError | TransportError
TROUBLES: Final = (ApiError, MalformedError, RetryError, TransportError)
"""Errors that make a sync fail; it is retried."""

_NAMESPACE_TERMINATING: Final = "NamespaceTerminating"


def words(trouble: Trouble) -> str:
    """Return the message of the server's Status, or the text of a client-side error."""
    return trouble.message if isinstance(trouble, ApiError) else str(trouble)


def has_status(trouble: Trouble, *statuses: int) -> bool:
    """Return whether the server answered with one of these HTTP statuses."""
    return isinstance(trouble, ApiError) and trouble.status in statuses


def namespace_terminates(trouble: Trouble) -> bool:
    """Return whether a create was rejected because the namespace is terminating."""
    return isinstance(trouble, ApiError) and _NAMESPACE_TERMINATING in trouble.causes


def aggregate(troubles: Sequence[str]) -> str:
    """Join several messages as upstream's NewAggregate does, each distinct message once."""
    each = list(dict.fromkeys(troubles))
    return each[0] if len(each) == 1 else f"[{', '.join(each)}]"
