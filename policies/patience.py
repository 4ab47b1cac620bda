"""How long a search may go on: a question that it asks between two nodes, answered by its caller.

A dry run that is broken off is still an answer: each candidate found is worked out in full, and the
best of them frees room for the pod; only a better one may have gone unseen. Filtering that is
broken off is none: what was not looked at can neither be called fit nor refused.

What an engine does at a stroke, on all rows of its columns, is not broken off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Patience: TypeAlias = Callable[[], bool]
"""Says whether there is time left for one more node."""


class OutOfTimeError(Exception):
    """Filtering was broken off before every node had been looked at."""


def endless() -> bool:
    """Have all the time there is."""
    return True
