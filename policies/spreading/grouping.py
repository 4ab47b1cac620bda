"""Grouping of pods by version and subset.

A pod's annotation names its subset. A pod without one is adopted: it is assigned to the subset that
its node matches best. Pods that match no subset, or whose subset no longer exists, belong to the
fake subset.

Adoption considers, version by version, how many pods each subset still lacks: maxReplicas less the
pods whose annotation already names the subset.

Source: openkruise/kruise pkg/controller/workloadspread/workloadspread_controller.go
(groupVersionedPods, groupPodBySubset, getAndUpdateSuitableSubsetName).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from policies.model import Node
from policies.spreading.limits import LimitError, scaled
from policies.spreading.matching import Patched, match_score
from policies.spreading.model import (
    FAKE_SUBSET,
    Injection,
    Spread,
    SpreadPod,
    Subset,
)
from policies.spreading.quirks import Quirks
from policies.spreading.targets import Members
from policies.spreading.versions import pod_version

_MOST = 2**31 - 1

BySubset = Mapping[str, Sequence[SpreadPod]]


@dataclass(frozen=True, slots=True)
class Groups:
    """Pods by version and subset, pods by subset, and the pods that have been adopted.

    Adopted pods are grouped with the annotation that they will have; ``adopted`` maps their names
    to their subsets.
    """

    versions: Mapping[str, BySubset]
    subsets: BySubset
    adopted: Mapping[str, Subset]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The context of grouping besides pods: nodes by name, and the comparison of patches."""

    nodes: Mapping[str, Node]
    patched: Patched


def group(
    spread: Spread,
    members: Members,
    around: Surroundings,
    kinds: frozenset[str],
    quirks: Quirks,
) -> Groups:
    """Put each pod into its version and subset."""
    by_version: dict[str, list[SpreadPod]] = {}
    for pod in members.pods:
        by_version.setdefault(pod_version(pod, kinds), []).append(pod)
    names = {subset.name for subset in spread.subsets}
    adopted: dict[str, Subset] = {}
    versions: dict[str, BySubset] = {}
    subsets: dict[str, list[SpreadPod]] = {}
    for version, pods in by_version.items():
        left: Counter[str] | None = None  # only computed if there are pods to adopt
        placed: dict[str, list[SpreadPod]] = {}
        for pod in pods:
            own = pod
            if not pod.belongs_to(spread):
                left = left or _left(spread, pods, members.replicas, quirks)
                own = _adopt(spread, pod, around, left, adopted)
            placed.setdefault(_subset_of(spread, own, names), []).append(own)
        versions[version] = placed
        for name, these in placed.items():
            subsets.setdefault(name, []).extend(these)
    return Groups(versions, subsets, adopted)


def best_subset(
    subsets: Iterable[Subset],
    pod: SpreadPod,
    around: Surroundings,
    left: Mapping[str, int],
) -> Subset | None:
    """Return the subset that a pod matches best; the earlier of equals."""
    node = around.nodes.get(pod.node)
    if node is None:
        return None
    best: tuple[int, Subset] | None = None
    for subset in subsets:
        score = match_score(pod, node, subset, left[subset.name], around.patched)
        if score is not None and (best is None or score > best[0]):
            best = score, subset
    return None if best is None or best[0] < 0 else best[1]


def _adopt(
    spread: Spread,
    pod: SpreadPod,
    around: Surroundings,
    left: Counter[str],
    adopted: dict[str, Subset],
) -> SpreadPod:
    subset = best_subset(spread.subsets, pod, around, left)
    if subset is None:
        return pod
    left[subset.name] -= 1
    adopted[pod.name] = subset
    return replace(pod, injection=Injection(spread.name, subset.name))


def _subset_of(spread: Spread, pod: SpreadPod, names: AbstractSet[str]) -> str:
    given = pod.injection if pod.belongs_to(spread) else None
    return FAKE_SUBSET if given is None or given.subset not in names else given.subset


def _left(spread: Spread, pods: Iterable[SpreadPod], replicas: int, quirks: Quirks) -> Counter[str]:
    left: Counter[str] = Counter()
    for subset in spread.subsets:
        left[subset.name] = _most(subset, replicas, quirks)
    left.subtract(pod.injection.subset for pod in pods if pod.injection and pod.belongs_to(spread))
    return left


def _most(subset: Subset, replicas: int, quirks: Quirks) -> int:
    if subset.max_replicas is None:
        return _MOST
    try:
        return scaled(subset.max_replicas, replicas, quirks)
    except LimitError:
        return 0
