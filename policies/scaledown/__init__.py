"""Scaling down: which pods of a ReplicaSet are deleted first, and why."""

from __future__ import annotations

from policies.scaledown.choosing import (
    ALL_GO,
    Precedence,
    ScaleDownDecision,
    choose_victims,
    decide_scale_down,
    deletion_age_ratio,
)
from policies.scaledown.ranking import log2_rank, scale_down_order
from policies.scaledown.relation import Member, Related, ReplicaSet, claimed, crowding, related
from policies.scaledown.replica import (
    DELETION_COST,
    Replica,
    is_deletion_cost,
    parse_deletion_cost,
)

__all__ = [
    "ALL_GO",
    "DELETION_COST",
    "Member",
    "Precedence",
    "Related",
    "Replica",
    "ReplicaSet",
    "ScaleDownDecision",
    "choose_victims",
    "claimed",
    "crowding",
    "decide_scale_down",
    "deletion_age_ratio",
    "is_deletion_cost",
    "log2_rank",
    "parse_deletion_cost",
    "related",
    "scale_down_order",
]
