"""The time limit of a search: a callback that the search evaluates between two nodes.

A dry run that is cut short still has a result: each candidate found is complete, and the best of
them frees enough resources for the pod; only a better one may be missing. Filtering that is cut
short has no result: a node that was not evaluated is neither feasible nor refused.

Operations of an engine on all rows of its columns at once are not cut short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

HasTimeLeft: TypeAlias = Callable[[], bool]
"""Returns whether there is time left for one more node."""


class DeadlineExceededError(Exception):
    """The time limit ended filtering before every node was evaluated."""


def no_deadline() -> bool:
    """Return true: there is no time limit."""
    return True
