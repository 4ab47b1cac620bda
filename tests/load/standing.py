"""Which broken budgets stand, since a busy machine may have broken some of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

UNFORGIVEN: Final = frozenset({"wrong", "unchecked", "errors", "unclean-above"})
"""What no noise of the machine excuses; what else is over its limit is measured once more."""


def standing(
    measure: Callable[[], Mapping[str, str]], say: Callable[[str], None]
) -> dict[str, str]:
    """Return the budgets that are broken, by name, and how; ``measure`` finds them in a run.

    What is broken in the first run is forgiven if it holds in a second one. What is in
    :data:`UNFORGIVEN` has to hold in each.
    """
    broken = measure()
    if not broken or UNFORGIVEN.intersection(broken):
        return dict(broken)
    say(f"over budget, measured once more: {', '.join(broken)}")
    counting = {*broken, *UNFORGIVEN}
    return {name: fault for name, fault in measure().items() if name in counting}
