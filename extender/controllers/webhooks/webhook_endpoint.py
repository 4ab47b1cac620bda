"""The endpoint at which webhooks are served, provided by the process that runs them.

It is separate from the webhooks, because a cluster takes an endpoint even if it runs no webhooks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Document = dict[str, Any]
Handler = Callable[[bytes], Awaitable[bytes]]
"""Answers a review; request and response are JSON."""
Handlers = Mapping[str, Handler]
"""Handlers by path."""
Detach = Callable[[], None]
PodCheck = Callable[[Mapping[str, Any]], Iterable[tuple[str, str, str]]]


@dataclass(frozen=True, slots=True)
class WebhookEndpoint:
    """An endpoint where webhooks are served.

    ``client_config`` returns the clientConfig for a path. ``serve`` registers handlers by path
    until its result is called. ``check_pod`` validates a pod: each error is a field path without
    ``spec.``, an error type, and a detail.
    """

    client_config: Callable[[str], Document]
    serve: Callable[[Handlers], Detach]
    check_pod: PodCheck
