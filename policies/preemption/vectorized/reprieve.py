"""The reprieve of pods on all rows: those that a row can keep are added back, depth by depth.

``_dry_run.c`` does the same, where it was compiled at installation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from policies.preemption.columns.encoded_column import Bools
from policies.preemption.vectorized.filtering.framework import Capacity
from policies.preemption.vectorized.row_view import masked

try:
    from policies.preemption.vectorized import _dry_run
except ImportError:
    COMPILED = False
else:
    COMPILED = True


def reprieve(pods: Bools, victims: Bools, capacities: Sequence[Capacity]) -> None:
    """Take the marked ``pods`` out of ``victims`` where all capacities suffice.

    Both are (depth, rows). What the reprieved pods take is subtracted from the capacities.
    """
    if COMPILED:
        _dry_run.reprieve(pods, victims, tuple((each.left, each.taken) for each in capacities))
    else:
        reprieve_by_depth(pods, victims, capacities)


def reprieve_by_depth(pods: Bools, victims: Bools, capacities: Sequence[Capacity]) -> None:
    """Do the same as :func:`reprieve` with NumPy, one depth of all rows at a time."""
    for depth in np.flatnonzero(pods.any(axis=1)).tolist():
        reprieved = pods[depth].copy()
        for each in capacities:
            reprieved &= each.left >= each.taken[depth]
        for each in capacities:
            each.left[:] -= masked(each.taken[depth], reprieved)
        victims[depth] &= ~reprieved
