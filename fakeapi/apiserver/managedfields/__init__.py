"""Managed fields: the owners of an object's fields, and server-side apply.

Owners are stored in ``metadata.managedFields``. All functions are pure functions of documents, the
kind's structural type and the time; nothing is stored, so a dry run discards the result. A kind has
one version here; entries of other versions are kept unchanged.

    field_set     path elements, and sets of field paths in their serialized form
    typed_value   values by their structural type, and the field set of an applied configuration
    compare       from two documents to field sets
    merge         from documents and field sets to documents
    entries       the owners as entries of metadata.managedFields
    update        the owners after create, update and patch
    apply         server-side apply
    scale         the owners of replicas, for writes to the scale subresource

Sources: sigs.k8s.io/structured-merge-diff v6, k8s.io/apimachinery/pkg/util/managedfields.
"""

from __future__ import annotations

from fakeapi.apiserver.managedfields.apply import AppliedConfiguration, apply, conversion_failure
from fakeapi.apiserver.managedfields.scale import ReplicasOwners
from fakeapi.apiserver.managedfields.update import FieldManager, track_create, track_update

__all__ = [
    "AppliedConfiguration",
    "FieldManager",
    "ReplicasOwners",
    "apply",
    "conversion_failure",
    "track_create",
    "track_update",
]
