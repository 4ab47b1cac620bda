"""One decision about a pod with a device claim, compared with one about the same pod without.

Every node has eight devices in two groups, of which up to six, drawn at random, are in use; there
are no disruption budgets. Between two decisions nothing, one claim or one slice changes. The cost
is the median of the decisions by the median of those about the plain pod, in turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Final

from msgspec import structs

from policies.kubernetes.snapshot import Pod, Snapshot
from policies.kubernetes.storage import PodStorage, Storage
from policies.preemption.engine import Engine
from policies.preemption.policy import DEFAULT_RULES
from policies.testing.storage import build_storage
from tests.bench.budgets import Figure, NamedFigures, untimed
from tests.bench.clusters import pending
from tests.bench.decisions.questions import kinds_of
from tests.bench.timing import Effort, latency, milliseconds, repeated
from tests.builders.devices import GPU, gpu, gpu_claim, gpus, held_by, request, same, uses
from tests.properties.engines import ENGINES

_WANTED: Final = gpu_claim("wanted", request(count=2), constraints=(same("numa"),))


def measure(snapshot: Snapshot, effort: Effort) -> dict[str, Figure]:
    """Measure decisions after no change, after one of a claim, and after one of a slice."""
    return dict(_figures(snapshot, effort))


def _figures(snapshot: Snapshot, effort: Effort) -> NamedFigures:
    storage = _storage(list(snapshot.nodes))
    cluster = _ChangingDevices(replace(snapshot, storage=storage, budgets=()))
    plain = pending("plain", len(snapshot.nodes))
    claiming = structs.replace(plain, storage=PodStorage(devices=tuple(uses(_WANTED.name))))
    engine = ENGINES["vectorized"](DEFAULT_RULES)
    engine.follow(cluster.snapshot, None)
    kinds = kinds_of(plain)
    decide(engine, plain, cluster.snapshot)
    first = decide(engine, claiming, cluster.snapshot)
    what = f"a pod with a claim, {len(snapshot.nodes):,} nodes"
    yield "devices-first", Figure(f"{what}: the first decision", milliseconds(first), first)
    changes: Mapping[str, tuple[str, Callable[[], None]]] = {
        "same": ("", lambda: None),
        "claim": (", after a claim changed", cluster.change_claim),
        "slice": (", after a slice changed", cluster.change_slice),
    }
    for name, (when, change) in changes.items():
        compared: list[float] = []

        def once(change: Callable[[], None] = change, compared: list[float] = compared) -> float:
            compared.append(decide(engine, next(kinds), cluster.snapshot))
            change()
            return decide(engine, claiming, cluster.snapshot)

        taken = latency(repeated(effort, once)).p50
        ratio = taken / latency(compared).p50
        shown = f"{ratio:.2f}; {milliseconds(taken)}"
        yield f"devices-{name}", untimed(f"{what}{when}, by one without: p50", shown, ratio)


def decide(engine: Engine, pod: Pod, snapshot: Snapshot) -> float:
    """Return the seconds of a decision, read as far as the extender reads it."""
    engine.follow(snapshot, [])
    begun = time.perf_counter()
    decision = engine.preempt(pod, snapshot)
    read = (len(decision.candidates), len(decision.rejected), decision.message)
    if decision.chosen is None:
        raise RuntimeError(f"the benchmark's decision is none: {read}")
    return time.perf_counter() - begun


def _storage(names: list[str]) -> Storage:
    rng = Random(7)
    slices = (
        gpus(node, *(gpu(f"gpu-{n}", numa=n // 4, serial=f"{node}-{n}") for n in range(8)))
        for node in names
    )
    held = (
        held_by(f"{node}-{n}", node, f"gpu-{n}")
        for node in names
        for n in rng.sample(range(8), rng.randrange(7))
    )
    return build_storage([GPU, _WANTED, *slices, *held])


class _ChangingDevices:
    """Snapshots of a cluster in which a claim or a slice of a random node changes."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._rng = Random(7)
        self._names = list(snapshot.nodes)

    def change_claim(self) -> None:
        """Allocate a device of a node to a claim, or delete the claim that has it."""
        node, claims = self._rng.choice(self._names), dict(self.snapshot.storage.devices)
        claim = held_by(f"{node}-0", node, "gpu-0")
        if claims.pop(claim.key, None) is None:
            claims[claim.key] = claim
        self._next(replace(self.snapshot.storage, devices=claims))

    def change_slice(self) -> None:
        """Publish the devices of a node in a new generation."""
        name = f"{self._rng.choice(self._names)}-gpus"
        before = self.snapshot.storage.slices[name]
        newer = {name: replace(before, generation=before.generation + 1)}
        slices = {**self.snapshot.storage.slices, **newer}
        self._next(replace(self.snapshot.storage, slices=slices))

    def _next(self, storage: Storage) -> None:
        generation = self.snapshot.generation + 1
        self.snapshot = replace(self.snapshot, storage=storage, generation=generation)
