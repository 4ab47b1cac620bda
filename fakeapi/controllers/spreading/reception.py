"""Where webhooks are asked: what they are given by whoever starts them.

It stands apart from what they do, since whoever starts a cluster needs it, with webhooks or not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Document = dict[str, Any]
Handler = Callable[[bytes], Awaitable[bytes]]
"""Answers a review, JSON in and out."""
Handlers = Mapping[str, Handler]
"""By path."""
Detach = Callable[[], None]
PodCheck = Callable[[Mapping[str, Any]], Iterable[tuple[str, str, str]]]


@dataclass(frozen=True, slots=True)
class Reception:
    """A place where webhooks are asked.

    ``leads_to`` gives the client configuration for a path; ``attend`` has reviews answered by path,
    until its result is called. ``check_pod`` knows the rules of pods: it gives the field without
    ``spec.``, the sort of fault, and the rule.
    """

    leads_to: Callable[[str], Document]
    attend: Callable[[Handlers], Detach]
    check_pod: PodCheck
