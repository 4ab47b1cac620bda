"""Known oddities of OpenKruise, as data: upstream's behavior, the one here, and the reason.

A rule with a quirk checks whether the quirk is enabled. ``UPSTREAM`` has all of them, ``FIXED``
none; docs/workloadspread.md shows this table.

Source: openkruise/kruise at 07169cf (after v1.9.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Quirk:
    """One oddity, described for users."""

    name: str
    upstream: str
    ours: str
    rationale: str


STATEFUL_SETS_UNWATCHED: Final = Quirk(
    "StatefulSets not watched",
    "StatefulSets are not watched, so a change of their replicas takes effect with the next pod "
    "that is created or deleted.",
    "StatefulSets, native and advanced, are watched like the other targets.",
    "Percentages and missing replicas would be those of the old size until then.",
)
UNSCHEDULABLE_PODS_IGNORED: Final = Quirk(
    "unschedulable pods ignored",
    "A pod update triggers a reconcile only if the pod stops being active or changes its version.",
    "A pod that becomes unschedulable also triggers a reconcile.",
    "Rescheduling would begin with the next reconcile for another reason, possibly never.",
)
ADOPTABLE_PODS_IGNORED: Final = Quirk(
    "adoptable pods ignored",
    "A pod without the annotation triggers no reconcile. It is adopted when its WorkloadSpread "
    "is reconciled for another reason.",
    "When such a pod is bound, or is found on a node, the WorkloadSpread of its owner is "
    "reconciled.",
    "Pods that were created while no webhook was available, or while all subsets were full, "
    "would be counted in no subset and have no cost until then.",
)
WRITES_WITHOUT_CHANGE: Final = Quirk(
    "writes without a change",
    "The comparison with the stored status compares a pointer with a value, so every reconcile "
    "writes.",
    "An unchanged status is not written.",
    "Each write costs the API server a request, and causes a conflict for the webhooks, which "
    "write the same object.",
)
REVERSED_STANDALONE_COSTS: Final = Quirk(
    "reversed costs for standalone ReplicaSets",
    'A ReplicaSet without a Deployment has the version "", and its pods have "versionIgnored". '
    "They count as an old version, so pods of the first subset are deleted first.",
    "The version of the ReplicaSet is that of its pods, so pods of the last subset are deleted "
    "first.",
    "Scaling down would undo the order of subsets.",
)
CONDITION_LOST: Final = Quirk(
    "a condition lost with the last pod of a version",
    "The conditions of a version are dropped when it has neither pods nor pods in creation or "
    "deletion. The replacements of pods that were just deleted can then enter an unschedulable "
    "subset immediately.",
    "A version is kept until none of its subsets is unschedulable.",
    "The five minutes for which an unschedulable subset is avoided would not apply in the case "
    "that they are intended for.",
)
FILTER_WITHOUT_SELECTOR: Final = Quirk(
    "a filter without selector",
    "A targetFilter without a selector selects no pod in the webhook, and every pod in the "
    "controller.",
    "It selects every pod in both.",
    "The webhook would inject nothing, but the controller would count the pods.",
)
WHITELIST_VERSION: Final = Quirk(
    "versions in the whitelist",
    "The controller finds the replicas path of a whitelisted kind only if the version also "
    "equals that of the target. The webhook compares group and kind. The example in the user "
    "documentation has no version.",
    "Both compare group and kind.",
    "The controller and the webhook would use different numbers of replicas.",
)
NUMERIC_STRINGS: Final = Quirk(
    "numeric strings as maxReplicas",
    'A maxReplicas of "5" passes validation as a percentage. Costs interpret it as 5%, the '
    "subset counts as full, and the status cannot be computed: an empty one is written, and the "
    "reconcile panics.",
    "It also passes validation, and is the number 5 everywhere else.",
    "A value that was admitted should work, and it has no other plausible meaning.",
)
ORDER_OF_DELETIONS: Final = Quirk(
    "missing replicas by the order of pods",
    "The count of missing replicas stops at 0 while pods are counted, and a pod in deletion adds "
    "one. If there are more pods than maxReplicas, the result depends on the order in which pods "
    "are listed.",
    "The number of missing replicas is maxReplicas minus the pods that exist or are being "
    "created and are not being deleted, and at least 0.",
    "A full subset would get one more pod for each pod above its limit.",
)
ADVANCED_PATCH_UNCHECKED: Final = Quirk(
    "patches of advanced StatefulSets not validated",
    "A StatefulSet of apps.kruise.io is read as one of apps/v1, so the patches of subsets are "
    "not validated against its template (issue 2539).",
    "It is read in its own group, and its patches are validated.",
    "An invalid patch would be found only when the creation of pods fails.",
)
SCALE_WITHOUT_SELECTOR: Final = Quirk(
    "a scale without selector",
    "If no pod is owned by a whitelisted workload, its pods are those that the selector of its "
    "scale selects. A scale without a selector selects all pods of the namespace.",
    "A scale without a selector selects no pod.",
    "Pods of other workloads would be annotated, and in adaptive mode deleted.",
)
NEW_PODS_WITHOUT_COST: Final = Quirk(
    "new pods without a cost",
    "The webhook puts a pod into a subset. Its deletion cost is written after the controller has "
    "observed it, and is 0 until then.",
    "The webhook sets the cost that the pod has as a pod of the newest version. The controller "
    "corrects the cost if it is wrong.",
    "A scale-down in the meantime would delete new pods of the first subsets before old pods of "
    "the last ones, and each pod would be written twice.",
)
SIMULATION_MISSING: Final = Quirk(
    "simulated scheduling not implemented",
    "disableSimulationSchedule is accepted, but simulated scheduling does not exist.",
    "In adaptive mode a pod skips a subset if it fits none of its nodes; see below.",
    "The API defines the field, and a pod does not stay unschedulable for minutes in a subset "
    "where it cannot run.",
)

QUIRKS: Final = (
    STATEFUL_SETS_UNWATCHED,
    UNSCHEDULABLE_PODS_IGNORED,
    ADOPTABLE_PODS_IGNORED,
    WRITES_WITHOUT_CHANGE,
    REVERSED_STANDALONE_COSTS,
    CONDITION_LOST,
    FILTER_WITHOUT_SELECTOR,
    WHITELIST_VERSION,
    NUMERIC_STRINGS,
    ORDER_OF_DELETIONS,
    ADVANCED_PATCH_UNCHECKED,
    SCALE_WITHOUT_SELECTOR,
    NEW_PODS_WITHOUT_COST,
    SIMULATION_MISSING,
)

Quirks = frozenset[Quirk]

UPSTREAM: Final[Quirks] = frozenset(QUIRKS)
FIXED: Final[Quirks] = frozenset()

MODES: Final[Mapping[str, Quirks]] = MappingProxyType({"upstream": UPSTREAM, "fixed": FIXED})
"""The quirks of each mode, by its command-line name."""


class UnknownModeError(ValueError):
    """A mode is unknown; the text lists the known ones."""


def quirks_of_mode(mode: str) -> Quirks:
    """Return the quirks of a mode. Raise UnknownModeError."""
    if mode not in MODES:
        raise UnknownModeError(f"quirks: no mode {mode!r}; expected one of: {', '.join(MODES)}")
    return MODES[mode]
