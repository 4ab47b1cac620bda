"""The pods of :mod:`policies.preemption.departing_pods` as marks on the pod block."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from policies.preemption.columns import ClusterColumns
from policies.preemption.columns.cluster_columns import DEPARTING
from policies.preemption.columns.encoded_column import Bools
from policies.preemption.columns.pod_block import FLAGS, PRIORITY
from policies.preemption.departing_pods import PossibleVictims
from policies.preemption.vectorized.row_view import any_by_row


def departing_marks(columns: ClusterColumns, names: Collection[str]) -> Bools:
    """Return the departing pods on some nodes as marks, (depth, width)."""
    flags = columns.pod_block.used()[FLAGS]
    marks = np.zeros(flags.shape, np.bool_)
    rows = [columns.index[name] for name in names]
    marks[:, rows] = flags[:, rows] & DEPARTING != 0
    return marks


def rows_with_departing(columns: ClusterColumns, absent: Bools) -> Bools:
    """Return the rows with absent pods, or with nominated pods that may be assumed."""
    found = any_by_row(absent)[: len(columns.names)]
    found[[columns.index[name] for name in columns.departing]] = True
    return found


def possible_victim_marks(victims: PossibleVictims, columns: ClusterColumns) -> Bools:
    """Return the possible victims of a pod group as marks, (depth, width)."""
    used = columns.pod_block.used()
    marks: Bools = (used[PRIORITY] < victims.priority) | (used[FLAGS] & DEPARTING != 0)
    for row in (columns.index[name] for name in columns.with_grouped):
        for depth, pod in enumerate(columns.pods[row]):
            if pod.group:
                marks[depth, row] = victims.includes(pod)
    return marks
