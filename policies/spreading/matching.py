"""The match between a subset and a pod without one, based on the node that the pod runs on.

The node must be eligible for the pod as a member of the subset: all of its taints are tolerated by
the pod and the subset together, and if the subset requires nodes, the node matches what both
require. Among the subsets that match, the one with the highest score is the best:

    100 · (sum of the weights of the preferred terms that match the node)
     10   if the subset has a patch, and the pod looks as if it had been applied
      1   if the subset is not full

Source: matchesSubset in openkruise/kruise pkg/controller/workloadspread/
workloadspread_controller_utils.go; k8s.io/component-helpers/scheduling/corev1/nodeaffinity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

from policies.model import Node
from policies.selectors import (
    NodeSelectorTerm,
    Requirement,
    SelectorError,
    Taint,
    Toleration,
    field_requirement,
    node_requirement,
)
from policies.spreading.model import Expression, NodeTerm, SpreadPod, Subset

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
