"""The order of :mod:`policies.replicaset.pod_ranking` on columns, for many pods at once.

The stages are those of :meth:`policies.kubernetes.criteria.NonTransitiveOrder.sort`: all pods are
sorted by the criteria up to a stop, and then runs of neighbours with the same exact value by the
later criteria. Each stage is one stable sort of integers; the UIDs are sorted once, before them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from policies.replicaset.pod_ranking import (
    LONGEST_AGE,
    MISSING_TIME,
    PHASE_RANKS,
    RankedPod,
    log2_rank,
    scale_down_order,
)

Ints: TypeAlias = NDArray[np.int64]
Keys: TypeAlias = Mapping[str, Callable[[], Ints]]


def sort_for_deletion(
    replicas: Sequence[RankedPod], related_per_node: Mapping[str, int], now_ns: int | None
) -> list[RankedPod]:
    """Return ``replicas``, those to delete first, exactly as scale_down_order sorts them."""
    uids = [each.uid for each in replicas]
    order = np.array(sorted(range(len(uids)), key=uids.__getitem__), np.int64)
    runs = np.zeros(len(uids), np.int64)
    exact = _exact_moments(replicas)
    keys = _keys(replicas, related_per_node, now_ns, exact)
    for stage in scale_down_order(related_per_node, now_ns).stages():
        columns = [runs, *(keys[criterion.name]()[order] for criterion in stage.criteria)]
        ranked = np.lexsort(columns[::-1])
        order = order[ranked]
        if stage.stop is not None:
            columns = [column[ranked] for column in columns]
            runs = _numbered_runs(*columns, exact[stage.stop.name][order])
    return [replicas[row] for row in order.tolist()]


def _numbered_runs(*columns: Ints) -> Ints:
    """Number the runs of rows that equal their neighbours in every column."""
    begins = np.zeros(len(columns[0]), np.bool_)
    for column in columns:
        begins[1:] |= column[1:] != column[:-1]
    return np.cumsum(begins, dtype=np.int64)


def _exact_moments(replicas: Sequence[RankedPod]) -> Mapping[str, Ints]:
    """Return the exact values of the approximate criteria, by the name of the criterion."""
    ready = _column([each.ready for each in replicas])
    since = _moments([each.ready_since_ns for each in replicas])
    return {
        "ready-time": np.where(ready == 1, since, MISSING_TIME),
        "creation-time": _moments([each.created_ns for each in replicas]),
    }


def _keys(
    replicas: Sequence[RankedPod],
    related_per_node: Mapping[str, int],
    now_ns: int | None,
    exact: Mapping[str, Ints],
) -> Keys:
    """Return the keys of each criterion by its name, one row for each pod."""
    return {
        "unscheduled": lambda: _column([each.node != "" for each in replicas]),
        "phase": lambda: _column([PHASE_RANKS.get(each.phase, 0) for each in replicas]),
        "not-ready": lambda: _column([each.ready for each in replicas]),
        "deletion-cost": lambda: _column([each.deletion_cost for each in replicas]),
        "crowding": lambda: -_column([related_per_node.get(each.node, 0) for each in replicas]),
        "ready-time": lambda: _age_ranks(exact["ready-time"], now_ns),
        "restarts": lambda: -_column([each.restarts for each in replicas]),
        "sidecar-restarts": lambda: -_column([each.sidecar_restarts for each in replicas]),
        "creation-time": lambda: _age_ranks(exact["creation-time"], now_ns),
    }


def _column(values: Sequence[int]) -> Ints:
    return np.array(values, np.int64)


def _moments(moments: Sequence[int | None]) -> Ints:
    return _column([MISSING_TIME if moment is None else moment for moment in moments])


def _age_ranks(moments: Ints, now_ns: int | None) -> Ints:
    if now_ns is None:
        return np.where(moments == MISSING_TIME, MISSING_TIME, -moments)
    # The rank of an age is the last one whose smallest age it has reached.
    begun = [max(now_ns - age, MISSING_TIME) for age in reversed(_first_ages())]
    ranks = len(begun) - 1 - np.searchsorted(_column(begun), moments)
    return np.where(moments == MISSING_TIME, MISSING_TIME, ranks)


@cache
def _first_ages() -> tuple[int, ...]:
    """Return the smallest age of each rank, from 0 on."""
    ages = range(1, LONGEST_AGE + 1)
    return tuple(
        ages[bisect_left(ages, rank, key=log2_rank)] for rank in range(log2_rank(LONGEST_AGE) + 1)
    )
