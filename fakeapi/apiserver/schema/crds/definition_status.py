"""A definition's status: accepted names, conditions, stored versions.

A name is accepted unless another definition of the group uses it. An accepted name stays accepted
until another one is accepted in its place. A definition is established as soon as all of its names
are accepted, and stays established.

Sources: pkg/controller/status/naming_controller.go, pkg/controller/establish,
pkg/controller/finalizer/crd_finalizer.go of k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fakeapi.apiserver.objects.conditions import find_condition, set_condition
from fakeapi.apiserver.schema.crds.version_validation import is_ca_bundle
from fakeapi.apiserver.store.object_store import Document

Json = Mapping[str, Any]

NAMES_ACCEPTED: Final = "NamesAccepted"
ESTABLISHED: Final = "Established"
TERMINATING: Final = "Terminating"

_SINGLE: Final = (
    ("plural", "PluralConflict"),
    ("singular", "SingularConflict"),
    ("kind", "KindConflict"),
    ("listKind", "ListKindConflict"),
)
_INSTALLED: Final = "the initial names have been accepted"


def condition(kind: str, *, holds: bool, reason: str, message: str) -> dict[str, str]:
    """Return a condition without its transition time."""
    status = "True" if holds else "False"
    return {"type": kind, "status": status, "reason": reason, "message": message}


DELETION_BEGUN: Final = condition(
    TERMINATING,
    holds=True,
    reason="InstanceDeletionInProgress",
    message="CustomResource deletion is in progress",
)
DELETION_DONE: Final = condition(
    TERMINATING, holds=False, reason="InstanceDeletionCompleted", message="removed all instances"
)


def set_initial_status(definition: Document) -> None:
    """Set the initial status of a new definition."""
    definition["status"] = {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": [],
    }
    record_stored_version(definition)


def record_stored_version(definition: Document) -> None:
    """Add the current storage version to status.storedVersions."""
    status = definition.setdefault("status", {})
    stored = list(status.get("storedVersions") or ())
    for version in (definition.get("spec") or {}).get("versions") or ():
        name = version.get("name") or ""  # without one it is invalid, which is found later
        if version.get("storage") and name not in stored:
            stored.append(name)
    status["storedVersions"] = stored


def holds(definition: Json, kind: str) -> bool:
    """Return whether a condition is true."""
    return find_condition(definition.get("status") or {}, kind).get("status") == "True"


def accept_names(definition: Document, others: Iterable[Json], now: str) -> bool:
    """Accept the names that no other definition uses; return whether the status has changed."""
    requested, status = definition["spec"]["names"], definition.setdefault("status", {})
    accepted = status.get("acceptedNames") or {}
    if requested == accepted:
        return False
    accepted_names, conflict = _accepted_names(requested, accepted, *_names_in_use(others))
    updated = condition(
        NAMES_ACCEPTED,
        holds=conflict is None,
        reason=conflict[0] if conflict else "NoConflicts",
        message=conflict[1] if conflict else "no conflicts found",
    )
    before = find_condition(status, NAMES_ACCEPTED)
    if accepted_names == accepted and all(before.get(name) == updated[name] for name in updated):
        return False
    status["acceptedNames"] = accepted_names
    set_condition(status, updated, now)
    if not holds(definition, ESTABLISHED):
        installing = condition(
            ESTABLISHED,
            holds=False,
            reason="NotAccepted" if conflict else "Installing",
            message="not all names are accepted" if conflict else _INSTALLED,
        )
        set_condition(status, installing, now)
    return True


def _names_in_use(others: Iterable[Json]) -> tuple[set[str], set[str]]:
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        names = (other.get("status") or {}).get("acceptedNames") or {}
        resources |= {names.get("plural", ""), names.get("singular", "")}
        resources |= set(names.get("shortNames") or ())
        kinds |= {names.get("kind", ""), names.get("listKind", "")}
    return resources, kinds


def _accepted_names(
    requested: Json, accepted: Json, resources: set[str], kinds: set[str]
) -> tuple[dict[str, Any], tuple[str, str] | None]:
    """Return the accepted names, and the reason and message of the last conflict."""
    names, conflict = dict(accepted), None
    for member, reason in _SINGLE:
        name = requested.get(member, "")
        taken = kinds if member in ("kind", "listKind") else resources
        if name != accepted.get(member, "") and name in taken:
            conflict = (reason, f'"{name}" is already in use')
        else:
            names[member] = name
    short = requested.get("shortNames") or []
    used = [n for n in short if n not in (accepted.get("shortNames") or ()) and n in resources]
    if used:
        messages = [f'"{name}" is already in use' for name in used]
        message = messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"
        conflict = conflict or ("ShortNamesConflict", message)
    else:
        names.pop("shortNames", None)
        names |= {"shortNames": list(short)} if short else {}
    names.pop("categories", None)
    names |= {"categories": requested["categories"]} if requested.get("categories") else {}
    return names, conflict


def establish(definition: Document, now: str) -> bool:
    """Establish a definition whose names are accepted; return whether the status has changed."""
    if not holds(definition, NAMES_ACCEPTED) or holds(definition, ESTABLISHED):
        return False
    webhook = (definition["spec"].get("conversion") or {}).get("webhook") or {}
    bundle = (webhook.get("clientConfig") or {}).get("caBundle")
    sound = not bundle or is_ca_bundle(bundle)
    updated = condition(
        ESTABLISHED,
        holds=sound,
        reason="InitialNamesAccepted" if sound else "InvalidCABundle",
        message=_INSTALLED if sound else "The conversion webhook CABundle is invalid",
    )
    if find_condition(definition["status"], ESTABLISHED).get("reason") == updated["reason"]:
        return False
    set_condition(definition["status"], updated, now)
    return True
