"""One decision about a pod with a claim, compared with one about the same pod without.

The claim is bound to a volume of some zones, or waits: for a class that allows one zone, for local
volumes of which every node has one, or for the storage capacity that is reported for every node.
The cost is the median of the decisions by the median of those about the plain pod, in turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from msgspec import structs

from policies.kubernetes.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
)
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.kubernetes.storage import (
    ClaimVolume,
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    CsiVolume,
    PersistentVolume,
    PodStorage,
    StorageClass,
)
from policies.preemption.engine import Engine
from policies.preemption.policy import DEFAULT_RULES
from policies.testing.storage import StorageObject, build_storage
from tests.bench.budgets import Figure, NamedFigures, untimed
from tests.bench.clusters import pending
from tests.bench.decisions.devices import decide
from tests.bench.decisions.questions import kinds_of
from tests.bench.timing import Effort, latency, milliseconds, repeated
from tests.builders import claim
from tests.properties.engines import ENGINES

_DRIVER: Final = "csi.example.com"
_LIMIT: Final = 25
_GIB: Final = 2**30
_ZONE: Final = "topology.kubernetes.io/zone"
_HOST: Final = "kubernetes.io/hostname"


def measure(snapshot: Snapshot, effort: Effort) -> dict[str, Figure]:
    """Measure decisions about a pod with each kind of claim."""
    return dict(_figures(snapshot, effort))


def _figures(snapshot: Snapshot, effort: Effort) -> NamedFigures:
    names = list(snapshot.nodes)
    nodes = [CsiNode(name, frozenset([_DRIVER]), {_DRIVER: _LIMIT}) for name in names]
    plain = pending("plain", len(names))
    mounting = structs.replace(plain, storage=PodStorage(volumes=(ClaimVolume("data"),)))
    for kind, objects in _claims(names).items():
        cluster = replace(snapshot, storage=build_storage([*nodes, *objects]))
        engine = ENGINES["vectorized"](DEFAULT_RULES)
        engine.follow(cluster, None)
        compared, taken = _compare(engine, plain, mounting, cluster, effort)
        ratio = taken / compared
        what = f"a pod with a claim ({kind}), {len(names):,} nodes, by one without: p50"
        shown = f"{ratio:.2f}; {milliseconds(taken)}"
        yield f"volumes-{kind.replace(' ', '-')}", untimed(what, shown, ratio)


def _compare(
    engine: Engine, plain: Pod, mounting: Pod, cluster: Snapshot, effort: Effort
) -> tuple[float, float]:
    """Return the median seconds of decisions about the plain pod, and about the other one."""
    compared: list[float] = []
    kinds = kinds_of(plain)

    def once() -> float:
        compared.append(decide(engine, next(kinds), cluster))
        return decide(engine, mounting, cluster)

    taken = latency(repeated(effort, once)).p50
    return latency(compared).p50, taken


def _claims(names: Sequence[str]) -> Mapping[str, Sequence[StorageObject]]:
    reporting = CsiDriver(_DRIVER, storage_capacity=True)
    return {
        "bound": [
            claim("data", "pv"),
            CsiDriver(_DRIVER),
            PersistentVolume("pv", _only(_ZONE, "zone-0", "zone-1"), csi=CsiVolume(_DRIVER, "v")),
        ],
        "one zone": [
            claim("data", storage_class="zonal"),
            CsiDriver(_DRIVER),
            _storage_class("zonal", _DRIVER, topologies=_only(_ZONE, "zone-0")),
        ],
        "local volumes": [
            claim("data", storage_class="local", request=_GIB),
            _storage_class("local", "kubernetes.io/no-provisioner"),
            *(
                PersistentVolume(
                    f"pv-{name}",
                    _only(_HOST, name),
                    available=True,
                    storage_class="local",
                    capacity=_GIB + place,
                )
                for place, name in enumerate(names)
            ),
        ],
        "capacities": [
            claim("data", storage_class="reported", request=_GIB),
            reporting,
            _storage_class("reported", _DRIVER),
            *(
                CsiStorageCapacity(
                    "default",
                    name,
                    "reported",
                    LabelSelector((Requirement(_HOST, "In", (name,)),)),
                    2 * _GIB,
                )
                for name in names
            ),
        ],
    }


def _storage_class(
    name: str, provisioner: str, topologies: NodeSelector | None = None
) -> StorageClass:
    return StorageClass(name, provisioner, waits_for_first_consumer=True, topologies=topologies)


def _only(key: str, *values: str) -> NodeSelector:
    return NodeSelector((NodeSelectorTerm(labels=(Requirement(key, "In", values),)),))
