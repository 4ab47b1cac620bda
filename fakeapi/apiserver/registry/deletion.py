"""Deletion: immediate, or by a deletion timestamp that waits for finalizers or a grace period.

    held by                           first delete                   removed
    nothing                           removed                        -
    finalizers                        marked, grace period 0         when the last is removed
    a grace period (pods on a node)   marked, now + grace period     by a delete with period 0, as a
                                                                     kubelet sends at the end
    spec.finalizers (namespaces)      marked, phase Terminating      when they are empty

A pod that can be removed at once is marked first all the same, so watchers see two events. A later
delete may shorten a grace period, never lengthen it. The propagation policy is stored as a
finalizer (``orphan``, ``foregroundDeletion``) for the garbage collector.

Source: k8s.io/apiserver/pkg/registry/rest/delete.go, pkg/registry/generic/registry/store.go;
pkg/registry/core/{pod,namespace}.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.objects.conditions import set_condition
from fakeapi.apiserver.objects.metadata import IdAndTimeSources, epoch_seconds
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import (
    Cause,
    StatusError,
    conflict,
    forbidden,
    invalid,
    storage_conflict,
)
from fakeapi.apiserver.wire.request_options import DeleteOptions

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"
_FINALIZERS: Final = {"Orphan": ORPHAN, "Foreground": FOREGROUND}
_POLICIES: Final = {finalizer: policy for policy, finalizer in _FINALIZERS.items()}

_DEFAULT_GRACE_SECONDS: Final = 30
_LONGEST_GRACE_SECONDS: Final = 10**9
_FINISHED: Final = ("Succeeded", "Failed")


class DeletionStep(Enum):
    """The effect of a delete: whether the mark is written, and whether the object is removed."""

    NOTHING = (False, False)
    MARKED = (True, False)
    GONE = (False, True)
    MARKED_AND_GONE = (True, True)

    @property
    def marks(self) -> bool:
        """Return whether the document was changed and must be written."""
        return self.value[0]

    @property
    def ends(self) -> bool:
        """Return whether the object is removed."""
        return self.value[1]


def check_delete(kind: ResourceInfo, name: str, document: Document, options: DeleteOptions) -> None:
    """Check that the object may be deleted and meets the preconditions.

    Raise StatusError (403, 409).
    """
    if name in kind.undeletable:
        raise forbidden(kind, name, kind.undeletable_why)
    if options.unsafe:
        namespace = document["metadata"].get("namespace", "")
        detail = "unsafe deletion is not allowed because the object is decodable from storage"
        raise storage_conflict(kind, namespace, name, detail)
    check_preconditions(kind, name, document, options)


def check_preconditions(
    kind: ResourceInfo, name: str, document: Mapping[str, Any], options: DeleteOptions
) -> None:
    """Check the UID and resourceVersion of the options; raise StatusError (409)."""
    metadata = document["metadata"]
    for label, expected, found, hint in (
        ("UID", options.uid, metadata["uid"], "deleted and then recreated"),
        ("ResourceVersion", options.version, metadata["resourceVersion"], "modified"),
    ):
        if expected is None or expected == found:
            continue
        if kind.first_spec_finalizers:
            raise conflict(kind, name, precondition_failed(label, expected, found))
        raise _precondition_conflict(
            kind,
            name,
            f"the {label} in the precondition ({expected}) does not match the {label} in record "
            f"({found}). The object might have been {hint}",
        )


def precondition_failed(label: str, expected: str, found: str) -> str:
    """Return the message of a failed precondition in the words of upstream's storage."""
    return (
        f"Precondition failed: {label} in precondition: {expected}, {label} in object meta: {found}"
    )


def mark_deleted(
    kind: ResourceInfo, document: Document, options: DeleteOptions, sources: IdAndTimeSources
) -> DeletionStep:
    """Mark ``document`` as being deleted, and return the effect of the delete.

    Unless the returned step marks, ``document`` is unchanged.
    """
    metadata = document["metadata"]
    if kind.first_spec_finalizers:
        if "deletionTimestamp" not in metadata:
            _mark_terminating(kind, document, options, sources)
            return DeletionStep.MARKED
        if (document.get("spec") or {}).get("finalizers"):
            return DeletionStep.NOTHING
    if kind.deletion_finalizer and "deletionTimestamp" not in metadata:
        _mark_definition(kind, document, sources)
        return DeletionStep.MARKED
    step = _mark_grace_period(document, options, sources) if kind.graceful else None
    if step is DeletionStep.NOTHING:
        return step
    finalizers = _finalizers(kind, metadata, options)
    if finalizers:
        _write_finalizers(metadata, finalizers)
        if step is None:
            _mark_pending_finalizers(metadata, sources)
        return DeletionStep.MARKED
    return step or DeletionStep.GONE


def can_be_removed(kind: ResourceInfo, document: Document) -> bool:
    """Return whether a marked object can be removed: it has no finalizer and no grace period."""
    metadata = document["metadata"]
    if kind.first_spec_finalizers and (document.get("spec") or {}).get("finalizers"):
        return False
    return not metadata.get("finalizers") and not metadata.get("deletionGracePeriodSeconds")


def check_finalizers(kind: ResourceInfo, document: Document, old: Mapping[str, Any]) -> None:
    """Raise StatusError (422) if an update adds finalizers to an object that is being deleted."""
    before = old["metadata"]
    if "deletionTimestamp" not in before:
        return
    present = set(before.get("finalizers") or ())
    added = [f for f in document["metadata"].get("finalizers") or () if f not in present]
    if added:
        listed = ", ".join(f'"{finalizer}"' for finalizer in sorted(added))
        detail = (
            "no new finalizers can be added if the object is being deleted, found new finalizers"
        )
        message = f"Forbidden: {detail} []string{{{listed}}}"
        cause = Cause("FieldValueForbidden", message, "metadata.finalizers")
        raise invalid(kind.qualified_kind, before["name"], [cause])


def _precondition_conflict(kind: ResourceInfo, name: str, detail: str) -> StatusError:
    message = f'Operation cannot be fulfilled on {kind.qualified_kind} "{name}": {detail}'
    details = {"name": name, "group": kind.group, "kind": kind.kind}
    return StatusError(409, "Conflict", message, details)


def _mark_terminating(
    kind: ResourceInfo, document: Document, options: DeleteOptions, sources: IdAndTimeSources
) -> None:
    metadata = document["metadata"]
    metadata["deletionTimestamp"] = sources.timestamp(0)
    document.setdefault("status", {})["phase"] = kind.finalizing_phase
    _write_finalizers(metadata, _finalizers(kind, metadata, options))


def _mark_pending_finalizers(metadata: dict[str, Any], sources: IdAndTimeSources) -> None:
    """Mark an object that only finalizers hold."""
    marked = metadata.get("deletionTimestamp")
    if marked is None and "generation" in metadata:
        metadata["generation"] += 1
    if marked is None or (epoch_seconds(marked) or 0) > sources.now():
        metadata["deletionTimestamp"] = sources.timestamp(0)
    metadata["deletionGracePeriodSeconds"] = 0


def _mark_definition(kind: ResourceInfo, document: Document, sources: IdAndTimeSources) -> None:
    """Mark a definition whose instances are deleted before it."""
    metadata, now = document["metadata"], sources.timestamp(0)
    metadata["deletionTimestamp"] = now
    present = metadata.get("finalizers") or []
    if kind.deletion_finalizer not in present:
        metadata["finalizers"] = [*present, kind.deletion_finalizer]
    set_condition(document.setdefault("status", {}), kind.deletion_condition, now)


def _mark_grace_period(
    document: Document, options: DeleteOptions, sources: IdAndTimeSources
) -> DeletionStep | None:
    """Start or shorten the grace period; return None if only finalizers hold the object."""
    metadata = document["metadata"]
    if "deletionTimestamp" not in metadata:
        if "generation" in metadata:
            metadata["generation"] += 1
        grace = offset = _grace_seconds(document, options)
    else:
        left = metadata.get("deletionGracePeriodSeconds") or 0
        if not left:
            return None
        if options.grace_seconds is None or _non_negative(options.grace_seconds) >= left:
            return DeletionStep.NOTHING
        grace, offset = _shortened_grace_period(
            metadata, left, _non_negative(options.grace_seconds), sources
        )
    metadata["deletionTimestamp"] = sources.timestamp(offset)
    metadata["deletionGracePeriodSeconds"] = grace
    return DeletionStep.MARKED if grace else DeletionStep.MARKED_AND_GONE


def _shortened_grace_period(
    metadata: Mapping[str, Any], left: int, grace: int, sources: IdAndTimeSources
) -> tuple[int, int]:
    """Return the new grace period, and its end in seconds from now."""
    end = epoch_seconds(metadata["deletionTimestamp"])
    offset = grace if end is None else end - left + grace - sources.now()
    if offset < 0:  # the new period is already over: use the shortest possible one
        return min(grace, 1), 0
    return grace, offset


def _grace_seconds(document: Document, options: DeleteOptions) -> int:
    spec = document.get("spec") or {}
    if not spec.get("nodeName") or (document.get("status") or {}).get("phase") in _FINISHED:
        return 0
    seconds = options.grace_seconds
    if seconds is None:
        seconds = spec.get("terminationGracePeriodSeconds", _DEFAULT_GRACE_SECONDS)
    if not isinstance(seconds, int):
        return _DEFAULT_GRACE_SECONDS
    return min(_non_negative(seconds), _LONGEST_GRACE_SECONDS)


def _non_negative(seconds: int) -> int:
    return seconds if seconds >= 0 else 1


def _finalizers(
    kind: ResourceInfo, metadata: Mapping[str, Any], options: DeleteOptions
) -> list[str]:
    """Return the finalizers; of those for propagation policies only that of the options' policy."""
    present = metadata.get("finalizers") or []
    kept = [f for f in present if f not in _POLICIES]
    policy = _policy(kind, present, options)
    if policy in _FINALIZERS:
        kept.append(_FINALIZERS[policy])
    return present if set(present) == set(kept) else kept


def _policy(kind: ResourceInfo, present: list[str], options: DeleteOptions) -> str:
    if kind.dependents == "ignore":
        return ""
    if options.orphan_dependents is not None:
        return "Orphan" if options.orphan_dependents else ""
    if options.propagation:
        return options.propagation
    earlier = [_POLICIES[f] for f in present if f in _POLICIES]
    return earlier[0] if earlier else {"orphan": "Orphan"}.get(kind.dependents, "")


def _write_finalizers(metadata: dict[str, Any], finalizers: list[str]) -> None:
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
