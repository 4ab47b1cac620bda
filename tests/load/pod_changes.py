"""Changes of pods during a load run: a list of writes by a seed.

Small pods are created on some of the nodes, start and are deleted, so that different nodes are
full; and their labels change, so that different disruption budgets cover them. No two pods have the
same start time, so that no decision is random.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final

from tests.bench.clusters import PREFIX

_SEED: Final = 11
_HOT: Final = 10
_PODS_PER_NODE: Final = 1.6
"""On average, of the two that fit on a node."""

_APPS: Final = 200
"""Half of them are covered by a disruption budget."""

_RELABELLED: Final = 0.15
_BEGIN: Final = datetime(2026, 3, 1, tzinfo=UTC)
"""After every pod of the cluster has started."""


@dataclass(frozen=True, slots=True)
class Write:
    """One request that makes one event; ``path`` is below that of the pods."""

    method: str
    path: str = ""
    body: dict[str, Any] | None = None


def hot_nodes(names: Iterable[str]) -> list[str]:
    """Return the nodes whose pods change: one in ten."""
    return sorted(names)[::_HOT]


def writes(nodes: int) -> Iterator[Write]:
    """Return endless changes, the same each time: pods are created, relabelled and deleted."""
    rng = random.Random(_SEED)
    hot = hot_nodes(f"{PREFIX}{index:05}" for index in range(nodes))
    present: list[str] = []
    for number in count():
        if present and rng.random() < _RELABELLED:
            yield _relabel(rng.choice(present), rng.randrange(_APPS), number)
        elif len(present) < _PODS_PER_NODE * len(hot) or rng.random() < 0.5:
            present.append(f"guest-{number}")
            yield from _create(present[-1], rng.choice(hot), _BEGIN + timedelta(seconds=number))
        else:
            name = present.pop(rng.randrange(len(present)))
            yield Write("DELETE", f"/{name}?gracePeriodSeconds=0")


def _create(name: str, node: str, started: datetime) -> Iterator[Write]:
    requests = {"cpu": "1", "memory": "2Gi"}
    container = {"name": "c", "image": "c", "resources": {"requests": requests}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "guest"}},
        "spec": {"nodeName": node, "containers": [container]},
    }
    yield Write("POST", body=pod)
    status = {"phase": "Running", "startTime": f"{started:%Y-%m-%dT%H:%M:%SZ}"}
    yield Write("PATCH", f"/{name}/status", {"status": status})


def _relabel(name: str, app: int, number: int) -> Write:
    labels = {"app": f"app-{app}", "relabelled": str(number)}
    return Write("PATCH", f"/{name}", {"metadata": {"labels": labels}})
