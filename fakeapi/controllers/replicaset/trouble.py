"""Errors of requests to the API server, and their messages in Events and statuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from extender.kube.api_error import ApiError, MalformedError
from extender.kube.controller import RetryError
from extender.kube.transport import TransportError

SyncError: TypeAlias = ApiError | MalformedError | RetryError | TransportError
SYNC_ERRORS: Final = (ApiError, MalformedError, RetryError, TransportError)
"""Errors that make a sync fail; it is retried."""

_NAMESPACE_TERMINATING: Final = "NamespaceTerminating"


def error_message(error: SyncError) -> str:
    """Return the message of the server's Status, or the text of a client-side error."""
    return error.message if isinstance(error, ApiError) else str(error)


def has_status(error: SyncError, *statuses: int) -> bool:
    """Return whether the server answered with one of these HTTP statuses."""
    return isinstance(error, ApiError) and error.status in statuses


def is_namespace_terminating(error: SyncError) -> bool:
    """Return whether a create was rejected because the namespace is terminating."""
    return isinstance(error, ApiError) and _NAMESPACE_TERMINATING in error.causes


def aggregate_messages(messages: Sequence[str]) -> str:
    """Join several messages as upstream's NewAggregate does, each distinct message once."""
    each = list(dict.fromkeys(messages))
    return each[0] if len(each) == 1 else f"[{', '.join(each)}]"
