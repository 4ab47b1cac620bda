"""A measure of this machine at this moment: budgets are given in it, not in seconds."""

from __future__ import annotations

import json
import statistics
import time

_DOCUMENT = {"metadata": {"name": "n", "labels": {f"k{i}": f"v{i}" for i in range(20)}}, "spec": {}}
_TURNS = 2_000


def calibrate() -> float:
    """Return the seconds that a fixed piece of work takes: JSON and dicts, median of five."""
    return statistics.median(_work() for _ in range(5))


def _work() -> float:
    started = time.perf_counter()
    for turn in range(_TURNS):
        document = json.loads(json.dumps(_DOCUMENT))
        document["metadata"]["labels"].update({f"x{turn % 7}": "y"})
    return time.perf_counter() - started
