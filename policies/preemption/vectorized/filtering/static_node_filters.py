"""Filters that read only node properties: cordons, names, taints, labels, declared features.

Each distinct value is evaluated once, however many nodes have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from policies.kubernetes.feature_gates import FeatureGate
from policies.kubernetes.releases import Release
from policies.kubernetes.selectors import (
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
    Taint,
    Toleration,
    untolerated,
)
from policies.kubernetes.snapshot import Pod
from policies.preemption.columns import ClusterColumns
from policies.preemption.columns.encoded_column import Bools
from policies.preemption.filtering import (
    Filter,
    NodeAffinity,
    node_affinity,
    node_declared_features,
    node_name,
    node_unschedulable,
    taint_toleration,
)
from policies.preemption.vectorized.filtering.framework import (
    Constraint,
    ConstraintWithoutCapacities,
    FilterInput,
    NodeConstraint,
    VectorizedFilter,
)
from policies.preemption.vectorized.row_view import RowView
from policies.preemption.vectorized.status import FITS, Rejections, RowStatuses

_MAX_REQUIREMENTS: Final = 256
"""The maximum number of requirements of a pod on labels: each is evaluated for all nodes at once,
while the reference engine heeds the time limit between nodes."""


def vectorize_node_unschedulable(_: Filter, filter_input: FilterInput) -> VectorizedFilter:
    """Return the vectorized NodeUnschedulable."""
    if any(each.tolerates(node_unschedulable.CORDON) for each in filter_input.pod.tolerations):
        return VectorizedFilter()
    refused = filter_input.columns.nodes.unschedulable
    return VectorizedFilter((NodeConstraint(refused, node_unschedulable.REFUSAL),))


def vectorize_node_name(_: Filter, filter_input: FilterInput) -> VectorizedFilter:
    """Return the vectorized NodeName."""
    requested = filter_input.pod.node_name
    if requested is None:
        return VectorizedFilter()
    others = ~rows_named(filter_input.columns, (requested,))
    return VectorizedFilter((NodeConstraint(others, node_name.REFUSAL),))


def vectorize_taint_toleration(_: Filter, filter_input: FilterInput) -> VectorizedFilter:
    """Return the vectorized TaintToleration."""
    pod, release = filter_input.pod, filter_input.release
    tolerations = taint_toleration.effective_tolerations(pod, release)
    return VectorizedFilter((TaintsConstraint(tolerations, release),))


def vectorize_node_declared_features(filter_input: FilterInput) -> VectorizedFilter:
    """Return the vectorized NodeDeclaredFeatures."""
    required = filter_input.pod.required_features
    gates = filter_input.release.gates
    if FeatureGate.NODE_DECLARED_FEATURES not in gates or not required:
        return VectorizedFilter()
    declared = filter_input.columns.nodes.declared_features.where(required.issubset)
    return VectorizedFilter((NodeConstraint(~declared, node_declared_features.REFUSAL),))


def vectorize_node_affinity(
    affinity: NodeAffinity, filter_input: FilterInput
) -> VectorizedFilter | None:
    """Return the vectorized NodeAffinity: the scheduler's added affinity, then the pod's own.

    Return None for a pod with too many requirements.
    """
    pod, columns = filter_input.pod, filter_input.columns
    terms = () if pod.node_affinity is None else pod.node_affinity.terms
    own = (pod.node_selector, *(each for term in terms for each in (term.labels, term.fields)))
    if sum(map(len, own)) > _MAX_REQUIREMENTS:
        return None
    found: list[Constraint] = []
    if affinity.added is not None:
        others = ~rows_selected(affinity.added, columns)
        found.append(NodeConstraint(others, node_affinity.ENFORCED))
    if pod.node_affinity is not None or pod.node_selector:
        found.append(NodeConstraint(~may_run_on(pod, columns), node_affinity.REFUSAL))
    return VectorizedFilter(tuple(found))


def may_run_on(pod: Pod, columns: ClusterColumns) -> Bools:
    """Return which nodes match the pod's nodeSelector and required node affinity."""
    matching = np.ones(len(columns.names), np.bool_)
    for requirement in pod.node_selector:
        matching &= _rows_with(requirement, columns)
    if pod.node_affinity is not None:
        matching &= rows_selected(pod.node_affinity, columns)
    return matching


def rows_selected(selector: NodeSelector, columns: ClusterColumns) -> Bools:
    """Return which nodes match some term of ``selector``."""
    matching = np.zeros(len(columns.names), np.bool_)
    for term in selector.terms:
        matching |= _rows_of_term(term, columns)
    return matching


def tolerated(filter_input: FilterInput) -> Bools:
    """Return which nodes have no taint that keeps the pod away."""
    pod, taints = filter_input.pod, filter_input.columns.nodes.taints
    tolerations = taint_toleration.effective_tolerations(pod, filter_input.release)
    return taints.where(lambda each: untolerated(each, tolerations) is None)


def rows_named(columns: ClusterColumns, names: Iterable[str]) -> Bools:
    """Return which nodes have one of ``names``."""
    found = np.zeros(len(columns.names), np.bool_)
    for name in names:
        row = columns.index.get(name)
        if row is not None:
            found[row] = True
    return found


@dataclass(frozen=True)
class TaintsConstraint(ConstraintWithoutCapacities):
    """The taint toleration filter of one pod."""

    tolerations: tuple[Toleration, ...]
    release: Release

    def evaluate(self, view: RowView, statuses: RowStatuses) -> None:
        """Refuse the rows with a taint that the pod does not tolerate."""
        column = view.columns.nodes.taints
        found = [self._code(each, statuses.rejections) for each in column.values]
        if any(found):
            statuses.refuse_each(np.array(found, np.int32).take(view.of_nodes(column.codes)))

    def _code(self, taints: Sequence[Taint], rejections: Rejections) -> int:
        taint = untolerated(taints, self.tolerations)
        if taint is None:
            return FITS
        return rejections.code(taint_toleration.refusal(taint, self.release))


def _rows_of_term(term: NodeSelectorTerm, columns: ClusterColumns) -> Bools:
    if not term.labels and not term.fields:
        return np.zeros(len(columns.names), np.bool_)
    matching = np.ones(len(columns.names), np.bool_)
    for requirement in term.labels:
        matching &= _rows_with(requirement, columns)
    for requirement in term.fields:
        matching &= _rows_of_field(requirement, columns)
    return matching


def _rows_with(requirement: Requirement, columns: ClusterColumns) -> Bools:
    column = columns.nodes.labels(requirement.key)
    if requirement.operator == "In":
        codes = [column.code_of(value) for value in requirement.values]
        found: Bools = np.isin(column.rows(), codes)
        return found
    return column.where(
        lambda value: requirement.matches({} if value is None else {requirement.key: value})
    )


def _rows_of_field(requirement: Requirement, columns: ClusterColumns) -> Bools:
    # metadata.name is the only field of a node that can be selected; others are empty.
    if requirement.key == "metadata.name":
        same = rows_named(columns, requirement.values)
    else:
        same = np.full(len(columns.names), requirement.values[0] == "")
    return same if requirement.operator == "In" else ~same
