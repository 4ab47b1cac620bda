"""Grouping of pods by version and subset.

A pod's annotation names its subset. A pod without one is adopted: it is assigned to the subset that
its node matches best. Pods that match no subset, or whose subset no longer exists, belong to the
fake subset.

Adoption considers, version by version, how many pods each subset still lacks: maxReplicas less the
pods whose annotation already names the subset. The node that the pod runs on must be eligible for
the pod as a member of the subset: all of its taints are tolerated by the pod and the subset
together, and if the subset requires nodes, the node matches what both require. Among the subsets
that match, the one with the highest score is the best:

    100 · (sum of the weights of the preferred terms that match the node)
     10   if the subset has a patch, and the pod looks as if it had been applied
      1   if the subset is not full

Source: openkruise/kruise pkg/controller/workloadspread, workloadspread_controller.go
(groupVersionedPods, groupPodBySubset, getAndUpdateSuitableSubsetName) and
workloadspread_controller_utils.go (matchesSubset); k8s.io/component-helpers/scheduling/corev1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from policies.kubernetes.integers import INT32_MAX
from policies.kubernetes.selectors import (
    NodeSelectorTerm,
    Requirement,
    SelectorError,
    Taint,
    Toleration,
    field_requirement,
    node_requirement,
)
from policies.kubernetes.snapshot import Node
from policies.workloadspread.model import (
    FAKE_SUBSET,
    Expression,
    NodeTerm,
    SpreadPod,
    Subset,
    SubsetInjection,
    WorkloadSpread,
)
from policies.workloadspread.quirks import Quirks
from policies.workloadspread.subset_counts import lenient_value
from policies.workloadspread.targets import TargetPods
from policies.workloadspread.workload_versions import pod_version

BySubset = Mapping[str, Sequence[SpreadPod]]

PatchComparison = Callable[[SpreadPod, Subset], bool]
"""Returns whether a subset's patch would change nothing about a pod but annotations."""

_MATCHES_NOTHING: Final = Requirement("", "In")
_CACHE_SIZE: Final = 4096


def match_score(
    pod: SpreadPod, node: Node, subset: Subset, remaining: int, patched: PatchComparison
) -> int | None:
    """Return how well ``pod`` on ``node`` matches a subset; None without a match.

    ``remaining`` is how many pods the subset lacks.
    """
    if not _is_eligible(pod, node, subset):
        return None
    preferred = sum(
        preference.weight
        for preference in subset.preferred
        if preference.weight and _accepts(preference.term, node)
    )
    as_patched = subset.patched and patched(pod, subset)
    return 100 * preferred + 10 * as_patched + (remaining > 0)


def _is_eligible(pod: SpreadPod, node: Node, subset: Subset) -> bool:
    tolerations = (*pod.tolerations, *(each.toleration for each in subset.tolerations))
    if not all(_tolerated(taint, tolerations) for taint in node.taints):
        return False
    required = subset.required
    if required is None:
        return True
    terms = [term & required for term in pod.node_terms] or [required]
    return any(_accepts(term, node) for term in terms)


def _tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(toleration.tolerates(taint) for toleration in tolerations)


def _accepts(term: NodeTerm, node: Node) -> bool:
    return _compiled(term).matches(node.name, node.labels)


@lru_cache(maxsize=_CACHE_SIZE)
def _compiled(term: NodeTerm) -> NodeSelectorTerm:
    """Compile a term; an invalid term matches no node."""
    try:
        return NodeSelectorTerm(
            labels=tuple(_requirement(node_requirement, each) for each in term.expressions),
            fields=tuple(_requirement(field_requirement, each) for each in term.fields),
        )
    except SelectorError:
        return NodeSelectorTerm(labels=(_MATCHES_NOTHING,))


def _requirement(
    compile_one: Callable[[str, str, tuple[str, ...]], Requirement], expression: Expression
) -> Requirement:
    return compile_one(expression.key, expression.operator, expression.values)


@dataclass(frozen=True, slots=True)
class PodGroups:
    """Pods by version and subset, pods by subset, and the pods that have been adopted.

    Adopted pods are grouped with the annotation that they will have; ``adopted`` maps their names
    to their subsets.
    """

    versions: Mapping[str, BySubset]
    subsets: BySubset
    adopted: Mapping[str, Subset]


@dataclass(frozen=True, slots=True)
class GroupingContext:
    """The context of grouping besides pods: nodes by name, and the comparison of patches."""

    nodes: Mapping[str, Node]
    patched: PatchComparison


def group_pods(
    spread: WorkloadSpread,
    target_pods: TargetPods,
    context: GroupingContext,
    kinds: frozenset[str],
    quirks: Quirks,
) -> PodGroups:
    """Put each pod into its version and subset."""
    by_version: dict[str, list[SpreadPod]] = {}
    for pod in target_pods.pods:
        by_version.setdefault(pod_version(pod, kinds), []).append(pod)
    names = {subset.name for subset in spread.subsets}
    adopted: dict[str, Subset] = {}
    versions: dict[str, BySubset] = {}
    subsets: dict[str, list[SpreadPod]] = {}
    for version, pods in by_version.items():
        remaining: Counter[str] | None = None  # only computed if there are pods to adopt
        placed: dict[str, list[SpreadPod]] = {}
        for pod in pods:
            own = pod
            if not pod.belongs_to(spread):
                remaining = remaining or _remaining(spread, pods, target_pods.replicas, quirks)
                own = _adopt(spread, pod, context, remaining, adopted)
            placed.setdefault(_subset_of(spread, own, names), []).append(own)
        versions[version] = placed
        for name, these in placed.items():
            subsets.setdefault(name, []).extend(these)
    return PodGroups(versions, subsets, adopted)


def best_subset(
    subsets: Iterable[Subset],
    pod: SpreadPod,
    context: GroupingContext,
    remaining: Mapping[str, int],
) -> Subset | None:
    """Return the subset that a pod matches best; the earlier of equals."""
    node = context.nodes.get(pod.node)
    if node is None:
        return None
    best: tuple[int, Subset] | None = None
    for subset in subsets:
        score = match_score(pod, node, subset, remaining[subset.name], context.patched)
        if score is not None and (best is None or score > best[0]):
            best = score, subset
    return None if best is None or best[0] < 0 else best[1]


def _adopt(
    spread: WorkloadSpread,
    pod: SpreadPod,
    context: GroupingContext,
    remaining: Counter[str],
    adopted: dict[str, Subset],
) -> SpreadPod:
    subset = best_subset(spread.subsets, pod, context, remaining)
    if subset is None:
        return pod
    remaining[subset.name] -= 1
    adopted[pod.name] = subset
    return replace(pod, injection=SubsetInjection(spread.name, subset.name))


def _subset_of(spread: WorkloadSpread, pod: SpreadPod, names: AbstractSet[str]) -> str:
    injection = pod.injection if pod.belongs_to(spread) else None
    if injection is None or injection.subset not in names:
        return FAKE_SUBSET
    return injection.subset


def _remaining(
    spread: WorkloadSpread, pods: Iterable[SpreadPod], replicas: int, quirks: Quirks
) -> Counter[str]:
    remaining = Counter(
        {
            each.name: lenient_value(each.max_replicas, replicas, quirks, INT32_MAX)
            for each in spread.subsets
        }
    )
    remaining.subtract(
        pod.injection.subset for pod in pods if pod.injection and pod.belongs_to(spread)
    )
    return remaining
