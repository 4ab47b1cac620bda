"""Deletion: at once, or marked and waiting.

- An object with finalizers is marked with ``deletionTimestamp`` and goes when the last is removed.
- A pod on a node is marked with ``deletionTimestamp`` (now plus its grace period) and
  ``deletionGracePeriodSeconds``, and stays until a delete with grace period 0, as a kubelet sends
  once the containers have ended. Pods on no node, and finished ones, go at once. A later delete may
  shorten the grace period, never lengthen it.
- A namespace is marked, its phase becomes Terminating, and it stays while ``spec.finalizers`` holds
  anything (emptying it is its controller's work).

Source: k8s.io/apiserver/pkg/registry/rest/delete.go, pkg/registry/core/{pod,namespace}.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fakeapi.api.errors import bad_request, conflict, forbidden
from fakeapi.api.metadata import Sources
from fakeapi.api.options import parse_integer
from fakeapi.kinds import Kind
from fakeapi.store import Document

_DEFAULT_GRACE_SECONDS: Final = 30
_LONGEST_GRACE_SECONDS: Final = 10**9
_FINISHED: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """What a delete asks for; None means not said. ``grace_seconds`` is in seconds."""

    grace_seconds: int | None = None
    uid: str | None = None
    version: str | None = None


def parse_delete_options(query: Mapping[str, str], body: Mapping[str, Any]) -> DeleteOptions:
    """Read the options from the body or, where it is empty, the query; raises StatusError (400)."""
    if body.get("dryRun"):
        raise bad_request("dryRun is not supported by this server")
    grace: Any = body.get("gracePeriodSeconds")
    if not body and query.get("gracePeriodSeconds"):
        grace = parse_integer("gracePeriodSeconds", query["gracePeriodSeconds"])
    given = body.get("preconditions")
    preconditions = {} if given is None else given
    if not isinstance(preconditions, dict) or not isinstance(grace, int | None):
        raise bad_request("DeleteOptions: preconditions or gracePeriodSeconds has a wrong type")
    return DeleteOptions(grace, preconditions.get("uid"), preconditions.get("resourceVersion"))


def check_delete(kind: Kind, name: str, document: Document, options: DeleteOptions) -> None:
    """Check that the object may go and is the one that was meant; raises StatusError (403, 409)."""
    if name in kind.undeletable:
        raise forbidden(kind, name, f"this {kind.singular} may not be deleted")
    metadata = document["metadata"]
    for label, wanted, found in (
        ("UID", options.uid, metadata["uid"]),
        ("ResourceVersion", options.version, metadata["resourceVersion"]),
    ):
        if wanted is not None and wanted != found:
            raise conflict(kind, name, precondition_failed(label, wanted, found))


def precondition_failed(label: str, wanted: str, found: str) -> str:
    """Word a failed precondition as upstream does."""
    return (
        f"Precondition failed: {label} in precondition: {wanted}, {label} in object meta: {found}"
    )


def mark_deleted(kind: Kind, document: Document, options: DeleteOptions, sources: Sources) -> None:
    """Write into ``document`` that it is being deleted, as far as its kind and state ask for it."""
    metadata = document["metadata"]
    if kind.first_spec_finalizers:
        if "deletionTimestamp" not in metadata:
            metadata["deletionTimestamp"] = sources.timestamp(0)
            document.setdefault("status", {})["phase"] = kind.finalizing_phase
        return
    if not kind.graceful and not metadata.get("finalizers"):
        return
    grace = _grace_seconds(document, options) if kind.graceful else 0
    if "deletionTimestamp" not in metadata:
        if "generation" in metadata:
            metadata["generation"] += 1
    elif options.grace_seconds is None or grace >= metadata.get("deletionGracePeriodSeconds", 0):
        return
    metadata["deletionTimestamp"] = sources.timestamp(grace)
    metadata["deletionGracePeriodSeconds"] = grace


def may_vanish(kind: Kind, document: Document) -> bool:
    """Tell whether nothing holds a deleted object any more: no finalizer, no grace period."""
    metadata = document["metadata"]
    if kind.first_spec_finalizers and (document.get("spec") or {}).get("finalizers"):
        return False
    return not metadata.get("finalizers") and not metadata.get("deletionGracePeriodSeconds")


def _grace_seconds(document: Document, options: DeleteOptions) -> int:
    spec = document.get("spec") or {}
    if not spec.get("nodeName") or (document.get("status") or {}).get("phase") in _FINISHED:
        return 0
    asked = options.grace_seconds
    if asked is None:
        asked = spec.get("terminationGracePeriodSeconds", _DEFAULT_GRACE_SECONDS)
    if not isinstance(asked, int):
        return _DEFAULT_GRACE_SECONDS
    return min(asked, _LONGEST_GRACE_SECONDS) if asked >= 0 else 1
