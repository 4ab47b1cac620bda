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
    "StatefulSets unwatched",
    "No StatefulSet is watched: a change of its replicas is noticed with the next pod that comes "
    "or goes.",
    "StatefulSets, native and advanced, are watched like the other targets.",
    "Percentages and missing counts would be those of the old size until something else happens.",
)
UNSCHEDULABLE_PODS_IGNORED: Final = Quirk(
    "pods becoming unschedulable unnoticed",
    "A pod update counts only if the pod stops being active or changes its version.",
    "A pod that kube-scheduler finds unschedulable counts, too.",
    "Rescheduling would begin with whatever is looked at next, which may be never.",
)
ADOPTABLE_PODS_IGNORED: Final = Quirk(
    "pods to adopt unnoticed",
    "A pod without the annotation concerns no WorkloadSpread, whatever becomes of it: it is "
    "adopted when its WorkloadSpread is looked at for another reason.",
    "When such a pod is put on a node, or found on one, its owner's WorkloadSpread is looked at.",
    "Pods that came while no webhook was there, or while all subsets were full, would count in no "
    "subset and have no cost until something else happens.",
)
WRITES_WITHOUT_CHANGE: Final = Quirk(
    "writes that change nothing",
    "The comparison with the stored status takes a pointer for a value, so every reconcile writes.",
    "A status that is as it was is not written.",
    "Each write costs the API server a request, and the webhooks, which write the same object, a "
    "conflict.",
)
REVERSED_STANDALONE_COSTS: Final = Quirk(
    "reversed costs for standalone ReplicaSets",
    'A ReplicaSet without a Deployment has the version "", its pods have "versionIgnored": they '
    "count as an old version, which empties its first subset first.",
    "The ReplicaSet's version is that of its pods; its last subset is emptied first.",
    "Scaling down would undo the order of subsets.",
)
CONDITION_LOST: Final = Quirk(
    "a condition lost with a version's last pod",
    "A version that has neither pods nor pods in flight is forgotten with its conditions, so a "
    "subset that is unschedulable is tried again at once, by pods that replace those just deleted.",
    "A version stays until none of its subsets is unschedulable.",
    "The five minutes for which a failed subset is avoided would not be kept in the very case they "
    "are made for.",
)
FILTER_WITHOUT_SELECTOR: Final = Quirk(
    "a filter without selector",
    "A targetFilter without a selector selects no pod in the webhook, and every pod in the "
    "controller.",
    "It selects every pod in both.",
    "The webhook would inject nothing while the controller counts.",
)
WHITELIST_VERSION: Final = Quirk(
    "versions in the whitelist",
    "The controller finds the replicas path of a whitelisted kind only if the version is the "
    "target's, too; the webhook goes by group and kind. The user documentation's own example has "
    "no version.",
    "Both go by group and kind.",
    "The two would reckon with different numbers of replicas.",
)
NUMERIC_STRINGS: Final = Quirk(
    "numeric strings as maxReplicas",
    'A maxReplicas of "5" passes validation, as a percentage; costs take it for 5%; the subset '
    "counts as full; and the status cannot be worked out: an empty one is written, and the "
    "reconcile panics.",
    "Validation lets it pass, too; everywhere else it is the number 5.",
    "What was admitted should work, and nothing else can have been meant.",
)
ORDER_OF_DELETIONS: Final = Quirk(
    "missing replicas by the order of pods",
    "The count of missing replicas stops at 0 while pods are counted, and a pod in deletion adds "
    "one: with more pods than maxReplicas the result depends on the order in which pods are "
    "listed.",
    "What is missing is maxReplicas less the pods that stay or come, and never below 0.",
    "A full subset would get one more pod for each that it is too many.",
)
ADVANCED_PATCH_UNCHECKED: Final = Quirk(
    "patches of advanced StatefulSets unchecked",
    "A StatefulSet of apps.kruise.io is looked up as one of apps/v1; so subsets' patches are not "
    "checked against its template (issue 2539).",
    "It is looked up as what it is, and its patches are checked.",
    "A patch that no pod can have is found when pods fail to be created.",
)
SCALE_WITHOUT_SELECTOR: Final = Quirk(
    "a scale without selector",
    "If no pod is owned by a whitelisted workload, its pods are those that its scale's selector "
    "selects; a scale without one selects all pods of the namespace.",
    "A scale without a selector selects no pod.",
    "Pods of strangers would be annotated, and in adaptive mode deleted.",
)
NEW_PODS_WITHOUT_COST: Final = Quirk(
    "new pods without a cost",
    "The webhook puts a pod into a subset, and its deletion cost is written once the controller "
    "has seen it; until then it counts as 0.",
    "The webhook gives the pod the cost that it will have as one of the newest version; the "
    "controller corrects it where that is wrong.",
    "A scale-down that comes meanwhile would take new pods of the first subsets before old ones of "
    "the last; and each pod would be written twice.",
)
SIMULATION_MISSING: Final = Quirk(
    "simulation scheduling unwritten",
    "disableSimulationSchedule is accepted, but there is nothing to disable.",
    "In adaptive mode a pod passes over a subset none of whose nodes it fits; see below.",
    "The field promises it, and a pod need not fail for minutes where it cannot run.",
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
