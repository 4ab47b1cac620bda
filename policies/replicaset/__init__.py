"""Scaling down: which pods of a ReplicaSet are deleted first, and why."""

from __future__ import annotations

from policies.replicaset.pod_ranking import (
    DELETION_COST,
    RankedPod,
    is_deletion_cost,
    log2_rank,
    parse_deletion_cost,
    scale_down_order,
)
from policies.replicaset.related_pods import (
    RelatedPod,
    ReplicaSet,
    ReplicaSetPod,
    claimed_pods,
    indirectly_related_pods,
    related_pods_per_node,
)
from policies.replicaset.scale_down import (
    ALL_DELETED,
    RankExplanation,
    ScaleDownDecision,
    decide_scale_down,
    deletion_age_ratio,
    pods_to_delete,
)

__all__ = [
    "ALL_DELETED",
    "DELETION_COST",
    "RankExplanation",
    "RankedPod",
    "RelatedPod",
    "ReplicaSet",
    "ReplicaSetPod",
    "ScaleDownDecision",
    "claimed_pods",
    "decide_scale_down",
    "deletion_age_ratio",
    "indirectly_related_pods",
    "is_deletion_cost",
    "log2_rank",
    "parse_deletion_cost",
    "pods_to_delete",
    "related_pods_per_node",
    "scale_down_order",
]
