"""What happens to the pods of the cluster while it is asked about: a list of changes by a seed.

Small pods, the guests, come to some of the nodes, start to run and go, so that now one node is full
and now another; and they change their labels, so that now one disruption budget covers them and now
another. No two pods have started at the same moment, so that none of these states leaves a decision
to chance.
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
_GUESTS_PER_NODE: Final = 1.6
"""Of the two that a node has room for."""

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
    """Return the nodes that pods come to and go from: one in ten."""
    return sorted(names)[::_HOT]


def writes(nodes: int) -> Iterator[Write]:
    """Return changes without end, the same each time: guests come, are relabelled, and go again."""
    rng = random.Random(_SEED)
    hot = hot_nodes(f"{PREFIX}{index:05}" for index in range(nodes))
    guests: list[str] = []
    for number in count():
        if guests and rng.random() < _RELABELLED:
            yield _relabel(rng.choice(guests), rng.randrange(_APPS), number)
        elif len(guests) < _GUESTS_PER_NODE * len(hot) or rng.random() < 0.5:
            guests.append(f"guest-{number}")
            yield from _come(guests[-1], rng.choice(hot), _BEGIN + timedelta(seconds=number))
        else:
            name = guests.pop(rng.randrange(len(guests)))
            yield Write("DELETE", f"/{name}?gracePeriodSeconds=0")


def _come(name: str, node: str, started: datetime) -> Iterator[Write]:
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
