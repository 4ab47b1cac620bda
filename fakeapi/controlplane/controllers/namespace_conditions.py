"""The conditions of a namespace that is being deleted.

    condition                                     true when
    NamespaceDeletionDiscoveryFailure             discovery failed
    NamespaceDeletionGroupVersionParsingFailure   discovery returned an invalid group version
    NamespaceDeletionContentFailure               an object could not be deleted
    NamespaceContentRemaining                     objects remain
    NamespaceFinalizersRemaining                  objects with finalizers remain

All five are set from the first pass on, to false if there is no failure.

Source: kubernetes/pkg/controller/namespace/deletion/status_condition_utils.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from extender.kube.rest.resources import Resource

Condition = dict[str, Any]

_SUCCESS: Final[Mapping[str, tuple[str, str]]] = {
    "NamespaceDeletionDiscoveryFailure": (
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentRemoved", "All content successfully removed"),
}


@dataclass(slots=True)
class DeletionPass:
    """The result of one deletion pass over a namespace's content.

    ``undiscovered`` and ``undeleted`` are error messages; ``remaining`` counts objects, and
    ``finalizers`` the objects that have each finalizer. ``estimate`` is in how many seconds the
    next pass is worthwhile.
    """

    undiscovered: Mapping[str, str] = field(default_factory=dict)
    undeleted: list[str] = field(default_factory=list)
    remaining: dict[Resource, int] = field(default_factory=dict)
    finalizers: dict[str, int] = field(default_factory=dict)
    estimate: int = 0

    @property
    def failed(self) -> bool:
        """Whether anything failed, so that the remaining content is unknown."""
        return bool(self.undiscovered or self.undeleted)


def conditions_after(
    found: DeletionPass, before: Sequence[Mapping[str, Any]], now: str
) -> list[Condition] | None:
    """Return the conditions after a pass; None if they equal those ``before``."""
    failing = dict(_failing(found))
    conditions = [_condition(name, failing.get(name)) for name in _SUCCESS]
    after = [dict(condition) for condition in before]
    changed = False
    for condition in conditions:
        old = next((c for c in after if c.get("type") == condition["type"]), None)
        if old is None:
            after.append({**condition, "lastTransitionTime": now})
        elif any(old.get(name) != value for name, value in condition.items()):
            same = old.get("status") == condition["status"]
            old.update(condition, lastTransitionTime=old.get("lastTransitionTime") if same else now)
        else:
            continue
        changed = True
    return after if changed else None


def _condition(name: str, failing: tuple[str, str] | None) -> Condition:
    reason, message = failing or _SUCCESS[name]
    status = "True" if failing else "False"
    return {"type": name, "status": status, "reason": reason, "message": message}


def _failing(found: DeletionPass) -> list[tuple[str, tuple[str, str]]]:
    failing = []
    if found.undiscovered:
        message = _undiscovered(found.undiscovered)
        failing.append(("NamespaceDeletionDiscoveryFailure", ("DiscoveryFailed", message)))
    if found.undeleted:
        resources = ", ".join(sorted(found.undeleted))
        message = (
            f"Failed to delete all resource types, {len(found.undeleted)} remaining: {resources}"
        )
        failing.append(("NamespaceDeletionContentFailure", ("ContentDeletionFailed", message)))
    if found.remaining:
        listed = sorted(
            f"{resource.plural}.{resource.group} has {number} resource instances"
            for resource, number in found.remaining.items()
        )
        message = f"Some resources are remaining: {', '.join(listed)}"
        failing.append(("NamespaceContentRemaining", ("SomeResourcesRemain", message)))
    if found.finalizers:
        listed = sorted(
            f"{name} in {number} resource instances" for name, number in found.finalizers.items()
        )
        message = f"Some finalizers are remaining: {', '.join(listed)}"
        failing.append(("NamespaceFinalizersRemaining", ("SomeFinalizerRemain", message)))
    return failing


def _undiscovered(failures: Mapping[str, str]) -> str:
    listed = ", ".join(f"{version}: {reason}" for version, reason in sorted(failures.items()))
    return (
        f"Discovery failed for some groups, {len(failures)} failing: "
        f"unable to retrieve the complete list of server APIs: {listed}"
    )
