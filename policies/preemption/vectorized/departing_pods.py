"""The pods of :mod:`policies.preemption.departing_pods` as marks on the pod block."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from policies.preemption.columns import ClusterColumns
from policies.preemption.columns.cluster_columns import DEPARTING
from policies.preemption.columns.encoded_column import Bools
from policies.preemption.columns.pod_block import FLAGS, PRIORITY
from policies.preemption.departing_pods import PossibleVictims
from policies.preemption.vectorized.evaluation import PodEvaluation
from policies.preemption.vectorized.row_view import Rows, any_by_row


def names_with_departing(columns: ClusterColumns, rows: Rows) -> frozenset[str]:
    """Return the names of those of ``rows`` that have departing pods."""
    if not columns.departing:
        return frozenset()
    marks = np.zeros(len(columns.names), np.bool_)
    marks[rows] = True
    return frozenset(name for name in columns.departing if marks[columns.index[name]])


def departing_marks(columns: ClusterColumns, names: Collection[str]) -> Bools:
    """Return the departing pods on some nodes as marks, (depth, width)."""
    flags = columns.pod_block.used()[FLAGS]
    marks = np.zeros(flags.shape, np.bool_)
    rows = [columns.index[name] for name in names]
    marks[:, rows] = flags[:, rows] & DEPARTING != 0
    return marks


def rows_that_differ(staying: PodEvaluation, without: PodEvaluation, absent: Bools) -> Bools:
    """Return the rows whose status may differ without the ``absent`` pods.

    If no row depends on others, that is those with absent pods, or with nominated pods that may be
    assumed.
    """
    columns = without.filter_input.columns
    if not (staying.has_independent_rows and without.has_independent_rows):
        return np.ones(len(columns.names), np.bool_)
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
